"""The documentation against the code: links, commands, flags, settings, generated tables."""

import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from leverl import plugins
from leverl.cli.group import COMMANDS, build
from leverl.tune.study import Budget, Seeds, Study
from leverl.vocabulary import catalog

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
LONGEST = 150

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
SETTING = re.compile(r"(?<![\w./-])\+?([a-z_][a-z_0-9.]*)=")
FOREIGN_FLAGS = {"--check", "--flag", "--window-size"}
PLACEHOLDERS = {"key", "name"}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))


def code_lines(text: str) -> Iterator[str]:
    """Command lines of console blocks, and inline code."""
    for block in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from (line[2:] for line in block.splitlines() if line.startswith("$ "))
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(r"`([^`\n]+)`", prose)


@cache
def flags_of(verb: str) -> frozenset[str]:
    return frozenset(flag for param in build(verb).params for flag in param.opts) | {"-h", "--help"}


def test_there_is_documentation() -> None:
    assert len(PAGES) > 15


@every_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(file), f"{page.name}: {target}"


def anchors(file: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_page
def test_commands_and_their_flags_exist(page: Path) -> None:
    for line in code_lines(page.read_text(encoding="utf-8")):
        if not re.match(r"leverl [a-z]", line):
            continue
        verb = line.split()[1]
        assert verb in plugins.names(COMMANDS), f"{page.name}: {line}"
        expected_to_fail = "--learning_rate" in line
        unknown = set(FLAG.findall(line)) - flags_of(verb)
        assert expected_to_fail or not unknown, f"{page.name}: {line}: {unknown}"


@every_page
def test_flags_that_are_named_alone_exist(page: Path) -> None:
    known = {flag for verb in plugins.names(COMMANDS) for flag in flags_of(verb)} | FOREIGN_FLAGS
    for line in code_lines(page.read_text(encoding="utf-8")):
        if line.startswith("-") and not line.startswith("->"):
            assert line.split()[0] in known, f"{page.name}: {line}"


@every_page
def test_settings_that_are_named_exist(page: Path) -> None:
    parts = {*Study.model_fields, *(f"seeds.{name}" for name in Seeds.model_fields)}
    parts |= {f"budget.{name}" for name in Budget.model_fields}
    for line in code_lines(page.read_text(encoding="utf-8")):
        ours = line.startswith("leverl ") or re.fullmatch(r"\+?[a-z_.]+=\S*", line)
        for word in SETTING.findall(line) if ours else ():
            known = catalog.is_lever(word) or word in parts or word in PLACEHOLDERS
            assert known or "kl_ceof" in line, f"{page.name}: {line}: {word}"


@every_page
def test_pages_are_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").splitlines()) < LONGEST


@every_page
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^(\w+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = {
        m for line in code_lines(page.read_text(encoding="utf-8")) for m in re.findall(r"^make (\w+)", line)
    }
    assert named <= targets


@every_page
def test_files_that_are_named_exist(page: Path) -> None:
    for line in code_lines(page.read_text(encoding="utf-8")):
        if (
            re.fullmatch(r"(leverl|tests|benchmarks|examples|docs|engine|roles)/[\w./-]*", line)
            and "NAME" not in line
        ):
            below = ("", "leverl", "leverl/engine")
            assert any((ROOT / folder / line).exists() for folder in below), f"{page.name}: {line}"


def test_every_page_is_in_the_index() -> None:
    linked = set(LINK.findall((DOCS / "index.md").read_text(encoding="utf-8")))
    assert {page.name for page in DOCS.glob("*.md")} - {"index.md"} <= linked


def test_every_article_statement_has_a_line() -> None:
    text = (DOCS / "articles.md").read_text(encoding="utf-8")
    wanted = [f"S1-{n}" for n in range(1, 15)] + [f"S2-P{n}" for n in range(1, 8)]
    wanted += [f"S2-R{n}" for n in range(1, 11)] + [f"S2-F{n}" for n in range(5)] + ["S2-C1", "S2-C2", "S2-M"]
    assert sorted(re.findall(r"^\| (S[12]-\w+) \|", text, re.MULTILINE)) == sorted(wanted)


def test_generated_tables_are_current() -> None:
    done = subprocess.run(
        [sys.executable, str(DOCS / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
