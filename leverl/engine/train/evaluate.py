"""Held-out evaluation: the mean score over prompts with its standard error."""

import math
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from leverl.config.schema import Config
from leverl.engine.data.batch import TRUNCATED
from leverl.engine.data.prompt import Prompt
from leverl.engine.data.source import encode_prompts, read_prompt_set
from leverl.engine.roles.meter import Metrics
from leverl.engine.roles.reward import Reward
from leverl.engine.roles.rollout import Rollout
from leverl.engine.runtime import local
from leverl.engine.train import checkpoint as checkpoints
from leverl.errors import CheckpointError, ConfigError
from leverl.record.observer import Sample

_SHOWN = 8


@dataclass(frozen=True)
class Evaluation:
    """Mean over prompts; several samples of a prompt are averaged first, so that they are not counted as
    independent. `standard_error` is None below two scored prompts."""

    mean: float
    standard_error: float | None
    prompts: int
    unscored: int
    length: float
    truncated: float
    samples: tuple[Sample, ...]

    def metrics(self) -> Metrics:
        found: Metrics = {
            "eval/score": self.mean,
            "eval/length": self.length,
            "eval/truncated": self.truncated,
        }
        if self.standard_error is not None:
            found["eval/score_se"] = self.standard_error
        return found


def evaluate(prompts: list[Prompt], rollout: Rollout, reward: Reward, config: Config) -> Evaluation:
    """Score the policy on held-out prompts; the same weights always give the same result.

    Source of the clustered standard error: Miller, "Adding Error Bars to Evals" (arXiv 2411.00640).
    """
    settings = config.evaluation
    samples = settings.samples if settings.temperature > 0 else 1
    generation = rollout.respond(prompts, samples, settings.temperature, config.data.data_seed)
    lengths = generation.mask.sum(dim=1)
    repeated = [prompt for prompt in prompts for _ in range(samples)]
    texts, scores = reward.score_held_out(repeated, generation.responses, lengths, generation.finish)
    per_prompt = _means(scores.scores.view(-1, samples), scores.scored.view(-1, samples))
    mean = sum(per_prompt) / len(per_prompt) if per_prompt else math.nan
    truncated = generation.finish == TRUNCATED
    shown = range(0, len(texts), samples)[:_SHOWN]
    return Evaluation(
        mean=mean,
        standard_error=_standard_error(per_prompt, mean),
        prompts=len(per_prompt),
        unscored=int((~scores.scored).sum()),
        length=float(lengths.double().mean()),
        truncated=float(truncated.double().mean()),
        samples=tuple(
            Sample(
                prompt=repeated[row].text,
                response=texts[row],
                score=float(scores.scores[row]) if bool(scores.scored[row]) else None,
                ground_truth=str(repeated[row].ground_truth),
                truncated=bool(truncated[row]),
            )
            for row in shown
        ),
    )


def _means(scores: Tensor, scored: Tensor) -> list[float]:
    """Mean score of each prompt that has a scored sample; both arguments [prompts, samples]."""
    return [
        float(row[known].double().mean())
        for row, known in zip(scores, scored, strict=True)
        if bool(known.any())
    ]


def _standard_error(values: list[float], mean: float) -> float | None:
    n = len(values)
    if n < 2:
        return None
    variance = sum((value - mean) ** 2 for value in values) / (n - 1)
    return math.sqrt(variance / n)


def evaluate_model(
    model: str | Path, config: Config, *, samples: int | None = None, seed: int = 0
) -> Evaluation:
    """Score a model that is on disk; see `leverl.evaluate`.

    Raises:
        ConfigError: no model there, or no held-out prompts in the configuration.
    """
    prompt_set = read_prompt_set(config.data, embedded=config.model.path == "embedded")
    if not prompt_set.eval:
        raise ConfigError("there are no held-out prompts: set data.eval_files.")
    wanted = {"samples": samples} if samples is not None else {}
    config = config.model_copy(
        update={"seed": seed, "evaluation": config.evaluation.model_copy(update=wanted)}
    )
    if config.evaluation.samples > 1 and config.evaluation.temperature == 0:
        raise ConfigError(
            f"samples = {config.evaluation.samples} of a greedy policy are all the same. "
            "Set eval_temperature above 0."
        )
    policy = local.load(config, _model_path(model))
    prompts, _ = encode_prompts(
        prompt_set.eval[: config.data.eval_size],
        policy.tokenizer,
        max_prompt_length=config.data.max_prompt_length,
    )
    return evaluate(prompts, local.rollout_of(config, policy), local.reward_of(config, policy), config)


def _model_path(model: str | Path) -> Path | str:
    """A run's last checkpoint, a checkpoint's model, or what can be loaded as it is."""
    path = Path(model)
    if (path / "checkpoints").is_dir():
        last = checkpoints.latest(path / "checkpoints")
        if last is None:
            raise CheckpointError(f"{path} has no complete checkpoint yet.")
        return last.model
    return path / "model" if (path / "model").is_dir() else model
