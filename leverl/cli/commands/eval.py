"""`leverl eval`: score a model on held-out prompts."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leverl.cli import options
from leverl.cli.folders import run_of
from leverl.cli.output import Output

if TYPE_CHECKING:
    from leverl import Evaluation

SHOWN = 3  # samples printed for people

EXAMPLES = (
    "leverl eval runs/try1                                   # a run: last checkpoint, its own prompts",
    "leverl eval runs/try1/checkpoints/step-000200 length=4  # one checkpoint, longer prompts",
    "leverl eval Qwen/Qwen2.5-0.5B --config grpo-llm         # a Hugging Face model on a recipe's task",
)


def run(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Run folder, checkpoint folder or Hugging Face model.")
    ],
    settings: options.Settings = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            help="Recipe, file or run that says what to evaluate on. [the model's run, else grpo]",
            show_default=False,
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            "--samples", min=1, help="Responses per prompt. [the configuration's]", show_default=False
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Score a model on held-out prompts, with standard error."""
    options.check_first_word(model, "eval", "runs/NAME")
    output = Output(json=json, quiet=quiet)
    own_run = run_of(Path(model))
    source = config or str(own_run or "grpo")
    from leverl import api
    from leverl.cli.signals import terminable

    with terminable() as signal:
        try:
            with output.guarded():
                found = api.evaluate(model, source, tuple(settings or ()), samples=samples)
        except KeyboardInterrupt:
            output.say("interrupted; nothing was written.")
            return signal.exit_code
    content, text = _told(found, len(found.samples) if verbose else SHOWN)
    following = f"leverl report {own_run}" if own_run else f"leverl train {source} model={model}"
    output.finish({"model": model, "config": source, **content}, text, following)
    return 0


def _told(found: "Evaluation", shown: int) -> tuple[dict[str, Any], str]:
    """The result for programs and for people."""
    from leverl.report.live_train import sample_words
    from leverl.report.numbers import percent, plural, with_error

    content = {
        "mean": found.mean,
        "standard_error": found.standard_error,
        "prompts": found.prompts,
        "unscored": found.unscored,
        "length": found.length,
        "truncated": found.truncated,
        "samples": found.samples,
    }
    lines = [
        f"score      {with_error(found.mean, found.standard_error)} over {plural(found.prompts, 'prompt')}",
        f"length     {found.length:.1f} tokens on average, {percent(found.truncated)} truncated",
        *([f"unscored   {plural(found.unscored, 'response')}"] if found.unscored else []),
        *(f"sample     {sample_words(sample)}" for sample in found.samples[:shown]),
    ]
    return content, "\n".join(lines)
