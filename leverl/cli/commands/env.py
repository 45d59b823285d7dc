"""`leverl env`: what this machine and installation offer."""

import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import leverl
from leverl.cli import options
from leverl.cli.output import Output

EXAMPLES = (
    "leverl env                # versions, threads, devices, extras, room on disk and in memory",
    "leverl env --json         # the same for programs",
    "leverl env > env.txt      # to attach to a bug report",
)

PACKAGES = ("torch", "transformers", "optuna", "numpy", "pydantic", "omegaconf", "plotly", "pyarrow", "scipy")


def run(json: options.Json = False) -> int:
    """Show versions, devices, optional packages, disk and memory."""
    output = Output(json=json)
    found = environment()
    output.finish(found, "\n".join(lines(found)), "leverl train demo")
    return 0


def environment() -> dict[str, Any]:
    """Everything that decides what can run here. Sizes in bytes."""
    import psutil

    memory = psutil.virtual_memory()
    disk = shutil.disk_usage(Path.cwd())
    return {
        "leverl": leverl.__version__,
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "packages": {name: installed(name) for name in PACKAGES},
        "cores": psutil.cpu_count(logical=True),
        **_torch(),
        "extras": extras(),
        "memory": {"total": memory.total, "available": memory.available},
        "disk": {"folder": str(Path.cwd()), "total": disk.total, "free": disk.free},
    }


def installed(package: str) -> str | None:
    """The version of `package`; None where it is not installed."""
    try:
        return version_of(package)
    except PackageNotFoundError:
        return None


def extras() -> dict[str, str | None]:
    """leverl's optional packages: extra → installed version, or None."""
    from leverl import plugins

    known = [value for value in vars(plugins).values() if isinstance(value, plugins.Dependency)]
    return {dependency.extra: _version_of_module(dependency.module) for dependency in known}


def _version_of_module(module: str) -> str | None:
    """By module name, whatever the distribution is called; "yes" when its version is not told."""
    from importlib.metadata import packages_distributions

    if find_spec(module) is None:
        return None
    names = packages_distributions().get(module)
    return installed(names[0]) if names else "yes"


def _torch() -> dict[str, Any]:
    """Threads and devices, as torch sees them."""
    try:
        import torch
    except ImportError as error:
        return {"threads": None, "devices": [], "torch_problem": str(error)}
    gpus = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    return {
        "threads": torch.get_num_threads(),
        "devices": ["cpu", *(f"cuda:{n} {gpu.name} {_gib(gpu.total_memory)}" for n, gpu in enumerate(gpus))],
    }


def lines(found: dict[str, Any]) -> list[str]:
    """`environment()` for people."""
    memory, disk = found["memory"], found["disk"]
    rows = [
        ("leverl", found["leverl"]),
        ("python", f"{found['python']} ({found['executable']})"),
        ("platform", found["platform"]),
        ("packages", ", ".join(f"{name} {number or '–'}" for name, number in found["packages"].items())),
        ("devices", ", ".join(found["devices"]) or f"torch cannot be imported: {found['torch_problem']}"),
        ("threads", f"{found['threads']} (torch), {found['cores']} cores"),
        *(("extra", _extra(name, number)) for name, number in found["extras"].items()),
        ("memory", f"{_gib(memory['available'])} available of {_gib(memory['total'])}"),
        ("disk", f"{_gib(disk['free'])} free of {_gib(disk['total'])} at {disk['folder']}"),
    ]
    return [f"{label:10} {text}" for label, text in rows]


def _extra(name: str, number: str | None) -> str:
    return f"{name} {number}" if number else f"{name}: not installed; pip install 'leverl[{name}]'"


def _gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"
