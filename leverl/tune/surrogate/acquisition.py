"""How much a new configuration promises: BoTorch's qLogNoisyExpectedImprovement on our process.

Noisy expected improvement asks for a true mean above the best *true* mean among known configurations, drawn jointly
from the posterior, so one lucky score neither stops the search nor leads it (Letham et al. 2019; in logarithms Ament
et al. 2023, arXiv:2310.20708). Runs in flight count as known configurations whose values are not yet known.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np
import torch

from leverl.tune.surrogate.gp import Process
from leverl.tune.surrogate.kernel import Floats

with warnings.catch_warnings():  # linear_operator compiles with torch.jit, which says that it is deprecated
    warnings.filterwarnings("ignore", "`torch.jit", DeprecationWarning)
    from botorch.acquisition.logei import qLogNoisyExpectedImprovement
    from botorch.models import SingleTaskGP
    from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
    from botorch.sampling.normal import SobolQMCNormalSampler
    from botorch.settings import validate_input_scaling
    from linear_operator.utils.warnings import NumericalWarning

_SAMPLES: Final = 128
_PRUNING: Final = 512  # draws that decide which known configurations may be the best
_MOST_KNOWN: Final = 24
_CHUNK: Final = 512


class Improvement:
    """Log noisy expected improvement over points of the encoded cube; `eligible` [n] known ones may be the best."""

    def __init__(self, process: Process, pending: Floats, eligible: Sequence[bool], seed: int) -> None:
        known = _contenders(process, eligible, np.random.default_rng([seed, 3]))
        with torch.no_grad(), _quiet():
            self._function = qLogNoisyExpectedImprovement(
                _botorch_model(process),
                X_baseline=torch.from_numpy(known),
                sampler=SobolQMCNormalSampler(torch.Size([_SAMPLES]), seed=seed % 2**31),
                X_pending=torch.from_numpy(pending) if len(pending) else None,
                prune_baseline=False,  # done above, with our own generator
            )

    def __call__(self, x: Floats) -> Floats:
        """[m] at points [m, d]."""
        with torch.no_grad(), _quiet():
            parts = [
                self._function(torch.from_numpy(x[first : first + _CHUNK, None, :]))
                for first in range(0, len(x), _CHUNK)
            ]
        return np.asarray(torch.cat(parts).numpy()) if parts else np.zeros(0)


@contextmanager
def _quiet() -> Iterator[None]:
    """Points next to each other make a covariance that needs a little jitter; that is no news."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        yield


def _contenders(process: Process, eligible: Sequence[bool], generator: np.random.Generator) -> Floats:
    """Known configurations that were the best in at least one draw, the most frequent first.

    Only the `eligible` ones can be the best, unless there are none.
    """
    x = process.data.x[np.array(eligible)] if any(eligible) else process.data.x
    values, vectors = np.linalg.eigh(process.covariance(x))
    normal = generator.standard_normal((_PRUNING, len(x)))
    draws = process.mean(x) + normal @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    wins = np.bincount(draws.argmax(axis=1), minlength=len(x))
    order = np.argsort(-wins, kind="stable")
    return np.asarray(x[[place for place in order if wins[place]][:_MOST_KNOWN]])


def _botorch_model(process: Process) -> SingleTaskGP:
    """The same process in BoTorch's terms; nothing is fitted there."""
    kernel = get_covar_module_with_dim_scaled_prior(process.data.x.shape[1], use_rbf_kernel=False)
    with validate_input_scaling(False):
        model = SingleTaskGP(
            torch.from_numpy(process.data.x),
            torch.from_numpy(process.data.y[:, None]),
            torch.from_numpy(process.variances[:, None]),
            covar_module=kernel,
            outcome_transform=None,
        )
    kernel.lengthscale = torch.from_numpy(process.hyper.lengthscales)
    model.mean_module.initialize(constant=process.hyper.mean)
    return model.eval()
