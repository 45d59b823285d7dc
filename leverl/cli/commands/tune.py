"""`leverl tune`: find settings within a budget, and prove them on fresh seeds."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from leverl.cli import options
from leverl.cli.output import Output, Progress
from leverl.errors import ConfigError

if TYPE_CHECKING:
    from leverl.tune.gate import Gate, GateResult
    from leverl.tune.model import StudyView

EXAMPLES = (
    "leverl tune demo                                   # a packaged study, or your study.yaml",
    "leverl tune study.yaml budget.trials=20 steps=100  # another budget, a setting of every run",
    "leverl tune --resume studies/lr --retry failed     # go on, and try failed runs again",
)

WATCH_SECONDS = 1.0


@dataclass(frozen=True)
class Request:
    """What the user asked for, free of contradictions."""

    study: str
    settings: tuple[str, ...]
    name: str | None
    out: Path
    resume: bool
    clean: bool
    parallel: int | None
    retry_failed: bool
    track: tuple[str, ...] = ()
    ci: bool = False
    gate: str | None = None


def run(
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help="Packaged study or YAML file; with --resume or --watch the study's folder."
        ),
    ],
    settings: options.Settings = None,
    parallel: Annotated[
        int | None, typer.Option("--parallel", min=1, help="Runs side by side.", show_default=False)
    ] = None,
    name: options.Name = None,
    out: Annotated[Path, typer.Option("--out", help="Where the study's folder goes.")] = Path("studies"),
    resume: options.Resume = False,
    retry: Annotated[
        Literal["failed"] | None,
        typer.Option("--retry", help="With --resume: run failed runs again.", show_default=False),
    ] = None,
    clean: options.Clean = False,
    yes: options.Yes = False,
    watch: Annotated[bool, typer.Option("--watch", help="Only look at a study that runs elsewhere.")] = False,
    track: options.Track = None,
    ci: Annotated[
        bool,
        typer.Option("--ci", help="For pipelines: plain progress, a job summary, outputs for later steps."),
    ] = False,
    fail_unless: Annotated[
        str | None,
        typer.Option(
            "--fail-unless",
            metavar="GATE",
            help="Exit 1 unless this holds in the end, such as 'gain > 0 at 95%'.",
            show_default=False,
        ),
    ] = None,
    dry_run: options.DryRun = False,
    json: options.Json = False,
    progress: options.ShowProgress = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Find settings that beat the defaults, and prove them."""
    output = Output(json=json, quiet=quiet)
    options.check_first_word(study, "tune", "FOLDER" if resume or watch else "demo")
    view = "none" if quiet else "plain" if ci and progress == "auto" else progress
    if watch:
        return _watch(Path(study), output, view)
    request = Request(
        study,
        tuple(settings or ()),
        name,
        out,
        resume,
        clean,
        parallel,
        retry_failed=retry is not None,
        track=tuple(track or ()),
        ci=ci,
        gate=fail_unless,
    )
    _check(request)
    if dry_run:
        _tell_translation(request, output)
        _plan(request, output, only=True)
        return 0
    _tell_translation(request, output)
    if fail_unless is not None:
        from leverl.tune.gate import parse_gate

        parse_gate(fail_unless)  # a typing error must not be found out after hours
    _settle_name(request, yes=yes)
    _ask_for_many(request, yes=yes)
    if verbose:
        _plan(request, output, only=False)
    if not ci:
        return _tune(request, output, view)
    from leverl.cli.ci import announced

    with announced(sys.stderr):
        return _tune(request, output, view)


def _check(request: Request) -> None:
    """Refuse flags that contradict each other, before anything heavy is imported."""
    if request.resume:
        given = [flag for flag, value in {"--name": request.name, "--clean": request.clean}.items() if value]
        if given:
            raise ConfigError(
                f"--resume goes on with {request.study}, so it does not go with {', '.join(given)}."
            )
    elif request.retry_failed:
        raise ConfigError("--retry failed needs --resume: leverl tune --resume FOLDER --retry failed")


def _tune(request: Request, output: Output, progress: Progress) -> int:
    from leverl import api
    from leverl.cli.signals import terminable
    from leverl.report.live_tune import make_tune_view
    from leverl.tune.gate import parse_gate
    from leverl.tune.running.interruption import StudyInterrupted
    from leverl.tune.running.tracking import track_study

    gate = None if request.gate is None else parse_gate(request.gate)
    observer = track_study(make_tune_view(progress, output.stream), request.track)
    with terminable() as signal:
        try:
            with output.guarded():
                winner = api.tune(
                    request.study,
                    request.settings,
                    name=request.name,
                    out=request.out,
                    resume=request.resume,
                    clean=request.clean,
                    parallel=request.parallel,
                    retry_failed=request.retry_failed,
                    observer=observer,
                )
        except StudyInterrupted as interruption:
            content = {"folder": interruption.folder, "winner": None, "outcome": "interrupted"}
            text = "interrupted; the runs wrote checkpoints."
            output.finish(content, text, f"leverl tune --resume {interruption.folder}")
            return interruption.exit_code
        except KeyboardInterrupt:
            output.finish({"folder": None, "winner": None, "outcome": "interrupted"}, "stopped.")
            return signal.exit_code
    for hint in observer.hints:
        output.say(hint)
    return _judge(winner.best_yaml.parent, output, gate, request, told=progress != "none")


