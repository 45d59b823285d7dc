"""Seconds until leverl answers: `import leverl`, `leverl --help` and the help of each command, beside bare Python.

    python benchmarks/startup.py [--runs N]

Prints the median and the range of wall time over N runs of a process each, taken in turns. The aim is less than half
a second for `import leverl` and `leverl --help`.
"""

import argparse
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "bare python": [sys.executable, "-c", "pass"],
    "import leverl": [sys.executable, "-c", "import leverl"],
    "leverl --help": [sys.executable, "-m", "leverl", "--help"],
    "leverl train --help": [sys.executable, "-m", "leverl", "train", "--help"],
    "leverl tune --help": [sys.executable, "-m", "leverl", "tune", "--help"],
}


def seconds(command: list[str]) -> float:
    """Wall time of one process."""
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    found: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, command in COMMANDS.items():
            found[name].append(seconds(command))
    print("| process | median s | range |\n|---|---|---|")
    for name, values in found.items():
        print(f"| {name} | {statistics.median(values):.2f} | {min(values):.2f} … {max(values):.2f} |")


if __name__ == "__main__":
    main()
