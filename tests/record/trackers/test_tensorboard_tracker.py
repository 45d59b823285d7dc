"""What TensorBoard itself reads from the event files."""

from pathlib import Path
from typing import Any

import pytest

from leverl.record.run_record import Outcome
from leverl.record.tracking import Ending, TrackedRun, TrackedStudy, open_trackers

pytest.importorskip("tensorboard")


def events_of(folder: Path) -> Any:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return accumulator


def scalars_of(folder: Path, tag: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in events_of(folder).Scalars(tag)]


class Plugin:
    """The HParams tab over a folder."""

    def __init__(self, folder: Path) -> None:
        from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
        from tensorboard.context import RequestContext
        from tensorboard.plugins import base_plugin
        from tensorboard.plugins.hparams.backend_context import Context

        multiplexer = plugin_event_multiplexer.EventMultiplexer()
        multiplexer.AddRunsFromDirectory(str(folder))
        multiplexer.Reload()
        provider = data_provider.MultiplexerDataProvider(multiplexer, str(folder))
        self._context = Context(base_plugin.TBContext(data_provider=provider))
        self._request = RequestContext()
        self.runs = set(multiplexer.Runs())

    def experiment(self) -> Any:
        from tensorboard.plugins.hparams.get_experiment import Handler

        return Handler(self._request, self._context, "", self._experiment_request()).run()

    def groups(self, metrics: bool = True) -> dict[str, Any]:
        from tensorboard.plugins.hparams import api_pb2
        from tensorboard.plugins.hparams.list_session_groups import Handler

        wanted = api_pb2.ListSessionGroupsRequest(
            start_index=0,
            slice_size=100,
            include_metrics=metrics,
            aggregation_type=api_pb2.AGGREGATION_AVG,
            allowed_statuses=[api_pb2.STATUS_SUCCESS, api_pb2.STATUS_FAILURE, api_pb2.STATUS_RUNNING, 0],
        )
        return {
            group.name: group
            for group in Handler(self._request, self._context, "", wanted).run().session_groups
        }

    @staticmethod
    def _experiment_request() -> Any:
        from tensorboard.plugins.hparams import api_pb2

        return api_pb2.GetExperimentRequest(include_metrics=True)


def test_curves_and_summary_lie_in_the_runs_own_folder(study: TrackedStudy, tools: Any) -> None:
    tools.publish(open_trackers(["tensorboard"])["tensorboard"], study)
    trials = study.folder / "trials"
    curve = scalars_of(trials / "001-s1000", "eval/score")
    assert [step for step, _ in curve] == [0, 1, 2, 3, 4]
    assert [value for _, value in curve] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])
    assert scalars_of(trials / "001-s1000", "score") == [(4, pytest.approx(0.3))]
    assert len(list((trials / "001-s1000").iterdir())) == 1
    assert Plugin(trials).runs == {"001-s1000", "002-s3000"}


def test_the_study_names_axes_and_objective(study: TrackedStudy, tools: Any) -> None:
    from tensorboard.plugins.hparams import api_pb2

    tools.publish(open_trackers(["tensorboard"])["tensorboard"], study)
    experiment = Plugin(study.folder).experiment()
    infos = {info.name: info for info in experiment.hparam_infos}
    assert set(infos) == {"actor_learning_rate", "kl_coef", "kl_estimator"}
    assert infos["actor_learning_rate"].domain_interval.max_value == 0.1
    assert infos["kl_estimator"].type == api_pb2.DATA_TYPE_STRING
    assert [value.string_value for value in infos["kl_estimator"].domain_discrete.values] == ["k2", "k3"]
    assert {info.name.tag for info in experiment.metric_infos} == {"eval/score", "score"}


def test_seeds_are_sessions_of_their_configuration(study: TrackedStudy, tools: Any) -> None:
    from tensorboard.plugins.hparams import api_pb2

    tracker = open_trackers(["tensorboard"])["tensorboard"]
    tracker.open_study(study)
    for seed, score in ((1000, 0.2), (1001, 0.4)):
        run = tracker.open_run(tools.run_of(study, 1, seed))
        run.log(1, {"eval/score": score})
        run.close(Ending(Outcome.FINISHED, {"score": score}))
    tracker.open_run(tools.run_of(study, 2, 1000)).close(Ending(Outcome.OUT_OF_MEMORY))
    groups = Plugin(study.folder).groups()
    assert set(groups) == {"c001", "c002"}
    assert groups["c001"].hparams["actor_learning_rate"].number_value == 0.01
    assert {value.name.tag: value.value for value in groups["c001"].metric_values} == pytest.approx(
        {"eval/score": 0.3, "score": 0.3}
    )
    assert [session.status for session in groups["c001"].sessions] == [api_pb2.STATUS_SUCCESS] * 2
    assert [session.status for session in groups["c002"].sessions] == [api_pb2.STATUS_FAILURE]


def test_the_verdict_is_text_of_the_study(study: TrackedStudy, tools: Any) -> None:
    tracker = open_trackers(["tensorboard"])["tensorboard"]
    tools.publish(tracker, study)
    (event,) = events_of(study.folder).Tensors("verdict")
    assert event.tensor_proto.string_val == [b"Use c001."]
    assert tracker.hint == f"to look: tensorboard --logdir '{study.folder}'"


def test_a_second_sitting_does_not_begin_the_study_again(study: TrackedStudy, tools: Any) -> None:
    for _ in range(2):
        open_trackers(["tensorboard"])["tensorboard"].open_study(study)
    assert len(list(study.folder.iterdir())) == 1


def test_what_a_resumed_run_measures_again_counts_once(study: TrackedStudy, tools: Any) -> None:
    for since, steps in ((None, (1, 2, 3)), (2, (3, 4))):
        run = open_trackers(["tensorboard"])["tensorboard"].open_run(
            tools.run_of(study, 1, 1000, since=since)
        )
        for step in steps:
            run.log(step, {"eval/score": float(since or 0)})
        run.close(Ending(Outcome.INTERRUPTED))
    folder = study.folder / "trials" / "001-s1000"
    assert scalars_of(folder, "eval/score") == [(1, 0.0), (2, 0.0), (3, 2.0), (4, 2.0)]


def test_a_single_run_is_a_session_with_its_configuration(tmp_path: Path) -> None:
    config = {"seed": 3, "actor": {"learning_rate": 0.01}, "algorithm": {"name": "grpo", "normalize": True}}
    tracker = open_trackers(["tensorboard"])["tensorboard"]
    run = tracker.open_run(TrackedRun("try1-abcd", "try1", tmp_path / "try1", "train", 3, config=config))
    run.log(1, {"eval/score": 0.5})
    run.close(Ending(Outcome.FINISHED, {"score": 0.5}))
    (group,) = Plugin(tmp_path).groups().values()
    assert group.name == "try1"
    assert group.hparams["actor.learning_rate"].number_value == 0.01
    assert group.hparams["algorithm.name"].string_value == "grpo"
    assert group.hparams["algorithm.normalize"].bool_value is True
