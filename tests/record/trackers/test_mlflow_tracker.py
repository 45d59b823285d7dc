"""What an MLflow database holds."""

from pathlib import Path
from typing import Any

import pytest

from leverl.record.run_record import Outcome
from leverl.record.tracking import Ending, TrackedRun, TrackedStudy, open_trackers

pytest.importorskip("mlflow")


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A store of files: a database takes seconds to create."""
    import mlflow

    uri = (tmp_path / "mlruns").as_uri()
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.chdir(tmp_path)
    return mlflow.MlflowClient(tracking_uri=uri)


def runs_of(client: Any, name: str = "leverl") -> dict[str, Any]:
    experiment = client.get_experiment_by_name(name).experiment_id
    return {run.info.run_name: run for run in client.search_runs([experiment])}


def test_a_study_is_a_parent_and_its_runs_are_children(client: Any, study: TrackedStudy, tools: Any) -> None:
    tools.publish(open_trackers(["mlflow"])["mlflow"], study)
    runs = runs_of(client)
    assert set(runs) == {"lr kl", "001-s1000", "002-s3000"}
    parent = runs["lr kl"]
    assert "mlflow.parentRunId" not in parent.data.tags
    for name in ("001-s1000", "002-s3000"):
        assert runs[name].data.tags["mlflow.parentRunId"] == parent.info.run_id
    assert [runs[n].info.status for n in runs] == [
        {"lr kl": "FINISHED", "001-s1000": "FINISHED", "002-s3000": "FAILED"}[n] for n in runs
    ]


def test_children_repeat_what_the_parent_is_found_by(client: Any, study: TrackedStudy, tools: Any) -> None:
    tools.publish(open_trackers(["mlflow"])["mlflow"], study)
    experiment = client.get_experiment_by_name("leverl").experiment_id
    found = client.search_runs([experiment], filter_string="params.target = 'grpo' and params.steps = '4'")
    assert len(found) == 3
    child = runs_of(client)["001-s1000"].data
    assert child.params | {} == {
        "target": "grpo",
        "steps": "4",
        "actor_learning_rate": "0.01",
        "kl_coef": "0",
        "kl_estimator": "k2",
        "seed": "1000",
    }
    assert child.tags["seed"] == "1000"
    assert child.tags["leverl.job_type"] == "search"
    assert child.tags["config"] == "c001"


def test_metrics_are_by_step_and_the_summary_is_beside_them(
    client: Any, study: TrackedStudy, tools: Any
) -> None:
    tools.publish(open_trackers(["mlflow"])["mlflow"], study)
    runs = runs_of(client)
    curve = client.get_metric_history(runs["001-s1000"].info.run_id, "eval/score")
    assert sorted((point.step, point.value) for point in curve) == [(s, s / 10) for s in range(5)]
    assert runs["001-s1000"].data.metrics["score"] == 0.3
    assert runs["001-s1000"].data.tags["outcome"] == "finished"
    assert runs["002-s3000"].data.tags["message"] == "grad_norm became NaN"
    assert runs["001-s1000"].info.start_time == 1796038200000
    assert runs["001-s1000"].info.end_time == 1796038800000


def test_the_verdict_is_the_parents_description(client: Any, study: TrackedStudy, tools: Any) -> None:
    tools.publish(open_trackers(["mlflow"])["mlflow"], study)
    parent = runs_of(client)["lr kl"].data
    assert parent.tags["mlflow.note.content"] == "Use c001."
    assert parent.tags["winner.actor_learning_rate"] == "0.01"
    assert parent.metrics["gain"] == 0.2


def test_runs_are_found_again_in_another_sitting(client: Any, study: TrackedStudy, tools: Any) -> None:
    tools.publish(open_trackers(["mlflow"])["mlflow"], study)
    tracker = open_trackers(["mlflow"])["mlflow"]
    run = tracker.open_run(tools.run_of(study, 1, 1000, since=4))
    run.log(5, {"eval/score": 0.5})
    run.close(Ending(Outcome.FINISHED, {"score": 0.5}))
    runs = runs_of(client)
    assert len(runs) == 3
    assert len(client.get_metric_history(runs["001-s1000"].info.run_id, "eval/score")) == 6
    assert runs["001-s1000"].data.metrics["score"] == 0.5


def test_an_interrupted_study_is_killed_and_goes_on(client: Any, study: TrackedStudy, tools: Any) -> None:
    tracker = open_trackers(["mlflow"])["mlflow"]
    tracker.open_study(study)
    assert runs_of(client)["lr kl"].info.status == "RUNNING"
    tracker.close_study(study, None)
    assert runs_of(client)["lr kl"].info.status == "KILLED"
    open_trackers(["mlflow"])["mlflow"].open_study(study)
    assert [run.info.status for run in runs_of(client).values()] == ["RUNNING"]


def test_a_single_run_has_its_whole_configuration(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    config = {f"part{part}": {f"setting{number}": number for number in range(50)} for part in range(3)}
    config["rollout"] = {"stop": "", "long": "x" * 9000, "lists": [1, 2], "nothing": None, "odd(name)": True}
    tracker = open_trackers(["mlflow"])["mlflow"]
    run = tracker.open_run(TrackedRun("try1-abcd", "try1", tmp_path / "try1", "train", 7, config=config))
    run.log(1, {"reward_extra/a@b": 1.0})
    run.close(Ending(Outcome.INTERRUPTED))
    found = runs_of(client, "mine")["try1"]
    assert len(found.data.params) == 154
    assert found.data.params["part2.setting49"] == "49"
    assert found.data.params["rollout.lists"] == "[1, 2]"
    assert found.data.metrics["reward_extra/a_b"] == 1.0
    assert found.info.status == "KILLED"
    assert tracker.hint == f"to look: mlflow server --backend-store-uri {client.tracking_uri}"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # MLflow's use of SQLAlchemy
def test_without_settings_it_is_the_database_that_mlflow_opens(
    study: TrackedStudy, tools: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import mlflow

    pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)
    tracker = open_trackers(["mlflow"])["mlflow"]
    tools.publish(tracker, study)
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    assert tracker.hint == f"to look: mlflow server --backend-store-uri {uri}"
    runs = runs_of(mlflow.MlflowClient(tracking_uri=uri))
    assert runs["001-s1000"].data.tags["mlflow.parentRunId"] == runs["lr kl"].info.run_id
    assert runs["001-s1000"].data.metrics["score"] == 0.3
