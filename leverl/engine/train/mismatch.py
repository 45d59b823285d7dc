"""The gate at the first step, before anything of it is saved: trainer and sampler must agree on log-probs."""

from typing import Final

from leverl.engine.roles.meter import Metrics
from leverl.errors import TrainingFailed

LARGEST_MEAN: Final = {"float32": 1e-3, "bfloat16": 0.1}
"""Mean |log-prob of trainer − log-prob of sampler|. Float noise is about 1e-6 in float32 and 1e-2 in bfloat16; a wrong
temperature, a shifted token or stale weights give 0.1 and more."""


def refuse_mismatch(metrics: Metrics, dtype: str) -> None:
    """Look at the first step of a sitting; later drift is only logged (`rollout/mismatch_*`).

    Raises:
        TrainingFailed: the two disagree by more than rounding; training on such ratios looks fine and is wrong.
    """
    found = metrics.get("rollout/mismatch_mean")
    if isinstance(found, float) and not found <= LARGEST_MEAN[dtype]:
        raise TrainingFailed(
            f"trainer and sampler disagree about the log-probs of the first responses: mean |difference| {found:.3g}, "
            f"allowed {LARGEST_MEAN[dtype]:g} for {dtype}. Usual causes: temperature, chat template or padding treated "
            "differently, or a model whose cached decoding differs from its full forward pass."
        )
