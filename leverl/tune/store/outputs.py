"""What a study leaves behind beside its runs: `best.yaml`, `winner.json` and the time it took."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from leverl.config import loader
from leverl.record.layout import write_atomically, write_json
from leverl.tune.evidence.verdict import Conclusion
from leverl.tune.model import CONFIRM, RACE, Comparison, History, Winner
from leverl.tune.ranking import standing

if TYPE_CHECKING:
    from leverl.tune.plan import Plan

STUDY_FILE: Final = "study.yaml"
BEST: Final = "best.yaml"
WINNER: Final = "winner.json"
REPORT: Final = "report.html"
CLOCK: Final = "clock.json"


def write_winner(plan: "Plan", history: History, conclusion: Conclusion) -> Winner:
    """Write `best.yaml` and `winner.json`, and return the winner."""
    folder = plan.folder
    params = {} if conclusion.config_id == "c000" else dict(history.params(conclusion.config_id))
    winner = Winner(
        study=plan.study.name,
        config_id=conclusion.config_id,
        params=params,
        comparison=conclusion.comparison,
        verdict=conclusion.verdict,
        best_yaml=folder / BEST,
        report=folder / REPORT,
    )
    write_atomically(winner.best_yaml, _best_text(plan, history, winner))
    loader.load(winner.best_yaml)  # a file that cannot be trained must not leave the house
    content = asdict(winner) | {"best_yaml": BEST, "report": REPORT}
    write_json(folder / WINNER, content)
    return winner


def read_winner(folder: Path) -> Winner | None:
    """The winner of a study that is over."""
    content = _read_json(folder / WINNER)
    if content is None:
        return None
    comparison = content["comparison"]
    return Winner(
        study=content["study"],
        config_id=content["config_id"],
        params=content["params"],
        comparison=_comparison(comparison) if comparison else None,
        verdict=content["verdict"],
        best_yaml=folder / content["best_yaml"],
        report=folder / content["report"],
    )


def keep_earlier(folder: Path, number: int) -> None:
    """Keep what a round of the study came to: `best.yaml` becomes `best-1.yaml`."""

    def kept(name: str) -> str:
        return Path(name).with_stem(f"{Path(name).stem}-{number}").name

    winner = _read_json(folder / WINNER)
    if winner is not None:
        write_json(folder / kept(WINNER), winner | {"best_yaml": kept(BEST), "report": kept(REPORT)})
    for name in (BEST, REPORT):
        if (folder / name).is_file():
            (folder / name).replace(folder / kept(name))


def write_clock(folder: Path, seconds: float, phase: str) -> None:
    """Write down how long the study has taken over all sittings, and where it is."""
    write_json(folder / CLOCK, {"seconds": round(seconds, 3), "phase": phase})


def read_clock(folder: Path) -> tuple[float, str]:
    """Seconds and phase as last written."""
    content = _read_json(folder / CLOCK) or {}
    return float(content.get("seconds", 0.0)), str(content.get("phase", "search"))


def _best_text(plan: "Plan", history: History, winner: Winner) -> str:
    import yaml

    found = (
        standing(history, winner.config_id, CONFIRM)
        or standing(history, winner.config_id, RACE)
        or standing(history, winner.config_id)
    )
    lines = [f"Configuration {winner.config_id} of study {winner.study}.", winner.verdict]
    if found is not None:
        error = f" ± {found.standard_error:.2g} (standard error)" if found.standard_error is not None else ""
        seeds = f"{found.seeds} seed{'s' if found.seeds != 1 else ''}"
        lines.insert(1, f"{plan.study.objective.name} {found.mean:.4g}{error}, {seeds}.")
    if plan.study.target.leverl not in loader.recipes():
        lines.append(f"From {plan.study.target.leverl}.")
    settings = yaml.safe_dump(dict(plan.backend.portable(winner.params)), sort_keys=False, allow_unicode=True)
    return "".join(f"# {line}\n" for line in lines) + settings


def _comparison(content: dict[str, Any]) -> Comparison:
    lists = {name: tuple(content[name]) for name in ("seeds", "winner", "base")}
    interval = tuple(content["interval"]) if content["interval"] else None
    return Comparison(**{**content, **lists, "interval": interval})


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None
