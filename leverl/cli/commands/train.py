"""`leverl train`: one training run."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leverl.cli import options
from leverl.cli.output import Output, Progress
from leverl.errors import ConfigError

if TYPE_CHECKING:
    from leverl import Result

EXAMPLES = (
    "leverl train grpo                                        # a recipe, a YAML file or a run's folder",
    "leverl train grpo actor_learning_rate=2e-6 --name try1   # with a setting of your own",
    "leverl train --resume runs/try1                          # go on with a run",
)


@dataclass(frozen=True)
class Request:
    """What the user asked for, free of contradictions."""

    source: str
    settings: tuple[str, ...]
    name: str | None
    out: Path
    resume: bool
    from_checkpoint: Path | None
    clean: bool


def run(
    source: Annotated[
        str | None,
        typer.Argument(
            metavar="SOURCE",
            help="Recipe, YAML file or run folder; with --resume the run folder, with --from none.",
            show_default=False,
        ),
    ] = None,
    settings: options.Settings = None,
    name: options.Name = None,
    out: Annotated[Path, typer.Option("--out", help="Where the run's folder goes.")] = Path("runs"),
    resume: options.Resume = False,
    from_checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Fork this checkpoint or run, with changed settings.", show_default=False
        ),
    ] = None,
    clean: options.Clean = False,
    yes: options.Yes = False,
    track: options.Track = None,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    progress: options.ShowProgress = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Train a policy with reinforcement learning."""
    output = Output(json=json, quiet=quiet)
    request = _request(source, tuple(settings or ()), name, out, resume, from_checkpoint, clean)
    if dry_run:
        _plan(request, output)
        return 0
    _settle_name(request, yes=yes)
    if verbose:
        output.say(_resolved(request)[1])
    return _train(request, output, "none" if quiet else progress, tuple(track or ()))


def _train(request: Request, output: Output, progress: Progress, track: tuple[str, ...]) -> int:
    from leverl import api
    from leverl.cli.signals import terminable
    from leverl.record.tracked_observer import TrackedObserver
    from leverl.record.tracking import open_trackers
    from leverl.report.live_train import make_train_view

    parent = Path(request.source).resolve().parent if request.resume else request.out
    view = make_train_view(progress, output.stream)
    observer = TrackedObserver(view, open_trackers(track), parent)
    with terminable() as signal:
        try:
            with output.guarded():
                result = api.train(
                    request.source,
                    request.settings,
                    name=request.name,
                    out=request.out,
                    resume=request.resume,
                    from_checkpoint=request.from_checkpoint,
                    clean=request.clean,
                    observer=observer,
                )
        except KeyboardInterrupt:
            return _stopped_at_once(request, output, signal.exit_code)
    for hint in observer.hints:
        output.say(hint)
    return _tell(result, output, told=progress != "none")


def _request(
    source: str | None,
    settings: tuple[str, ...],
    name: str | None,
    out: Path,
    resume: bool,
    from_checkpoint: Path | None,
    clean: bool,
) -> Request:
    """Put the arguments together, and refuse those that contradict each other."""
    if from_checkpoint is not None:
        if source is not None and "=" not in source:
            raise ConfigError(
                f"--from {from_checkpoint} brings its own configuration: leave '{source}' out, "
                "and change settings with key=value."
            )
        settings, source = (source, *settings) if source else settings, source and "grpo"
    elif source is None:
        raise ConfigError(
            "nothing to train: name a recipe, a YAML file or a run. For example: leverl train grpo"
        )
    else:
        options.check_first_word(source, "train", "RUN" if resume else "grpo")
    if resume:
        others = {"--name": name, "--clean": clean, "--from": from_checkpoint, "key=value": settings}
        given = [flag for flag, value in others.items() if value]
        if given:
            raise ConfigError(
                f"--resume goes on exactly as the run was started, without {', '.join(given)}. "
                f"To change settings, fork: leverl train --from {source or from_checkpoint} key=value"
            )
    if clean and name is None:
        raise ConfigError("--clean needs --name: it deletes the run of that name.")
    return Request(source or "grpo", settings, name, out, resume, from_checkpoint, clean)


def _settle_name(request: Request, *, yes: bool) -> None:
    from leverl.cli.folders import settle
    from leverl.record.naming import check_name

    if request.name is not None and not request.resume:
        settle(request.out / check_name(request.name), "train", clean=request.clean, yes=yes)


def _plan(request: Request, output: Output) -> None:
    config, text = _resolved(request)
    words = ["leverl train", *(["--from", str(request.from_checkpoint)] if request.from_checkpoint else [])]
    words += [request.source] if request.from_checkpoint is None else []
    output.finish({"config": config}, text, " ".join([*words, *request.settings]))


def _resolved(request: Request) -> tuple[dict[str, Any], str]:
    """The configuration of the run to be, and the same for people with its batch arithmetic."""
    from leverl.config import arithmetic, loader

    source = request.source
    if request.from_checkpoint is not None:
        from leverl.cli.folders import run_of

        source = str(run_of(request.from_checkpoint) or request.from_checkpoint)
    loaded = loader.load(source, request.settings)
    yaml = loader.dump(loaded.config, header=f"Resolved from {loaded.source}.")
    return loaded.config.model_dump(mode="json"), f"{yaml}\n{arithmetic.describe(loaded.config)}"


def _stopped_at_once(request: Request, output: Output, code: int) -> int:
    """A second Ctrl-C, or a signal before the loop began."""
    from leverl.record.layout import RunFolder
    from leverl.record.run_record import load_record, own_process

    folders = [Path(request.source)] if request.resume else sorted(request.out.glob("*"))
    for folder in folders:
        record = load_record(RunFolder(folder).record)
        if record and {"pid": record.pid, "pid_created": record.pid_created} == own_process():
            text = "stopped at once; what came after the last checkpoint is lost."
            output.finish(
                {"folder": folder, "outcome": record.outcome}, text, f"leverl train --resume {folder}"
            )
            return code
    output.finish({"folder": None, "outcome": "interrupted"}, "stopped before the run began.")
    return code


def _tell(result: "Result", output: Output, *, told: bool) -> int:
    """The last words and the exit code; the live view, where there was one, has `told` the outcome."""
    from leverl.record.run_record import Outcome
    from leverl.report.terminal import run_line, run_next

    record, folder = result.record, result.folder
    content = {
        "folder": folder,
        "outcome": result.outcome,
        "score": record.score,
        "step": record.step,
        "until": record.until,
        "seconds": record.seconds,
        "checkpoint": result.checkpoint,
        "message": record.message,
    }
    failed = result.outcome not in (Outcome.FINISHED, Outcome.STOPPED, Outcome.INTERRUPTED)
    if failed:
        typer.echo(f"error: {record.message or result.outcome} (in {folder})", err=True)
    output.finish(content, "" if told else f"{folder.name}: {run_line(record)}", run_next(record, folder))
    if result.outcome is Outcome.INTERRUPTED:
        return 143 if "SIGTERM" in record.message else 130
    return 3 if failed else 0
