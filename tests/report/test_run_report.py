"""The page of a run."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from leverl.errors import ConfigError
from leverl.record.run_record import Outcome
from leverl.report.figures import thin
from leverl.report.redact import redact, redact_settings
from leverl.report.run_page import write_run_report
from leverl.report.sections import run_ratio
from leverl.vocabulary.ratio_bins import RATIO_BINS

MakeRun = Callable[..., Path]


def test_a_finished_run(make_run: MakeRun) -> None:
    folder = make_run()
    path = write_run_report(folder)
    text = path.read_text(encoding="utf-8")
    assert path == folder / "report.html"
    assert path.stat().st_size <= 2_000_000
    assert "Finished with a held-out score of 0.61 ± 0.03" in text
    assert f"leverl eval {folder}" in text
    for name in ("eval", "reward-kl", "entropy", "length", "clipping", "gradient", "timing", "ratio"):
        assert f'id="{name}-chart"' in text
    assert "critic-chart" not in text  # this run has none
    assert "4566666" in text
    assert "cut off" in text
    assert "learning_rate: 0.001" in text
    assert "abcdef123456" not in text  # the tuner's token


@pytest.mark.parametrize("outcome", [*Outcome, None])
def test_every_outcome_renders(make_run: MakeRun, outcome: Outcome | None) -> None:
    text = write_run_report(make_run(outcome, steps=3)).read_text(encoding="utf-8")
    if outcome in (Outcome.FINISHED, Outcome.STOPPED):
        assert "held-out score of" in text
    else:
        assert "no score" in text or "Not over" in text


def test_a_non_finite_run_is_told_to_halve_its_learning_rate(make_run: MakeRun) -> None:
    text = write_run_report(make_run(Outcome.NON_FINITE, steps=3)).read_text(encoding="utf-8")
    assert "actor_learning_rate=0.0005" in text


def test_a_run_that_logged_nothing_renders(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("seed: 0\n", encoding="utf-8")
    text = write_run_report(tmp_path).read_text(encoding="utf-8")
    assert "This run has not been evaluated." in text


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no run"):
        write_run_report(tmp_path)


def test_a_hostile_completion_stays_text(make_run: MakeRun) -> None:
    text = write_run_report(make_run(hostile=True)).read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "&lt;/script&gt;&lt;script&gt;alert" in text
    assert text.count("plotly.js (cartesian") == 1


def test_hostile_metric_names_stay_text(make_run: MakeRun) -> None:
    folder = make_run(steps=2)
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"step": 3, "data": {"</script><script>alert(1)": 1.0, "actor/grad_norm": "NaN"}}\n')
        file.write('{"step": 4, "da')
    text = write_run_report(folder).read_text(encoding="utf-8")
    assert "<script>alert" not in text


def test_text_inside_a_figure_cannot_leave_its_script() -> None:
    from leverl.report.figures import axis, label, layout, plot, scatter

    hostile = "</script><script>alert(1)</script>"
    html = plot(
        "x", [scatter([1], [2], hostile, text=[label(hostile)])], layout(100, {"xaxis": axis(hostile)})
    )
    assert html.count("</script>") == 1
    assert not re.search(r"<script>alert", html)
    assert label("<b>") == "&lt;b&gt;"  # plotly would read it as bold


def test_thinning_keeps_spikes_and_ends() -> None:
    values = [0.0] * 5000
    values[1234], values[4000] = 9.0, -9.0
    steps, kept = thin(range(5000), values)
    assert len(steps) <= 200
    assert steps[0] == 0
    assert steps[-1] == 4999
    assert {9.0, -9.0} <= set(kept)
    assert thin([1, 2], [3.0, 4.0]) == ([1, 2], [3.0, 4.0])


def test_the_bins_of_the_histogram_are_named(make_run: MakeRun) -> None:
    names = run_ratio.names()
    assert len(names) == len(RATIO_BINS) + 1
    assert len(set(names)) == len(names)
    assert names[len(names) // 2] == "0.999 … 1.001"


def test_secrets_are_masked_and_settings_are_not() -> None:
    environment = {"HF_TOKEN": "abcdefgh12345", "HOME": "/home/someone", "LEVERL_RUN_TOKEN": "0123456789"}
    text = redact("key abcdefgh12345 in /home/someone, 0123456789, hf_abcdefghijklmnopqrstuvwx", environment)
    assert text == "key ••• in /home/someone, 0123456789, •••"
    settings = {"data": {"prompt_key": "prompt", "api_key": "x"}, "actor": {"micro_batch_tokens": 4096}}
    assert redact_settings(settings) == {
        "data": {"prompt_key": "prompt", "api_key": "•••"},
        "actor": {"micro_batch_tokens": 4096},
    }
