"""Do both engines compute the same gradient for the same batch? Else their speeds are not worth comparing.

leverl samples a batch; both engines score it, turn the scores into advantages and compute their loss, through the
code that they train with. Only sampling (in TRL) and the optimizer's step (in leverl) are left out.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from _engines import Leverl, Trl
from _workload import Setting
from torch import Tensor

TOLERANCE = 1e-4
"""Allowed relative difference; float noise is below 1e-6, another estimator or another mask above 1e-2."""


@dataclass(frozen=True)
class Agreement:
    """Of two gradients g and h, all parameters taken together."""

    max_difference: float  # max |g − h| ÷ max |h|
    cosine: float
    norms: tuple[float, float]  # leverl's, TRL's
    tokens: int

    @property
    def agrees(self) -> bool:
        return self.max_difference < TOLERANCE and self.cosine > 1 - TOLERANCE


def compare(setting: Setting, folder: Path) -> Agreement:
    """Gradients of both engines for one batch of `setting`."""
    leverl, trl = Leverl(setting, folder), Trl(replace(setting, trl_passes=1), folder)
    batch, ours = leverl_gradient(leverl)
    prompts = [list(prompt.token_ids) for prompt in batch.prompts]
    responses = [row[:n] for row, n in zip(batch.responses.tolist(), batch.lengths.tolist(), strict=True)]
    theirs = trl_gradient(trl, [p.text for p in batch.prompts], prompts, responses, setting.group_size)
    return agreement(ours, theirs, int(batch.mask.sum()))


def agreement(ours: dict[str, Tensor], theirs: dict[str, Tensor], tokens: int) -> Agreement:
    """Compare gradients by name of parameter."""
    if ours.keys() != theirs.keys():
        raise SystemExit(f"the engines train different parameters: {sorted(ours.keys() ^ theirs.keys())}")
    g = torch.cat([ours[name].flatten() for name in sorted(ours)]).double()
    h = torch.cat([theirs[name].flatten() for name in sorted(theirs)]).double()
    return Agreement(
        max_difference=float((g - h).abs().max() / h.abs().max()),
        cosine=float(torch.nn.functional.cosine_similarity(g, h, dim=0)),
        norms=(float(g.norm()), float(h.norm())),
        tokens=tokens,
    )


def leverl_gradient(engine: Leverl) -> tuple[Any, dict[str, Tensor]]:
    """A batch that leverl sampled, and the gradient its actor computes for it."""
    from leverl.engine.train.dataflow import ppo_iteration

    actor = engine.roles.actor
    kept: dict[str, Tensor] = {}

    def keep(_loss: Tensor) -> float:  # instead of a step, which clips the gradient
        kept.update(gradients(actor.policy.model))
        return 0.0

    with mock.patch.object(actor.optimizer, "step", keep):
        prompts = engine.source.next(engine.config.rollout.prompts_per_iteration)
        batch, _ = ppo_iteration(prompts, 1, engine.roles, engine.config, engine.clock, 0)
    return batch, kept


def trl_gradient(
    engine: Trl, texts: list[str], prompts: list[list[int]], responses: list[list[int]], group_size: int
) -> dict[str, Tensor]:
    """The gradient that TRL computes for the same prompts and responses."""
    trainer = engine.trainer

    def sampled(prompt_ids: list[list[int]], *_: Any, **__: Any) -> tuple[list[list[int]], None]:
        if prompt_ids != [prompt for prompt in prompts for _ in range(group_size)]:
            raise SystemExit("the engines tokenize the prompts differently")
        return responses, None

    trainer._generate_single_turn = sampled
    trainer.current_gradient_accumulation_steps = 1  # as the training loop sets it
    trainer.model.train()
    rows = [{"prompt": text} for text in texts for _ in range(group_size)]
    inputs = trainer._generate_and_score_completions(rows)
    trainer._compute_loss(trainer.model, inputs).backward()
    return gradients(trainer.model)


def gradients(model: Any) -> dict[str, Tensor]:
    """Gradients by name."""
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
