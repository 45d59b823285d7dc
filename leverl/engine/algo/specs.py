"""The algorithms of this folder as data: what each computes, which roles it needs, where it comes from."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal


@dataclass(frozen=True)
class AlgorithmSpec:
    """One algorithm. All use the clipped policy loss; they differ in the advantage."""

    name: str
    title: str
    advantage: Literal["group", "leave_one_out", "gae"]
    needs_critic: bool
    needs_group: bool
    """Needs at least two responses per prompt."""
    default_kl_in: Literal["reward", "loss"]
    citation: str
    unspecified: str
    """What the source leaves open, and what is done here."""


_SPECS = (
    AlgorithmSpec(
        name="grpo",
        title="Group Relative Policy Optimization",
        advantage="group",
        needs_critic=False,
        needs_group=True,
        default_kl_in="loss",
        citation="Shao et al. 2024, DeepSeekMath, arXiv:2402.03300",
        unspecified=(
            "Which standard deviation, and a guard against 0: here the unbiased one plus 1e-4, and exactly 0 "
            "for groups of equal rewards. The clip range: here 0.2. The paper averages over tokens, then "
            "sequences, with k3 in the loss; here the defaults are the token mean and k2, whose gradient is "
            "that of the KL."
        ),
    ),
    AlgorithmSpec(
        name="rloo",
        title="REINFORCE Leave-One-Out",
        advantage="leave_one_out",
        needs_critic=False,
        needs_group=True,
        default_kl_in="reward",
        citation="Ahmadian et al. 2024, Back to Basics, arXiv:2402.14740; Kool et al. 2019",
        unspecified=(
            "More than one update per batch: the paper takes one, without ratio or clipping. Here the "
            "clipped loss is used, whose gradient in the first update is the paper's. Averaging over tokens: "
            "the paper treats a response as one action, which is loss_aggregation=seq_mean_token_sum."
        ),
    ),
    AlgorithmSpec(
        name="ppo",
        title="Proximal Policy Optimization",
        advantage="gae",
        needs_critic=True,
        needs_group=False,
        default_kl_in="reward",
        citation="Schulman et al. 2017, arXiv:1707.06347; advantages: Schulman et al. 2015, arXiv:1506.02438",
        unspecified=(
            "Language models: that a KL penalty is part of the reward is from Stiennon et al. 2020 "
            "(arXiv:2009.01325). Value clipping and whitening of advantages are from implementations, not "
            "from the paper. Its gamma and lambda are for control tasks; the default here is 1 for both."
        ),
    ),
)

ALGORITHMS: Mapping[str, AlgorithmSpec] = MappingProxyType({spec.name: spec for spec in _SPECS})
