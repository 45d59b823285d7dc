"""Seconds per step of leverl's engine and of TRL's GRPOTrainer, beside the time of the bare model.

Both train the same weights on the same prompts: GRPO, one update per batch, no KL, float32, one thread. First
their gradients for one identical batch are compared; then steps are timed in rounds, engine after engine, each
in a process of its own, so that other load on the machine hits both. After each round the bare model does the same
tokens (`_floor.py`).

Rounds are added to the file given by --json as they are done: a run that was stopped goes on where it was, and the
table can be made from a file of several runs. Needs Linux and benchmarks/requirements.txt.
"""

import argparse
import json
import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _table import ENGINES, Shard, table
from _worker import Worker
from _workload import MODELS, WORKLOADS, Setting

PACKAGES = ("torch", "transformers", "trl", "accelerate")


def main() -> None:
    options = _options()
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = "1"
    os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "TRL_EXPERIMENTAL_SILENCE": "1"}
    shards = _read(options.json)
    for model in options.models:
        for workload in options.workloads:
            setting = Setting(MODELS[model], WORKLOADS[workload])
            _measure(setting, shards, options)
    print(f"\n{table({name: shard for name, shard in shards.items() if shard['rounds']})}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "--models", nargs="+", choices=MODELS, default=list(MODELS), help="sizes of the policy"
    )
    parser.add_argument(
        "--workloads",
        nargs="+",
        choices=WORKLOADS,
        default=list(WORKLOADS),
        help="equal: all responses have 16 tokens; natural: each step ends a response with the same probability, "
        "mean 16 under a cap of 64",
    )
    parser.add_argument(
        "--rounds", type=int, default=12, help="rounds of each shard, those in the file included"
    )
    parser.add_argument("--steps", type=int, default=1, help="steps of each engine in a round")
    parser.add_argument(
        "--trl-passes",
        type=int,
        default=1,
        help="training passes that TRL cuts a batch into (gradient accumulation); leverl cuts by its default",
    )
    parser.add_argument(
        "--json", type=Path, default=Path("engine_vs_trl.json"), help="file that keeps the measurements"
    )
    return parser.parse_args()


def _measure(setting: Setting, shards: dict[str, Shard], options: argparse.Namespace) -> None:
    """Add the rounds that are missing to the setting's shard."""
    shard = shards.setdefault(setting.name, _new_shard(setting))
    if shard["setting"] != setting.as_dict() or shard["versions"] != _versions():
        raise SystemExit(
            f"{options.json} holds {setting.name} with other settings or versions: {shard['setting']}, "
            f"{shard['versions']}. Give another file with --json."
        )
    if len(shard["rounds"]) >= options.rounds:
        print(f"{setting.name}: {len(shard['rounds'])} rounds are there already")
        return
    with tempfile.TemporaryDirectory(prefix="engine_vs_trl.") as temporary:
        folder = Path(temporary)
        shard["parameters"] = _once("build", setting, folder)
        _check_gradients(setting, folder, shard)
        workers = {kind: Worker(kind, setting, folder) for kind in (*ENGINES, "floor")}
        try:
            for kind in ENGINES:  # warm up; memory counts from here on
                _round(workers, kind, 1, shard)
            while len(shard["rounds"]) < options.rounds:
                number = len(shard["rounds"])
                order = ENGINES if number % 2 == 0 else ENGINES[::-1]
                done = {kind: _round(workers, kind, options.steps, shard) for kind in order}
                shard["rounds"].append(done)
                _write(options.json, shards)
                print(f"{setting.name}, round {number + 1}: {_summary(done)}", flush=True)
        finally:
            for worker in workers.values():
                worker.close()


def _new_shard(setting: Setting) -> Shard:
    return {
        "setting": setting.as_dict(),
        "versions": _versions(),
        "rounds": [],
        "memory": {kind: {"baseline": 0.0, "peak": 0.0} for kind in ENGINES},
    }


def _versions() -> dict[str, str]:
    return {package: version(package) for package in PACKAGES}


def _once(kind: str, setting: Setting, folder: Path) -> Any:
    worker = Worker(kind, setting, folder)
    try:
        return worker.ask("go")
    finally:
        worker.close()


def _check_gradients(setting: Setting, folder: Path, shard: Shard) -> None:
    found = shard["gradients"] = _once("compare", setting, folder)
    print(
        f"{setting.name}: {shard['parameters'] / 1e6:.2f}M parameters; gradients of one batch of {found['tokens']} "
        f"tokens: largest difference {found['max_difference']:.1e} of the largest gradient, cosine "
        f"{found['cosine']:.9f}, norms {found['norms'][0]:.6f} and {found['norms'][1]:.6f}",
        flush=True,
    )
    if not found["agrees"]:
        raise SystemExit("The engines do not compute the same gradient: there is nothing to compare.")


def _round(workers: dict[str, Worker], kind: str, steps: int, shard: Shard) -> list[dict[str, Any]]:
    """`steps` steps of one engine, each with the floor for its own lengths."""
    answer = workers[kind].ask(steps)
    memory, seen = answer["memory"], shard["memory"][kind]
    if memory["peak"] - memory["baseline"] > seen["peak"] - seen["baseline"]:
        seen.update(memory)
    for step in answer["steps"]:
        lengths = step.pop("lengths")
        step |= {"responses": len(lengths), "tokens": sum(lengths), "longest": max(lengths)}
        step["floor"] = workers["floor"].ask(lengths)
    done: list[dict[str, Any]] = answer["steps"]
    return done


def _summary(done: dict[str, list[dict[str, Any]]]) -> str:
    seconds = {kind: " ".join(f"{step['wall']:.2f}" for step in done[kind]) for kind in ENGINES}
    return f"leverl {seconds['leverl']}, TRL {seconds['trl']} s"


def _read(path: Path) -> dict[str, Shard]:
    if not path.exists():
        return {}
    shards: dict[str, Shard] = json.loads(path.read_text(encoding="utf-8"))
    return shards


def _write(path: Path, shards: dict[str, Shard]) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(shards, indent=1), encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    main()
