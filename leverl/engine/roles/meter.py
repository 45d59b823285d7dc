"""Metrics that are gathered piece by piece within one update phase."""

from collections import defaultdict

Metrics = dict[str, float | int | list[int]]


class Meter:
    """Weighted means, so that a metric does not depend on how rows were cut into micro-batches."""

    def __init__(self) -> None:
        self._sums: defaultdict[str, float] = defaultdict(float)
        self._weights: defaultdict[str, float] = defaultdict(float)

    def add(self, name: str, value: float, weight: float = 1.0) -> None:
        """Count `value` with `weight` (tokens, usually)."""
        self._sums[name] += value * weight
        self._weights[name] += weight

    def count(self, name: str) -> float:
        """The weight a metric has gathered."""
        return self._weights[name]

    def means(self) -> Metrics:
        """The mean of each metric that had any weight."""
        return {name: self._sums[name] / weight for name, weight in self._weights.items() if weight > 0}
