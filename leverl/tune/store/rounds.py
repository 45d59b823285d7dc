"""Which runs belong to earlier rounds of a study: it was over, got more budget and went on."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from leverl.record.layout import write_json

ROUNDS: Final = "rounds.json"

Rounds = tuple[tuple[str, ...], ...]
"""The ids of the runs that each round added, the first round first."""


def read_rounds(folder: Path) -> Rounds:
    """The rounds that are over and have been followed by another."""
    path = folder / ROUNDS
    if not path.is_file():
        return ()
    return tuple(tuple(ids) for ids in json.loads(path.read_text(encoding="utf-8")))


def write_round(folder: Path, earlier: Rounds, run_ids: Sequence[str]) -> Rounds:
    """Another round is over, after which these are all runs of the study."""
    before = {run_id for ids in earlier for run_id in ids}
    rounds = (*earlier, tuple(run_id for run_id in run_ids if run_id not in before))
    write_json(folder / ROUNDS, rounds)
    return rounds
