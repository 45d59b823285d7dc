"""The page and the summary of a study."""

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from leverl.record.run_record import Outcome
from leverl.report.scales import lever_scale
from leverl.report.sections import runs, search
from leverl.report.study_data import StudyData
from leverl.report.study_page import write_study_report
from leverl.tune.analysis.analyse import analyse
from leverl.tune.analysis.result import Analysis
from leverl.tune.model import CONFIRM, GRID, History, LeverAxis, StudyView
from leverl.tune.space.space import Space

MakeStudy = Callable[..., StudyView]
CHARTS = (
    "proof-chart",
    "curves-chart",
    "search-chart",
    "trajectory-chart",
    "importance-chart",
    "pair-chart",
    "runs-chart",
    "cost-chart",
    "pareto-chart",
    "speed-chart",
    "left-out-chart",
    "rank-chart",
    "slice-",
)
LIBRARY = re.compile(r"<script>/\*\nMIT License.*?</script>", re.DOTALL)


class Page(HTMLParser):
    """Collects tags with their attributes, and text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def page_of(view: StudyView, analysis: Analysis | None = None) -> Page:
    return Page(write_study_report(view, analysis).read_text(encoding="utf-8"))


@pytest.mark.parametrize("ending", ["win", "no gain", "one seed", "open", "empty"])
def test_every_kind_of_study_renders(make_study: MakeStudy, ending: str) -> None:
    view = make_study(ending=ending, count=12)
    page = page_of(view)
    headings = [attributes.get("id") for attributes in page.all("section")]
    assert headings[1:] == ["settings", "proof", "curves", "search", "levers", "runs", "cost", "trust"]
    assert (view.folder / "summary.md").is_file()
    expected = view.winner.verdict if view.winner else "So far" if ending == "open" else "No run has a score"
    assert expected in page.text


def test_fifty_four_runs_fit_the_budget_and_nothing_is_requested(make_study: MakeStudy, space: Space) -> None:
    view = make_study(count=54, metrics=True)
    path = write_study_report(view, analyse(space, view.history))
    text = path.read_text(encoding="utf-8")
    assert path.stat().st_size <= 2_000_000
    assert (view.folder / "summary.md").stat().st_size < 60_000
    assert text.count("plotly.js (cartesian") == 1
    page = Page(LIBRARY.sub("", text))
    for _, attributes in page.tags:
        for name in ("src", "href", "action", "srcset", "data"):
            assert not re.match(r"\s*(https?:)?//", attributes.get(name) or "")
    assert not re.search(r"url\(|@import|https?://", LIBRARY.sub("", text))
    policies = [attributes.get("content") or "" for attributes in page.all("meta")]
    assert any("default-src 'none'" in policy for policy in policies)


def test_five_hundred_runs_stay_under_five_megabytes(make_study: MakeStudy) -> None:
    view = make_study(count=500)
    assert write_study_report(view).stat().st_size <= 5_000_000
    assert (view.folder / "summary.md").stat().st_size < 60_000


def test_failures_are_listed_without_a_score(make_study: MakeStudy) -> None:
    view = make_study(count=30)
    data = StudyData(view)
    points = search._points(data, search.unit_of(view.history)[1])
    failed = [point for point in points if point.state.outcome not in (Outcome.FINISHED, Outcome.STOPPED)]
    assert len(failed) == 6
    assert all(point.level is None for point in failed)
    stopped = [point for point in points if point.state.outcome is Outcome.STOPPED]
    assert all(point.score is None and point.level is not None for point in stopped)
    page = page_of(view)
    for word in ("out of memory", "non-finite", "crashed", "timed out", "lost", "interrupted"):
        assert word in page.text
    rows = [row for row in data.configurations if row.id == "c008"]
    assert rows[0].mean is None
    assert rows[0].score_text == "–"


def test_runs_that_the_tuner_ended_are_not_called_failures(make_study: MakeStudy) -> None:
    """Of the search of 24 one is stopped (5), one interrupted (23), and five or more fail."""
    assert "failures" not in page_of(make_study(count=8)).text.split("Proof")[0]
    assert "1 run of" in page_of(make_study(count=9)).text
    runs = make_study(count=24).history.runs
    failed = [s for s in runs if s.outcome not in (Outcome.FINISHED, Outcome.STOPPED, Outcome.INTERRUPTED)]
    assert f"{len(failed)} runs of {len(runs)}" in page_of(make_study(count=24)).text


def test_a_stopped_run_counts_in_no_mean(make_study: MakeStudy) -> None:
    stopped = StudyData(make_study(count=12)).by_id["c005"]
    assert stopped.scores == ()
    assert stopped.score_text.endswith("at step 60)")


def test_one_seed_shows_neither_error_nor_interval(make_study: MakeStudy) -> None:
    view = make_study(count=12, ending="open")
    data = StudyData(view)
    assert data.leader is not None
    assert data.leader.standard_error is None
    assert "(1 seed)" in page_of(view).text
    assert "±" not in data.leader.score_text


def test_hostile_text_stays_text(make_study: MakeStudy) -> None:
    view = make_study(count=16)
    axes = (LeverAxis("</script><img src=x onerror=alert(1)>", "linear", 0, 1, (), 0.5), *view.axes)
    text = write_study_report(replace(view, name="<b>&x", axes=axes)).read_text(encoding="utf-8")
    assert text.count("<script>alert") == 0
    assert "ZeroDivisionError in &lt;/script&gt;&lt;script&gt;alert" in text
    page = Page(text)
    assert not page.all("img")
    assert not page.all("b")
    assert len(page.all("script")) == text.count("<script")
    assert text.count("plotly.js (cartesian") == 1  # the marker of the library cannot be forged


def test_absent_levers_have_a_tick_of_their_own(make_study: MakeStudy) -> None:
    data = StudyData(make_study(count=12))
    without = data.by_id["c006"]  # kl_coef 0, so kl_estimator does not apply
    assert without.values[3] is None
    assert lever_scale(data.view.axes[3], ["k2", None]).place(None) < 0


def test_charts_say_their_finding_and_carry_their_data(make_study: MakeStudy, space: Space) -> None:
    view = make_study(count=12, metrics=True)
    page = page_of(view, analyse(space, view.history))
    figures = page.all("figure")
    names = [
        attributes["id"] for attributes in page.all("div") if (attributes.get("id") or "").startswith(CHARTS)
    ]
    assert len(figures) == len(names)
    assert {*CHARTS[:-1], "slice-0", "slice-3"} <= set(names)
    assert all(figure["role"] == "img" and len(figure["aria-label"] or "") > 40 for figure in figures)
    assert len(page.all("svg")) == 2  # proof and curves are readable without scripts
    tables = [table.get("id") for table in page.all("table")]
    for name in names:
        if name not in ("runs-chart", "cost-chart"):  # theirs are the tables below
            assert f"{(name or '').removesuffix('-chart')}-data" in tables
    assert {"configurations", "every-run", "ledger"} <= set(tables)


def test_without_an_analysis_the_sections_say_so(make_study: MakeStudy) -> None:
    text = page_of(make_study(count=12)).text
    assert "The model has not been asked who led when" in text
    assert "P(best) of c0" in text  # of the recommendation, which every view has


def test_too_few_configurations_for_a_model_are_told(make_study: MakeStudy, space: Space) -> None:
    view = make_study(count=2, ending="open")
    assert "The model needs 4 configurations" in page_of(view, analyse(space, view.history)).text


def test_what_is_believed_stands_in_the_table(make_study: MakeStudy, space: Space) -> None:
    view = make_study(count=12)
    analysis = analyse(space, view.history)
    assert analysis is not None
    table = runs.configurations(StudyData(view, analysis))
    titles = [column.title for column in table.columns]
    place = titles.index("P(best)")
    chances = [row[place].value for row in table.rows]
    assert sum(chance for chance in chances if isinstance(chance, float)) == pytest.approx(1)
    assert "P(best)" not in [column.title for column in runs.configurations(StudyData(view)).columns]


def test_configurations_that_cannot_be_told_apart_have_a_bracket(make_study: MakeStudy) -> None:
    view = make_study(count=12)
    found = view.recommendation
    assert found is not None
    raced = [c.id for c in (StudyData(view).candidate, *StudyData(view).finalists) if c is not None][:2]
    tied = replace(
        found, indistinguishable=tuple(raced), reason=f"{raced[0]} and {raced[1]} are indistinguishable"
    )
    text = write_study_report(replace(view, recommendation=tied)).read_text(encoding="utf-8")
    assert '"text":"indistinguishable"' in text
    alone = replace(found, indistinguishable=())
    text = write_study_report(replace(view, recommendation=alone)).read_text(encoding="utf-8")
    assert '"text":"indistinguishable"' not in text


def test_search_and_local_grid_share_seeds_by_design(make_study: MakeStudy) -> None:
    view = make_study(count=12)
    first = view.history.runs[0]
    cell = replace(first, run=replace(first.run, phase=GRID))
    mixed = replace(view, history=History((*view.history.runs, cell)))
    assert "No seed was used in two phases" in page_of(mixed).text


def test_what_stopping_saved_and_failures_lost_is_told(make_study: MakeStudy) -> None:
    text = page_of(make_study(count=30)).text
    assert "stopping 2 runs early saved" in text
    assert "1 out of memory, 1 non-finite, 1 crashed, 1 timed out, 1 lost, 1 interrupted" in text
    assert "by its curve" in write_study_report(make_study(count=30)).read_text(encoding="utf-8")


def test_seeds_of_phases_are_shown_disjoint_or_the_overlap_is_told(make_study: MakeStudy) -> None:
    view = make_study(count=12)
    assert "No seed was used in two phases" in page_of(view).text
    first = view.history.runs[0]
    again = replace(first, run=replace(first.run, phase=CONFIRM))
    mixed = replace(view, history=History((*view.history.runs, again)))
    assert "Seed 1 was used both in search and in confirm" in page_of(mixed).text


def test_no_gain_names_the_candidate_and_keeps_the_base(make_study: MakeStudy) -> None:
    view = make_study(count=12, ending="no gain")
    page = page_of(view)
    assert "headline even" in [attributes.get("class") for attributes in page.all("section")]
    assert "candidate" in page.text
    assert "leverl train grpo task=sort steps=200" in page.text


def test_a_lever_at_the_edge_of_its_range_is_pointed_out(make_study: MakeStudy) -> None:
    view = make_study(count=12)
    assert view.winner is not None
    best = view.winner.params["actor_learning_rate"]
    assert isinstance(best, float)
    axes = (replace(view.axes[0], high=best), *view.axes[1:])
    assert "upper edge of its range" in page_of(replace(view, axes=axes)).text


def test_lower_is_better_turns_the_ranking_and_the_differences(make_study: MakeStudy) -> None:
    view = make_study(count=12)
    turned = replace(view, history=replace(view.history, maximize=False))
    data = StudyData(turned)
    means = [c.mean or 0.0 for c in data.ranked]
    assert means == sorted(means)
    assert r"base \u2212 c0" in write_study_report(turned).read_text(encoding="utf-8")


def test_summary_is_markdown_that_hostile_text_cannot_break(make_study: MakeStudy) -> None:
    view = make_study(count=16)
    write_study_report(view)
    text = (view.folder / "summary.md").read_text(encoding="utf-8")
    table = [line for line in text.splitlines() if line.startswith("| c0")]
    counts = {len(re.findall(r"(?<!\\)\|", line)) for line in table}
    assert len(counts) == 1
    assert "<script" not in text
    assert text.startswith("# lr-kl\n\n**Use c0")


def test_the_page_repeats_no_secret(make_study: MakeStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "s3cr3t<&value/1")
    view = make_study(count=4, ending="open")
    last = replace(view.history.runs[-1], outcome=Outcome.CRASHED, message="401 for key s3cr3t<&value/1")
    path = write_study_report(replace(view, history=History((*view.history.runs[:-1], last))))
    for text in (
        path.read_text(encoding="utf-8"),
        Path(view.folder / "summary.md").read_text(encoding="utf-8"),
    ):
        assert "401 for key" in text
        assert "s3cr3t" not in text
