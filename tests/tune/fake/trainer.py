"""A trainer that takes milliseconds: reads a configuration, writes a run folder, fails on demand.

trainer.py CONFIG FOLDER [--resume]; the environment variable FAKE holds its behaviour as JSON:
    flat                every configuration is equally good
    noise               standard deviation between seeds
    oom_above, nan_above, crash_above   learning rates that fail
    crash_all           every run crashes before it writes anything
    full                {run id: how often the disk is full when it writes its first step}
    gate                a FIFO: runs block on it half-way, until it is opened for writing and closed
    gate_from           only runs whose id sorts from here on block
    kill                {run id: how often it kills itself with SIGKILL}
    log                 a file that gets one line for each start
    pace                seconds that a step takes
    clings              share of the steps that do not begin while the tuner is dead: until the next one has come
                        so far that it must have adopted the run
"""

import errno
import json
import math
import os
import random
import signal
import sys
import time
from pathlib import Path

import yaml

from leverl.record.layout import RunFolder
from leverl.record.metrics import MetricsWriter, read_lines
from leverl.record.run_record import Outcome, RunRecord, Score, load_record, now, own_process

STEPS = 4
NO_SPACE = os.strerror(errno.ENOSPC)


class Stopped(Exception):
    pass


def stop(number: int, frame: object) -> None:
    raise Stopped


def quality(config: dict, fake: dict, seed: int) -> float:
    rate = config["actor"]["learning_rate"]
    epochs = config["algorithm"]["ppo_epochs"]
    noise = fake.get("noise", 0.002) * random.Random(f"{seed} {rate} {epochs}").gauss(0, 1)
    if fake.get("flat"):
        return 0.5 + noise
    return 0.9 - 0.1 * (math.log10(rate) + 1.5) ** 2 - 0.03 * (epochs - 2) ** 2 + noise


def outcome_of(config: dict, fake: dict) -> Outcome:
    rate = config["actor"]["learning_rate"]
    for name, outcome in (
        ("oom_above", Outcome.OUT_OF_MEMORY),
        ("nan_above", Outcome.NON_FINITE),
        ("crash_above", Outcome.CRASHED),
    ):
        if rate > fake.get(name, math.inf):
            return outcome
    return Outcome.FINISHED


def main() -> int:
    fake = json.loads(os.environ["FAKE"])
    resume = "--resume" in sys.argv
    paths = RunFolder(Path(sys.argv[2]))
    if "log" in fake:
        with open(fake["log"], "a") as log:
            log.write(f"{paths.path.name}{' resume' if resume else ''}\n")
    if fake.get("crash_all"):
        raise RuntimeError("the reward function is broken")
    if not resume and paths.exists():
        raise RuntimeError(f"{paths.path} holds a run already")
    config = yaml.safe_load((paths.config if resume else Path(sys.argv[1]) / "config.yaml").read_text())
    if not resume:
        paths.path.mkdir(parents=True, exist_ok=True)
        paths.config.write_text(yaml.safe_dump(config))
    before = load_record(paths.record) if resume else None
    record = before or RunRecord(
        id=paths.path.name,
        seed=config["seed"],
        until=STEPS,
        source="fake",
        started=now(),
        token=os.environ["LEVERL_RUN_TOKEN"],
    )
    record = record.with_(outcome=None, **own_process())
    record.save(paths.record)
    if disk_full(paths, fake.get("full", {}).get(paths.path.name, 0)):
        record.with_(outcome=Outcome.CRASHED, message=str(OSError(errno.ENOSPC, NO_SPACE))).save(paths.record)
        return 1
    try:
        return train(paths, config, fake, record)
    except Stopped:
        save_checkpoint(paths)
        record.with_(outcome=Outcome.INTERRUPTED, message="SIGTERM").save(paths.record)
        return 143


def train(paths: RunFolder, config: dict, fake: dict, record: RunRecord) -> int:
    done = max((step for step, _ in read_lines(paths.metrics)), default=0)
    final = quality(config, fake, config["seed"])
    with MetricsWriter(paths.metrics) as metrics:
        for step in range(done + 1, STEPS + 1):
            time.sleep(fake.get("pace", 0))
            if random.Random(f"{paths.path.name} {step}").random() < fake.get("clings", 0):
                cling(paths.path.parent.parent)
            score = final * min(1.0, step / 2)
            metrics.write(
                step,
                {
                    "eval/score": score,
                    "eval/score_se": 0.01,
                    "kl_divergence": 0.01 / config["algorithm"]["ppo_epochs"],
                    "response_length/mean": 4.0,
                    "train/responses": step * 256,
                    "train/tokens": step * 1024,
                },
            )
            if step == 2:
                halfway(paths, fake)
    outcome = outcome_of(config, fake)
    if outcome is Outcome.FINISHED:
        save_checkpoint(paths)
        record = record.with_(score=Score(final, 0.01, 3))
    message = "" if outcome is Outcome.FINISHED else f"fake {outcome}"
    record.with_(outcome=outcome, message=message, step=STEPS, seconds=1.0, ended=now()).save(paths.record)
    return 0 if outcome is Outcome.FINISHED else 3


def cling(study: Path) -> None:
    """Wait for a new tuner if there is none."""
    tuner = json.loads((study / ".lock").read_text() or "{}").get("pid")
    since, deadline = time.time(), time.monotonic() + 30
    while not Path(f"/proc/{tuner}").exists() and time.monotonic() < deadline:
        clock = study / "clock.json"
        if clock.exists() and clock.stat().st_mtime > since:
            return
        time.sleep(0.02)


def disk_full(paths: RunFolder, times: int) -> bool:
    seen = paths.path.parent / f".full-{paths.path.name}"
    count = int(seen.read_text()) if seen.exists() else 0
    seen.write_text(str(count + 1))
    return count < times


def halfway(paths: RunFolder, fake: dict) -> None:
    name = paths.path.name
    deaths = paths.path.parent / f".deaths-{name}"
    if (len(deaths.read_text()) if deaths.exists() else 0) < fake.get("kill", {}).get(name, 0):
        with deaths.open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)
    if "gate" in fake and name >= fake.get("gate_from", ""):
        with open(fake["gate"]) as gate:
            gate.read()


def save_checkpoint(paths: RunFolder) -> None:
    (paths.checkpoints / "step-000002").mkdir(parents=True, exist_ok=True)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    sys.exit(main())
