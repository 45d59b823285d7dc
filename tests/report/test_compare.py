"""Studies side by side."""

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from leverl.cli.output import as_json
from leverl.errors import ConfigError
from leverl.report.compare_data import quality, read_studies, side_by_side, warnings
from leverl.report.compare_page import facts, in_a_sentence, terminal_table, write_comparison
from leverl.report.study_data import StudyData
from leverl.tune.analysis.analyse import analyse
from leverl.tune.model import StudyView
from leverl.tune.space.space import Space

MakeStudy = Callable[..., StudyView]


@pytest.fixture
def pair(make_study: MakeStudy, space: Space, tmp_path: Path) -> tuple[StudyData, StudyData]:
    """A grid of 24 runs, and a search of 12 whose winner scores a little less on each seed."""
    found = []
    for name, count in (("grid", 24), ("bayes", 12)):
        view = make_study(count=count, name=name)
        folder = tmp_path / "studies" / name
        folder.mkdir(parents=True)
        found.append(StudyData(replace(view, folder=folder, strategy=name), analyse(space, view.history)))
    grid, bayes = found
    assert bayes.view.winner is not None
    assert bayes.comparison is not None
    scores = tuple(score - d for score, d in zip(bayes.comparison.winner, (0.01, 0.02, 0.03), strict=True))
    comparison = replace(bayes.comparison, winner=scores)
    view = replace(bayes.view, winner=replace(bayes.view.winner, comparison=comparison))
    return grid, StudyData(view, bayes.analysis)


def test_cost_is_told_as_a_share_of_the_first_and_quality_with_an_interval(
    pair: tuple[StudyData, StudyData],
) -> None:
    grid, bayes = side_by_side(pair)
    assert grid.against_first is None
    assert bayes.against_first is not None
    assert bayes.against_first.paired
    assert bayes.against_first.interval is not None
    ours, theirs = pair[0].comparison, pair[1].comparison
    assert ours is not None
    assert theirs is not None
    expected = sum(theirs.winner) / 3 - sum(ours.winner) / 3
    assert bayes.against_first.value == pytest.approx(expected)
    runs = len(pair[1].view.history.runs) / len(pair[0].view.history.runs)
    assert in_a_sentence((grid, bayes)).startswith(f"bayes used {100 * runs:.0f} % of the runs")


def test_other_seeds_are_compared_without_pairs(pair: tuple[StudyData, StudyData]) -> None:
    grid, bayes = pair
    assert bayes.comparison is not None
    assert bayes.view.winner is not None
    moved = replace(bayes.comparison, seeds=(1, 2, 3))
    view = replace(bayes.view, winner=replace(bayes.view.winner, comparison=moved))
    found = side_by_side((grid, StudyData(view)))[1].against_first
    assert found is not None
    assert not found.paired
    assert found.interval is not None
    assert found.interval[0] < found.value < found.interval[1]


def test_lower_is_better_turns_the_difference(pair: tuple[StudyData, StudyData]) -> None:
    plain = side_by_side(pair)[1].against_first
    turned = [StudyData(replace(d.view, history=replace(d.view.history, maximize=False))) for d in pair]
    found = side_by_side(turned)[1].against_first
    assert plain is not None
    assert found is not None
    assert found.value == pytest.approx(-plain.value)


def test_a_study_without_confirmation_shows_the_models_opinion(make_study: MakeStudy) -> None:
    data = StudyData(make_study(count=12, ending="open"))
    found = quality(data)
    assert found is not None
    assert found.scores == ()
    assert found.interval is not None
    assert "nothing was confirmed" in found.source
    assert quality(StudyData(make_study(ending="empty"))) is None


def test_studies_that_differ_are_not_compared_silently(pair: tuple[StudyData, StudyData]) -> None:
    assert warnings(side_by_side(pair)) == []
    other = replace(pair[1].view, base_settings={"task": "echo", "steps": 200}, objective="reward/mean")
    [text] = warnings(side_by_side((pair[0], StudyData(other))))
    assert "objective (eval/score, reward/mean)" in text
    assert "task (sort, echo)" in text


def test_the_page_is_one_file_beside_the_first_study(pair: tuple[StudyData, StudyData]) -> None:
    studies = side_by_side(pair)
    path = write_comparison(studies)
    assert path == pair[0].view.folder.parent / "grid-vs-bayes.html"
    text = re.sub(
        r"<script>/\*\nMIT License.*?</script>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL
    )
    assert path.stat().st_size < 1_700_000
    assert not re.search(r"(src|href)=.(https?:)?//", text)
    for name in ("scores-chart", "course-chart", "comparison", "levers"):
        assert f'id="{name}"' in text


def test_program_and_terminal_get_the_same(pair: tuple[StudyData, StudyData]) -> None:
    from rich.console import Console

    studies = side_by_side(pair)
    content = json.loads(json.dumps(as_json(facts(studies)), allow_nan=False))
    assert [one["name"] for one in content] == ["grid", "bayes"]
    assert content[1]["quality"]["seeds"] == [201, 202, 203]
    assert content[0]["levers"]["actor_learning_rate"] > 0
    stream = io.StringIO()
    Console(file=stream, width=160).print(terminal_table(studies))
    assert "difference to the first" in stream.getvalue()
    assert "paired by seed" in stream.getvalue()


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="1 studies: 2 to 6"):
        read_studies([tmp_path])
    with pytest.raises(ConfigError, match="given twice"):
        read_studies([tmp_path, tmp_path / "x" / ".."])
