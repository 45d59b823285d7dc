"""The GPU that a run holds: whether there is one, its memory and utilisation by NVML."""

from functools import cache
from importlib.util import find_spec
from typing import Any

import torch

from leverl.engine.roles.meter import Metrics


@cache
def _handle() -> Any | None:
    if not torch.cuda.is_available() or find_spec("pynvml") is None:
        return None
    import pynvml

    try:
        pynvml.nvmlInit()
        return pynvml.nvmlDeviceGetHandleByIndex(torch.cuda.current_device())
    except pynvml.NVMLError:
        return None


def on_gpu(device: str) -> bool:
    """Whether a run with this `model.device` holds a GPU; "auto" takes one where there is one."""
    return torch.cuda.is_available() if device == "auto" else torch.device(device).type == "cuda"


def gpu_metrics() -> Metrics:
    """`perf/gpu_memory_gb` (used on the device, by anyone) and `perf/gpu_utilisation` (share of time)."""
    handle = _handle()
    if handle is None:
        return {}
    import pynvml

    return {
        "perf/gpu_memory_gb": pynvml.nvmlDeviceGetMemoryInfo(handle).used / 2**30,
        "perf/gpu_utilisation": pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
    }
