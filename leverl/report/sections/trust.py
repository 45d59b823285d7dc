"""9 TRUST: what one needs to believe the result, or to repeat it."""

from leverl.record.layout import RunFolder
from leverl.record.run_record import load_record
from leverl.report import numbers
from leverl.report.blocks import Block, Chart, Code, Facts, Note, Section
from leverl.report.sections import calibration
from leverl.report.study_data import StudyData, finished_scores
from leverl.report.terminal import repeat_command
from leverl.tune.analysis.result import Noise
from leverl.tune.model import CONFIRM, GRID, RACE, SEARCH
from leverl.tune.statistics import pooled_variance, sample_variance

_ROLES = {
    SEARCH: "proposed configurations",
    GRID: "looked around the best of them",
    RACE: "chose among finalists",
    CONFIRM: "tested the choice",
}


def build(data: StudyData) -> Section:
    """Sampler, seeds, noise, versions and the command."""
    view = data.view
    rows = [
        ("Sampler", f"{view.sampler} (strategy: {view.strategy})"),
        ("Score of a run", f"{view.objective}, mean of its last held-out evaluations, never the highest; "
         f"{'higher' if view.history.maximize else 'lower'} is better"),
        ("Steps of a run", numbers.short(view.steps)),
        ("Seeds", _seeds(data)),
        ("Noise share", _noise(data)),
    ]  # fmt: skip
    if view.base_settings:
        rows.append(
            (
                "Base",
                f"{view.target} with "
                + ", ".join(f"{k}={numbers.exact(v)}" for k, v in view.base_settings.items()),
            )
        )
    if versions := _versions(data):
        rows.append(("Versions", versions))
    charts = _charts(data)
    blocks: tuple[Block, ...] = (
        Facts(tuple(rows)),
        _disjoint(data),
        *charts,
        Code("Command that repeats the study", repeat_command(view)),
    )
    return Section("trust", "Trust", "What the result rests on.", blocks, columns=2 if charts else 1)


def _charts(data: StudyData) -> list[Chart]:
    """Of model and order, where there is an analysis."""
    model = data.analysis.model if data.analysis else None
    found = [calibration.left_out(data, model) if model else None, calibration.ranks(data)]
    return [chart for chart in found if chart is not None]


def _seeds(data: StudyData) -> str:
    lines = []
    for phase, seeds in data.seeds.items():
        role = f" ({_ROLES[phase]})" if phase in _ROLES else ""
        lines.append(f"{phase}{role}: {', '.join(map(str, seeds))}")
    return "\n".join(lines) or numbers.UNKNOWN


def _disjoint(data: StudyData) -> Note:
    """Whether stages have seeds of their own; search and local grid are one, they share seeds by design."""
    stages: dict[str, set[int]] = {}
    for phase, seeds in data.seeds.items():
        stages.setdefault(SEARCH if phase == GRID else phase, set()).update(seeds)
    phases = list(stages.items())
    for index, (phase, found) in enumerate(phases):
        for other, others in phases[index + 1 :]:
            if shared := sorted(found & others):
                words = ", ".join(map(str, shared))
                text = (
                    f"Seed {words} was used both in {phase} and in {other}: these runs are not independent."
                )
                return Note(text, "warn")
    if len(phases) < 2:
        return Note("Only one phase has run so far, so there is nothing to compare its seeds with.")
    return Note("No seed was used in two phases: the runs that chose the winner did not confirm it.", "good")


def _noise(data: StudyData) -> str:
    """Share of the variance between runs of one seed that seeds, not settings, explain."""
    model = data.analysis.model if data.analysis else None
    if model is not None:
        return _modelled(model.noise)
    groups = [
        finished_scores(data.phase_runs(c, phase))
        for c in data.configurations
        for phase in (SEARCH, GRID, RACE, CONFIRM)
    ]
    within = pooled_variance(groups)
    firsts = [c.scores[0] for c in data.configurations if c.scores]
    if within is None:
        return "unknown: no configuration has two finished runs in one phase yet"
    total = sample_variance(firsts) if len(firsts) > 2 else 0.0
    if not total:
        return "unknown: fewer than three configurations have a score"
    share = min(1.0, within[0] / total)
    return (
        f"{numbers.percent(share)} of the variance between single runs comes from the seed (spread of equal "
        f"settings ± {numbers.short(within[0] ** 0.5, 2)}, {within[1]} degrees of freedom)"
    )


def _modelled(noise: Noise) -> str:
    source = (
        f"{noise.degrees} degrees of freedom of replicates"
        if noise.degrees
        else "no replicates: inferred from all scores together"
    )
    evaluation = (
        f", of which its evaluation ± {numbers.short(noise.evaluation_sd, 2)}" if noise.evaluation_sd else ""
    )
    spread = (noise.seed_sd**2 + noise.evaluation_sd**2) ** 0.5
    return (
        f"{numbers.percent(noise.share)} of the variance between single runs is noise (intraclass correlation "
        f"{numbers.short(1 - noise.share, 2)}): a run strays ± {numbers.short(spread, 2)} (SD) from its "
        f"configuration's mean{evaluation}; {source}"
    )


def _versions(data: StudyData) -> str:
    for state in data.view.history.runs:
        record = load_record(RunFolder(state.folder).record)
        if record is not None and record.versions:
            return ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return ""