def _judge(folder: Path, output: Output, gate: "Gate | None", request: Request, *, told: bool) -> int:
    """The last words, and the exit code: 1 where the gate is not met."""
    from leverl.cli.ci import GATE_NOT_MET, publish
    from leverl.tune.view import read_study

    view = read_study(folder)
    result = None if gate is None else gate.check(view)
    _tell(folder, output, told=told, gate=result)
    if request.ci:
        return publish(view, result, sys.stderr)
    return 0 if result is None or result.passed else GATE_NOT_MET


def _tell(folder: Path, output: Output, *, told: bool, gate: "GateResult | None" = None) -> None:
    """The last words; the live view, where there was one, has `told` the verdict."""
    from leverl.report.terminal import study_next
    from leverl.tune.view import read_study

    view = read_study(folder)
    content = {"folder": folder, "phase": view.phase, "runs": len(view.history.runs), "winner": view.winner}
    lines = []
    if view.winner is not None:
        lines = [] if told else [view.winner.verdict]
        lines.append(f"report: {view.winner.report}")
    if gate is not None:
        content["gate"] = {"passed": gate.passed, "text": gate.text}
        lines.append(f"gate: {gate.text}")
    output.finish(content, "\n".join(lines), study_next(view))


def _plan(request: Request, output: Output, *, only: bool) -> None:
    from leverl.report.study_plan import describe, facts
    from leverl.tune.plan import check_space_can_run, places, prepare
    from leverl.tune.study_file import load_study
    from leverl.tune.view import load_stored

    if request.resume:
        folder = Path(request.study)
        study = load_stored(folder)
    else:
        study = load_study(request.study, request.settings, request.name)
        folder = request.out / study.name
    plan = prepare(study, folder)
    parallel = places(study, request.parallel)
    if not only:
        output.say(describe(plan, parallel))
        return
    check_space_can_run(plan)
    again = " ".join(
        ["leverl tune", *(["--resume"] if request.resume else []), request.study, *request.settings]
    )
    output.finish(facts(plan, parallel), describe(plan, parallel), again)


def _tell_translation(request: Request, output: Output) -> None:
    """What of a W&B sweep file was understood, and what was not."""
    if request.resume:
        return
    from leverl.tune.study_file import sweep_translation

    translation = sweep_translation(request.study)
    if translation is not None:
        for note in translation.notes:
            output.say(f"sweep: {note}")
        for part in translation.left_out:
            output.say(f"sweep: left out {part}")


def _ask_for_many(request: Request, *, yes: bool) -> None:
    from leverl.cli.rehearsal import ask_for_many
    from leverl.tune.plan import places, prepare
    from leverl.tune.study_file import load_study

    if not request.resume:
        study = load_study(request.study, request.settings, request.name)
        if study.sampler == "grid":
            plan = prepare(study, request.out / study.name)
            ask_for_many(plan, places(study, request.parallel), yes=yes)


def _settle_name(request: Request, *, yes: bool) -> None:
    from leverl.cli.folders import settle
    from leverl.tune.study_file import load_study

    if not request.resume:
        study = load_study(request.study, request.settings, request.name)
        settle(request.out / study.name, "tune", clean=request.clean, yes=yes)


def _watch(folder: Path, output: Output, progress: Progress) -> int:
    """Show the study until it is over or the user has seen enough. Changes nothing."""
    from leverl.report.live_tune import make_tune_view
    from leverl.tune.view import read_study

    view = read_study(folder)
    shown = make_tune_view(progress, output.stream)
    try:
        while _unfinished(view):
            shown.refreshed(view)
            time.sleep(WATCH_SECONDS)
            view = read_study(folder)
    except KeyboardInterrupt:
        shown.ended(view)
        output.finish({"folder": folder, "phase": view.phase}, "", f"leverl tune --watch {folder}")
        return 0
    shown.ended(view)
    _tell(folder, output, told=progress != "none")
    return 0


def _unfinished(view: "StudyView") -> bool:
    from leverl.tune.strategy import DONE

    return view.phase != DONE
