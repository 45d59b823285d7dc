"""The training loop: iterations, evaluations, checkpoints, and a record of it all in the run's folder."""

import json
import signal
import time
from dataclasses import asdict, replace
from typing import Any

import psutil

from leverl.engine.data.batch import TRUNCATED, Batch
from leverl.engine.roles.meter import Metrics
from leverl.engine.train import checkpoint as checkpoints
from leverl.engine.train.checkpoint import Checkpoint, Counters
from leverl.engine.train.dataflow import ppo_iteration
from leverl.engine.train.devices import gpu_metrics
from leverl.engine.train.evaluate import evaluate
from leverl.engine.train.mismatch import refuse_mismatch
from leverl.engine.train.session import Session
from leverl.engine.train.signals import StopRequest
from leverl.engine.train.stopwatch import Stopwatch
from leverl.record.layout import RunFolder
from leverl.record.metrics import MetricsWriter
from leverl.record.observer import Sample
from leverl.record.run_record import Outcome


def run(session: Session, stop: StopRequest) -> Checkpoint:
    """Train until `train.steps` or until `stop` wishes; always ends with a checkpoint.

    Raises:
        NonFiniteLoss, RewardFailed: training cannot go on. The last checkpoint is as it was.
    """
    clock = Stopwatch(session.observer)
    last: Checkpoint | None = None
    with MetricsWriter(session.folder.metrics) as writer:
        if session.counters.step == 0:
            writer.write(0, _evaluation_step(session, clock))
        while session.counters.step < session.config.train.steps and stop.signal is None:
            _step(session, clock, writer)
            if _due(session.config.train.save_every, session.counters.step):
                last = _save(session, clock)
    if last is None or last.counters.step != session.counters.step:
        last = _save(session, clock)
    return last


def outcome_of(stop: StopRequest, session: Session) -> tuple[Outcome, str]:
    """How a run that raised nothing ended."""
    if stop.signal is None or session.counters.step >= session.config.train.steps:
        return Outcome.FINISHED, ""
    return Outcome.INTERRUPTED, f"{signal.Signals(stop.signal).name} at step {session.counters.step}"


def _step(session: Session, clock: Stopwatch, writer: MetricsWriter) -> None:
    config, step = session.config, session.counters.step + 1
    began = time.perf_counter()
    prompts = session.source.next(config.rollout.prompts_per_iteration)
    batch, metrics = ppo_iteration(prompts, step, session.roles, config, clock, *session.seed)
    if step == session.first_step:
        refuse_mismatch(metrics, config.model.dtype)
    if batch.first_reward_error and not session.reward_raised:
        session.reward_raised = True
        session.note(f"the reward function failed at step {step}: {batch.first_reward_error}")
    session.counters = _counted(session.counters, batch, step)
    samples: tuple[Sample, ...] = ()
    if _due(config.evaluation.every, step) or step == config.train.steps:
        metrics |= _evaluation(session, clock)
        samples = _examples(batch, config.train.log_samples)
        _write_samples(session.folder, step, samples)
    seconds = time.perf_counter() - began
    session.counters = replace(session.counters, seconds=session.counters.seconds + seconds)
    metrics |= _usage(session, batch, seconds)
    metrics |= clock.lap()
    writer.write(step, metrics)
    session.observer.stepped(step, metrics, samples)


def _evaluation_step(session: Session, clock: Stopwatch) -> Metrics:
    """Step 0: what the policy can do before any training."""
    metrics = _evaluation(session, clock) | clock.lap()
    session.observer.stepped(0, metrics, ())
    return metrics


def _evaluation(session: Session, clock: Stopwatch) -> Metrics:
    if not session.held_out:
        return {}
    with clock("eval"):
        found = evaluate(session.held_out, session.roles.rollout, session.roles.reward, session.config)
    return found.metrics()


def _save(session: Session, clock: Stopwatch) -> Checkpoint:
    with clock("save"):
        saved = checkpoints.save(
            session.folder.checkpoints,
            session.roles,
            session.source.state_dict(),
            session.counters,
            session.config.train.keep,
        )
    session.record = session.record.with_(step=session.counters.step, seconds=session.counters.seconds)
    session.record.save(session.folder.record)
    session.observer.saved(session.counters.step, str(saved.path))
    return saved


def _due(every: int, step: int) -> bool:
    return every > 0 and step % every == 0


def _counted(counters: Counters, batch: Batch, step: int) -> Counters:
    return replace(
        counters,
        step=step,
        responses=counters.responses + batch.size,
        tokens=counters.tokens + int(batch.mask.sum()),
        prompt_tokens=counters.prompt_tokens + int(batch.prompt_lengths.sum()),
    )


def _usage(session: Session, batch: Batch, seconds: float) -> Metrics:
    counters = session.counters
    return {
        "train/epoch": session.source.epoch,
        "train/responses": counters.responses,
        "train/tokens": counters.tokens,
        "sync/weight_version": session.roles.rollout.engine.version,
        "perf/tokens_per_second": int(batch.mask.sum()) / seconds,
        "perf/memory_gb": psutil.Process().memory_info().rss / 2**30,
    } | gpu_metrics()


def _examples(batch: Batch, n: int) -> tuple[Sample, ...]:
    """The first responses of `n` different prompts, as far as there are so many."""
    stride = max(1, batch.size // max(1, n))
    return tuple(_example(batch, row) for row in range(0, batch.size, stride)[:n])


def _example(batch: Batch, row: int) -> Sample:
    prompt = batch.prompts[int(batch.group[row])]
    scored = bool(batch.require("scored")[row])
    return Sample(
        prompt=prompt.text,
        response=batch.texts[row],
        score=float(batch.require("scores")[row]) if scored else None,
        ground_truth=str(prompt.ground_truth),
        truncated=int(batch.finish[row]) == TRUNCATED,
    )


def _write_samples(folder: RunFolder, step: int, samples: tuple[Sample, ...]) -> None:
    if not samples:
        return
    folder.samples.mkdir(exist_ok=True)
    lines: list[dict[str, Any]] = [{"step": step, **asdict(sample)} for sample in samples]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    folder.samples_of(step).write_text(text, encoding="utf-8")
