"""Every `$ leverl …` line and every Python block of the documentation runs, with small settings.

In the documents: lines after a command in a `console` block must occur in its output, in order (`…` stands for
anything); a command with a line that begins with `error:` must fail, every other must succeed. `<!-- file: NAME -->`
writes the block below it to a file, `<!-- skip: next "why" -->` leaves the block below it out.
"""

import contextlib
import io
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from unittest import SkipTest

import pytest
from sybil import Document, Example, Region
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser, SkipParser

from leverl.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

FILE = re.compile(r"<!-- file: (\S+) -->\n\n```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
OTHERS = ("make",)

SMALL_STUDY = {"budget.trials": 6, "seeds.confirm": 2, "race.finalists": 1}


class Console:
    """Runs the commands of a `console` block in this process."""

    def __init__(self, small: Callable[[bool], None]) -> None:
        self._small = small

    def __call__(self, example: Example) -> str | None:
        for command, expected in commands(example.parsed):
            if not command.startswith("leverl "):
                assert command.split()[0] in OTHERS, f"not run: {command}"
                continue
            wrong = any(line.startswith("error:") for line in expected)
            code, output = self._run(shlex.split(command)[1:], small=not wrong and "--dry-run" not in command)
            if (code != 0) != wrong:
                return f"{command}: exit code {code}\n{output}"
            missing = first_missing(expected, output)
            if missing is not None:
                return f"{command}: not in its output: {missing}\n{output}"
        return None

    def _run(self, words: list[str], *, small: bool) -> tuple[int, str]:
        self._small(small)
        if words[0] == "tune" and small:
            words = [word for word in words if word.partition("=")[0] not in SMALL_STUDY]
            words += [f"{key}={value}" for key, value in SMALL_STUDY.items()]
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told):
            code = main(words)
        return code, told.getvalue()


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a block with the lines expected of it."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, *expected = part.splitlines()
        yield command, [line for line in expected if line.strip()]


def first_missing(expected: Iterable[str], output: str) -> str | None:
    """The first line that does not occur in `output` after the one before it."""
    at = 0
    for line in expected:
        pattern = (
            ".*?".join(map(re.escape, line.rstrip().split("…"))) if line.endswith("…") else re.escape(line)
        )
        found = re.compile(pattern).search(output, at)
        if found is None:
            return line
        at = found.end()
    return None


def file_blocks(document: Document) -> Iterator[Region]:
    """Blocks that are files, as regions of their own."""
    for match in FILE.finditer(document.text):
        yield Region(match.start(), match.start() + 5, (match[1], match[3]), write_file)


def write_file(example: Example) -> None:
    name, text = example.parsed
    Path(name).write_text(text, encoding="utf-8")


def python_blocks(document: Document) -> Iterator[Region]:
    """Python blocks that are not files."""
    files = [(match.start(), match.end()) for match in FILE.finditer(document.text)]
    for region in CodeBlockParser("python", PythonEvaluator())(document):
        if not any(start <= region.start < end for start, end in files):
            yield region


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_snippets_run(page: Path, request: pytest.FixtureRequest) -> None:
    text = page.read_text(encoding="utf-8")
    if not re.search(r"^\$ leverl |^```python", text, re.MULTILINE):
        return
    request.getfixturevalue("pretrained" if "model=./model" in text else "place")
    console = CodeBlockParser("console", Console(request.getfixturevalue("small")))
    document = Document.parse(str(page), console, python_blocks, file_blocks, SkipParser())
    for example in document.examples():
        with contextlib.suppress(SkipTest):
            example.evaluate()


def test_few_snippets_are_left_out_and_each_says_why() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    skipped = re.findall(r"<!-- skip: next (.*) -->", text)
    assert len(skipped) == text.count("<!-- skip")
    assert len(skipped) <= 4
    assert all(len(why) > 10 for why in skipped)
