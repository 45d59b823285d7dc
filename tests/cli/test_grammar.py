"""The grammar of the command line: flags are frozen, typos are answered, help starts with examples."""

import shlex
from pathlib import Path

import pytest

import leverl
from leverl import plugins
from leverl.cli.group import COMMANDS, build
from leverl.cli.main import main

COMMON = {"-h", "--help"}
FLAGS = {
    "env": {"--json"},
    "eval": {"--config", "--samples", "--json", "-q", "--quiet", "-v", "--verbose"},
    "import": {"--study", "--into", "--target", "--dry-run", "--json", "-q", "--quiet", "-v", "--verbose"},
    "levers": {"--json"},
    "report": {"--json"},
    "train": {
        "--name", "--out", "--resume", "--from", "--clean", "--yes", "--track", "--dry-run", "--json",
        "--progress", "-q", "--quiet", "-v", "--verbose",
    },
    "tune": {
        "--parallel", "--name", "--out", "--resume", "--retry", "--clean", "--yes", "--watch", "--dry-run",
        "--track", "--ci", "--fail-unless", "--json", "--progress", "-q", "--quiet", "-v", "--verbose",
    },
}  # fmt: skip
"""A flag only changes how a call runs or prints; whatever changes the experiment is key=value."""


def test_commands_are_frozen() -> None:
    assert plugins.names(COMMANDS) == sorted(FLAGS)


@pytest.mark.parametrize("name", FLAGS)
def test_flags_are_frozen(name: str) -> None:
    found = {flag for parameter in build(name).params for flag in parameter.opts if flag.startswith("-")}
    assert found == FLAGS[name]


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_starts_with_three_examples(name: str, flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, flag]) == 0
    title, *lines = capsys.readouterr().out.splitlines()
    assert title == "Examples:"
    examples = [shlex.split(line, comments=True) for line in lines[:3]]
    assert lines[3] == ""
    assert lines[4].startswith(f"Usage: leverl {name} ")
    command = build(name)
    for words in examples:
        assert words[:2] == ["leverl", name]
        words = words[2:]
        cut = words.index(">") if ">" in words else len(words)
        command.make_context(name, words[:cut])  # parses
        assert all(len(line) <= 100 for line in lines[:3])


def test_help_of_the_group_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    bare = capsys.readouterr().out
    assert main(["-h"]) == 0
    assert capsys.readouterr().out == bare
    for name in FLAGS:
        assert f"\n  {name} " in bare


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"leverl {leverl.__version__}\n"
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{leverl.__version__}"\n' in project


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("trian grpo", "unknown command 'trian'. Did you mean 'train'? Known: env, eval,"),
        ("train grpo --nmae x", "unknown flag --nmae. Did you mean '--name'?"),
        ("train grpo -x", "unknown flag -x."),
        ("--verison", "unknown flag --verison. Did you mean '--version'?"),
        ("train grpo --learning_rate 1e-6", "write actor_learning_rate=1e-6"),
        ("train grpo --learning-rate=1e-6", "write actor_learning_rate=1e-6"),
        ("train grpo --actor_learning_rate", "write actor_learning_rate=VALUE"),
        ("train grpo --clip-range -1", "write clip_range=-1"),
        ("train grpo --steps 3 --name x", "write steps=3"),
        ("--kl_coef 0.1 train grpo", "write kl_coef=0.1"),
        ("tune demo --kl_coef --json", "write kl_coef=VALUE"),
        ("train grpo --name", "Option '--name' requires an argument."),
        (
            "train grpo --progress loud",
            "'--progress': Value error, 'loud' is not one of 'auto', 'rich', 'plain', 'none'",
        ),
        ("train grpo --out", "Option '--out' requires an argument."),
        ("eval", "Missing argument 'MODEL'."),
        ("eval x --samples 0", "Invalid value for '--samples'"),
        ("train", "nothing to train: name a recipe, a YAML file or a run. For example: leverl train grpo"),
        (
            "train kl_coef=0.1",
            "'kl_coef=0.1' stands where train expects grpo. Write: leverl train grpo kl_coef=0.1",
        ),
        ("train grpo kl_ceof=0.1 --dry-run", "overrides: unknown setting 'kl_ceof'. Did you mean"),
        (
            "train gropo --dry-run",
            "'gropo' is neither a recipe, a YAML file nor the folder of a run. Did you mean 'grpo'?",
        ),
        ("levers kl_ceof", "unknown setting 'kl_ceof'. Did you mean"),
    ],
)
def test_wrong_usage_is_one_message_and_exit_2(
    line: str,
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    captured = capsys.readouterr()
    assert captured.out == ("" if "--json" not in line else captured.out)
    assert captured.err.startswith("error: ")
    assert expected in captured.err
    assert "Traceback" not in captured.err
    assert list(tmp_path.iterdir()) == []  # nothing started
