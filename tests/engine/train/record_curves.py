"""Twenty steps of each recipe at a fixed seed, as JSON: run in a process of its own with portable CPU kernels.

LEVERL_RECORD=1 python -m pytest tests/engine/train/test_recorded_curves.py     # after an intended change
"""

import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import leverl
from leverl.record.metrics import read_lines

RECIPES = ("grpo", "rloo", "ppo", "dr-grpo")
SMALL: dict[str, Any] = {
    "embedded_hidden_size": 32,
    "embedded_layers": 2,
    "batch_size": 64,
    "mini_batch_size": 32,
    "eval_size": 32,
    "eval_every": 5,
    "save_every": 0,
    "steps": 20,
}


def cpu() -> str:
    """The processor, as far as it decides which kernels run."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").is_file() else []
    wanted = ("vendor_id", "cpu family", "model\t")
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith(wanted)]
    return " ".join([platform.machine(), *names[:3]])


def curves() -> dict[str, Any]:
    """Fingerprint and curves: recipe → list of [step, metrics without clocks and memory]."""
    found: dict[str, Any] = {"cpu": cpu(), "torch": str(torch.__version__)}
    for recipe in RECIPES:
        with tempfile.TemporaryDirectory() as folder:
            result = leverl.train(recipe, SMALL, name=recipe, out=folder)
            found[recipe] = [
                [
                    step,
                    {
                        name: value
                        for name, value in data.items()
                        if not name.startswith(("timing_s/", "perf/"))
                    },
                ]
                for step, data in read_lines(result.folder / "metrics.jsonl")
            ]
    return found


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(curves()))
