"""From measured rounds to a Markdown table."""

from collections.abc import Sequence
from statistics import median, quantiles
from typing import Any

ENGINES = ("leverl", "trl")

Shard = dict[str, Any]


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Median with quartiles: `0.89 [0.85–0.97]`."""
    if len(values) < 2:
        return f"{values[0]:.{digits}f}"
    low, _, high = quantiles(values, n=4, method="inclusive")
    return f"{median(values):.{digits}f} [{low:.{digits}f}–{high:.{digits}f}]"


def steps_of(shard: Shard, engine: str) -> list[dict[str, Any]]:
    """All steps of an engine, of all rounds."""
    return [step for done in shard["rounds"] for step in done[engine]]


def shares(steps: Sequence[dict[str, Any]], clock: str) -> list[float]:
    """Floor ÷ step for each step, by the `wall` clock or by seconds of `cpu`."""
    if clock == "cpu":
        return [step["floor"]["cpu"] / step["cpu"] for step in steps]
    return [(step["floor"]["generation"] + step["floor"]["training"]) / step["wall"] for step in steps]


def speedups(shard: Shard, clock: str) -> list[float]:
    """TRL's time of a step ÷ leverl's, medians within each round."""
    return [
        median(step[clock] for step in done["trl"]) / median(step[clock] for step in done["leverl"])
        for done in shard["rounds"]
    ]


def above_baseline(shard: Shard, engine: str) -> float:
    memory = shard["memory"][engine]
    return float(memory["peak"] - memory["baseline"])


def table(shards: dict[str, Shard]) -> str:
    """Two tables: the engines, and leverl against TRL."""
    engines = [_row(name, shard, engine) for name, shard in shards.items() for engine in ENGINES]
    ratios = [_ratio_row(name, shard) for name, shard in shards.items()]
    return "\n".join(
        [
            "| shard | engine | s per step | CPU s | of which generation (s) | floor: generation + training (s) "
            "| share of the floor | of CPU s | tokens/s | mean length | peak memory above baseline (whole), MB |",
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *engines,
            "",
            "| shard | steps/s, leverl ÷ TRL | by CPU s | peak memory, leverl ÷ TRL | gradients: max difference "
            "| 1 − cosine | rounds |",
            "|---|---|---|---|---|---|---|",
            *ratios,
        ]
    )


def _row(name: str, shard: Shard, engine: str) -> str:
    steps = steps_of(shard, engine)
    floor = [median(step["floor"][part] for step in steps) for part in ("generation", "training")]
    cells = [
        name,
        {"leverl": "leverl", "trl": "TRL"}[engine],
        spread([step["wall"] for step in steps]),
        spread([step["cpu"] for step in steps]),
        f"{median(step['generation'] for step in steps):.2f}",
        f"{floor[0]:.2f} + {floor[1]:.2f}",
        f"{100 * median(shares(steps, 'wall')):.0f} %",
        f"{100 * median(shares(steps, 'cpu')):.0f} %",
        f"{median(step['tokens'] / step['wall'] for step in steps):.0f}",
        f"{sum(step['tokens'] for step in steps) / sum(step['responses'] for step in steps):.1f}",
        f"{above_baseline(shard, engine):.0f} ({shard['memory'][engine]['peak']:.0f})",
    ]
    return f"| {' | '.join(cells)} |"


def _ratio_row(name: str, shard: Shard) -> str:
    gradients = shard["gradients"]
    cells = [
        name,
        spread(speedups(shard, "wall")),
        spread(speedups(shard, "cpu")),
        f"{above_baseline(shard, 'leverl') / above_baseline(shard, 'trl'):.2f}",
        f"{gradients['max_difference']:.1e}",
        f"{max(0.0, 1 - gradients['cosine']):.1e}",
        str(len(shard["rounds"])),
    ]
    return f"| {' | '.join(cells)} |"
