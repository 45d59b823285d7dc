"""Writes the tables in docs/*.md that follow from the code, between `<!-- generated: NAME -->` and `<!-- end -->`.

python docs/generate.py            # rewrite them
python docs/generate.py --check    # exit 1 and name the pages that are out of date
"""

import re
import sys
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from leverl import plugins
from leverl.cli.group import COMMANDS, build
from leverl.config import combinations, loader, tree
from leverl.config.schema import Config
from leverl.engine.algo.specs import ALGORITHMS
from leverl.report.levers import search_range, typed
from leverl.vocabulary import catalog
from leverl.vocabulary.metrics import METRICS

DOCS: Final = Path(__file__).parent
_BLOCK: Final = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)

MODES: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("grpo", {}),
    ("rloo", {}),
    ("grpo", {"mini_batch_size": 256}),
    ("grpo", {"kl_in": "off"}),
    ("grpo", {"train_files": ["prompts.jsonl"]}),
    ("grpo", {"task": "echo"}),
    ("grpo-llm", {"model": "./model"}),
)
"""Configurations in which, one or the other, every setting that can be inert is."""


def levers() -> str:
    """All levers, one table for each section of the configuration."""
    parts: list[str] = []
    sections = dict.fromkeys(lever.path.rpartition(".")[0] for lever in catalog.LEVERS)
    for section in sections:
        rows = [
            (
                f"`{x.name}`",
                typed(tree.get(Config(), x.path)),
                tree.allowed(x.path),
                _search(x),
                x.effect,
                x.text,
            )
            for x in catalog.LEVERS
            if x.path.rpartition(".")[0] == section
        ]
        head = ("setting", "default", "allowed", "searched in", "effect", "meaning")
        parts.append(f"### {section or 'the run as a whole'}\n\n{_table(head, rows)}")
    return "\n\n".join(parts)


def _search(lever: Any) -> str:
    return search_range(lever.search) if lever.search else "–"


def metrics() -> str:
    """All metrics."""
    rows = [
        (f"`{entry.name}`", entry.unit, entry.text, ", ".join(f"`{alias}`" for alias in entry.aliases))
        for entry in METRICS
    ]
    return _table(("metric", "unit", "meaning", "also called"), rows)


def algorithms() -> str:
    """The algorithms and what each needs."""
    rows = [
        (
            f"`{spec.name}`",
            spec.title,
            {"group": "group mean and std", "leave_one_out": "leave-one-out mean", "gae": "GAE"}[
                spec.advantage
            ],
            "yes" if spec.needs_critic else "no",
            "2" if spec.needs_group else "1",
            spec.citation,
        )
        for spec in ALGORITHMS.values()
    ]
    return _table(("name", "title", "baseline", "critic", "least `group_size`", "source"), rows)


def unspecified() -> str:
    """What the papers leave open."""
    return "\n".join(f"- **{spec.name}.** {spec.unspecified}" for spec in ALGORITHMS.values())


def recipes() -> str:
    """The packaged recipes and what each sets."""
    rows = []
    for name in loader.recipes():
        text = files("leverl.config").joinpath("recipes", f"{name}.yaml").read_text(encoding="utf-8")
        lines = [line.partition("  #")[0].strip() for line in text.splitlines()]
        about = " ".join(line.removeprefix("# ") for line in lines if line.startswith("#"))
        sets = [line.replace(": ", "=") for line in lines if line and not line.startswith(("#", "extends"))]
        rows.append((f"`{name}`", about, " ".join(f"`{one}`" for one in sets)))
    return _table(("recipe", "what it is", "sets"), rows)


def inert() -> str:
    """What has no effect when, by reason."""
    names: dict[str, list[str]] = {}
    found: set[str] = set()
    for recipe, settings in MODES:
        config = loader.load(recipe, settings).config
        for path in combinations.INERT:
            reason = combinations.inert(config, path)
            if reason and path not in found:
                found.add(path)
                names.setdefault(reason, []).append(f"`{catalog.by_path(path).name}`")
    missing = combinations.INERT.keys() - found
    if missing:
        raise SystemExit(
            f"docs/generate.py: no mode makes {', '.join(sorted(missing))} inert; add one to MODES"
        )
    rows = [(", ".join(paths), reason) for reason, paths in names.items()]
    return _table(("has no effect", "because"), rows)


def flags() -> str:
    """All flags of all commands."""
    found: dict[tuple[str, str], list[str]] = {}
    for verb in plugins.names(COMMANDS):
        for param in build(verb).params:
            if param.param_type_name == "option":
                words = ", ".join(f"`{word}`" for word in param.opts)
                found.setdefault((words, getattr(param, "help", "") or ""), []).append(verb)
    rows = [(words, ", ".join(verbs), text) for (words, text), verbs in sorted(found.items(), key=_order)]
    return _table(("flag", "of", "meaning"), rows)


def _order(item: tuple[tuple[str, str], list[str]]) -> tuple[int, str]:
    return -len(item[1]), item[0][0]


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [_row(head), "|" + "---|" * len(head), *(_row(row) for row in rows)]
    return "\n".join(lines)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"


TABLES: Final[dict[str, Callable[[], str]]] = {
    function.__name__: function
    for function in (levers, metrics, algorithms, unspecified, recipes, inert, flags)
}


def renewed(text: str) -> str:
    """`text` with every generated block written anew."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{TABLES[block[2]]()}\n\n{block[3]}", text)


def main(arguments: list[str]) -> int:
    """0 when all pages are (now) current; 1 when `--check` found one that is not."""
    stale = []
    for page in sorted(DOCS.glob("*.md")):
        before = page.read_text(encoding="utf-8")
        after = renewed(before)
        if after != before:
            stale.append(page.name)
            if "--check" not in arguments:
                page.write_text(after, encoding="utf-8")
    if stale:
        told = "out of date, run `python docs/generate.py`" if "--check" in arguments else "rewritten"
        sys.stderr.write(f"{told}: {', '.join(stale)}\n")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
