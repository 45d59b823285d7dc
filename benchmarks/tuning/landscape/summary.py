"""What a recorded landscape looks like: spread, noise, ranks, effects and costs, as lines of text."""

import statistics
from collections.abc import Iterator, Sequence

from .grid import BASE, LEVERS, SEARCH_SEEDS, Cell, Row, by_cell, cells, read_runs


def summary(task: str) -> str:
    """What the recorded landscape looks like, in lines."""
    runs = read_runs(task)
    search = {cell: _known(scores) for cell, scores in by_cell(runs, "search").items()}
    search = {cell: scores for cell, scores in search.items() if scores}
    truth = {cell: _known(scores) for cell, scores in by_cell(runs, "truth").items()}
    means = {cell: statistics.mean(scores) for cell, scores in search.items()}
    order = sorted(means, key=lambda cell: means[cell], reverse=True)
    everything = list(means.values())
    missing = len(cells()) * len(SEARCH_SEEDS) - sum(run["split"] == "search" for run in runs)
    failed = sum(run["outcome"] != "finished" for run in runs)
    lines = [
        f"{task}: {len(search)} cells, {len(runs)} runs, {failed} failed ({failed / len(runs):.1%})",
        *([f"INCOMPLETE: {missing} search runs are not recorded"] if missing else []),
        f"cell means: mean {statistics.mean(everything):.3f}, SD {statistics.stdev(everything):.3f}, "
        f"{min(everything):.3f} … {max(everything):.3f}",
        *(f"{name:6} {_describe(cell, search, truth)}" for name, cell in _landmarks(order)),
        f"seed SD (pooled) {_within(search) ** 0.5:.3f}; of the best dozen "
        f"{_within({cell: search[cell] for cell in order[:12]}) ** 0.5:.3f}",
        f"intraclass correlation: {icc(search):.3f} of one run, "
        f"{_mean_icc(search):.3f} of the mean of {len(SEARCH_SEEDS)}",
        *_rank_lines(search, truth),
        *_effects(means),
        *_cost_lines(runs),
    ]
    return "\n".join(lines)


def icc(groups: dict[Cell, list[float]]) -> float:
    """One-way random-effects ICC(1), for groups of unequal size too (Donner 1986)."""
    between, within, size = _mean_squares(groups)
    return (between - within) / (between + (size - 1) * within)


def _mean_icc(groups: dict[Cell, list[float]]) -> float:
    between, within, _ = _mean_squares(groups)
    return (between - within) / between


def _mean_squares(groups: dict[Cell, list[float]]) -> tuple[float, float, float]:
    """Mean squares between and within groups, and the group size that fits them."""
    sizes = [len(scores) for scores in groups.values()]
    total, k = sum(sizes), len(sizes)
    grand = sum(sum(scores) for scores in groups.values()) / total
    between = sum(len(s) * (statistics.mean(s) - grand) ** 2 for s in groups.values()) / (k - 1)
    size = (total - sum(n * n for n in sizes) / total) / (k - 1)
    return between, _within(groups), size


def _within(groups: dict[Cell, list[float]]) -> float:
    squares = sum((x - statistics.mean(s)) ** 2 for s in groups.values() for x in s)
    degrees = sum(len(s) - 1 for s in groups.values())
    return squares / degrees if degrees else float("nan")


def _known(scores: Sequence[float | None]) -> list[float]:
    return [score for score in scores if score is not None]


def _landmarks(order: Sequence[Cell]) -> Iterator[tuple[str, Cell]]:
    yield "best", order[0]
    yield "median", order[len(order) // 2]
    yield "worst", order[-1]
    yield "base", BASE


def _describe(cell: Cell, search: dict[Cell, list[float]], truth: dict[Cell, list[float]]) -> str:
    levers = ", ".join(f"{name} {value:g}" for name, value in cell._asdict().items())
    told = " ".join(f"{score:.3f}" for score in search[cell])
    true = truth.get(cell)
    known = f"; truth {statistics.mean(true):.3f} ± {_error(true):.3f} ({len(true)} seeds)" if true else ""
    return f"{statistics.mean(search[cell]):.3f} [{told}]{known}: {levers}"


def _error(scores: Sequence[float]) -> float:
    """Standard error of the mean."""
    return statistics.stdev(scores) / len(scores) ** 0.5 if len(scores) > 1 else float("nan")


def _rank_lines(search: dict[Cell, list[float]], truth: dict[Cell, list[float]]) -> Iterator[str]:
    complete = [cell for cell, scores in search.items() if len(scores) == len(SEARCH_SEEDS)]
    found = []
    for at in range(len(SEARCH_SEEDS)):
        rest = [statistics.mean(search[c][:at] + search[c][at + 1 :]) for c in complete]
        found.append(_spearman([search[c][at] for c in complete], rest))
    yield f"rank correlation, one seed with the mean of the others: {_listed(found)} ({len(complete)} cells)"
    if len(truth) < 3:
        return
    judged = [cell for cell in truth if cell in complete]
    true = [statistics.mean(truth[cell]) for cell in judged]
    single = [_spearman([search[c][at] for c in judged], true) for at in range(len(SEARCH_SEEDS))]
    every = _spearman([statistics.mean(search[cell]) for cell in judged], true)
    yield (
        f"rank correlation with truth over the {len(judged)} cells that have it: one seed {_listed(single)}; "
        f"mean of {len(SEARCH_SEEDS)} {every:.2f}"
    )
    errors = statistics.mean(_error(truth[cell]) for cell in judged)
    yield f"truth: best {max(true):.3f}, mean standard error {errors:.3f}, ICC of one run {icc(truth):.3f}"
    picks = [max(complete, key=lambda c: search[c][at]) for at in range(len(SEARCH_SEEDS))]
    lost = [max(true) - statistics.mean(truth[cell]) for cell in picks if cell in truth]
    yield f"true regret of the best cell of each single-seed grid: {_listed(lost)}"


def _effects(means: dict[Cell, float]) -> Iterator[str]:
    """Mean score at each level of each lever."""
    for at, name in enumerate(LEVERS):
        levels = {
            value: statistics.mean(mean for cell, mean in means.items() if cell[at] == value)
            for value in sorted({cell[at] for cell in means})
        }
        yield f"{name}: " + ", ".join(f"{value:g} → {mean:.3f}" for value, mean in levels.items())


def _cost_lines(runs: Sequence[Row]) -> Iterator[str]:
    for name in ("cpu_seconds", "seconds"):
        low, middle, high = statistics.quantiles([run[name] for run in runs], n=4)
        yield f"{name} of a run: median {middle:.1f}, quartiles {low:.1f} … {high:.1f}"


def _spearman(a: Sequence[float], b: Sequence[float]) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(a, b).statistic)


def _listed(values: Sequence[float]) -> str:
    return " ".join(f"{value:.2f}" for value in values)
