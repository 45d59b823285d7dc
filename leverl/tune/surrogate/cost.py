"""What a run costs, as a function of the levers: log-linear, for cost is mostly a product of powers of them."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from leverl.tune.surrogate.kernel import Floats

_FEWEST: Final = 4
_RIDGES: Final = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
_SPAN: Final = 2.3  # predictions stay within a factor of ten around the usual cost


@dataclass(frozen=True)
class CostModel:
    """Relative cost over points of the encoded cube; the same everywhere when nothing is known."""

    _center: Floats | None = field(default=None, repr=False)
    _slopes: Floats | None = field(default=None, repr=False)

    def log_cost(self, x: Floats) -> Floats:
        """[m]: natural log of the cost at points [m, d], relative to the usual cost."""
        if self._center is None or self._slopes is None:
            return np.zeros(len(x))
        return np.clip((x - self._center) @ self._slopes, -_SPAN, _SPAN)


def cost_model(x: Floats, costs: Floats) -> CostModel:
    """Ridge regression of log `costs` [n] on points [n, d]; its strength by leave-one-out.

    Where it predicts left-out costs no better than their mean, all configurations count as equally dear.
    """
    known = np.isfinite(costs) & (costs > 0)
    if known.sum() < _FEWEST:
        return CostModel()
    points, logs = x[known], np.log(costs[known])
    center = points.mean(axis=0)
    centred, target = points - center, logs - logs.mean()
    n = len(target)
    alone = float(((target * n / (n - 1)) ** 2).sum())  # errors of the mean of all others
    best, slopes = alone, None
    for ridge in _RIDGES:
        inverse = np.linalg.inv(centred.T @ centred + ridge * np.eye(points.shape[1]))
        found = inverse @ centred.T @ target
        leverage = np.einsum("ij,jk,ik->i", centred, inverse, centred) + 1.0 / n
        error = float((((target - centred @ found) / np.maximum(1.0 - leverage, 1e-6)) ** 2).sum())
        if error < 0.9 * best:
            best, slopes = error, found
    return CostModel(center, slopes) if slopes is not None else CostModel()
