import json
import shutil
from pathlib import Path

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial

from leverl.cli.main import main
from leverl.tune.store.imported import read_imported
from leverl.tune.study_file import load_study


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with a study `s`."""
    path = tmp_path_factory.mktemp("original") / "old.db"
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = optuna.storages.RDBStorage(f"sqlite:///{path}")
    study = optuna.create_study(storage=storage, study_name="s", direction="minimize")
    ranges = {"lr": FloatDistribution(1e-5, 1e-2, log=True), "dropout": FloatDistribution(0, 1)}
    for rate in (1e-4, 1e-3):
        study.add_trial(create_trial(value=rate, params={"lr": rate, "dropout": 0.1}, distributions=ranges))
    storage.remove_session()
    storage.engine.dispose()
    return path


@pytest.fixture
def database(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its URL, as old.db of the working folder."""
    shutil.copy(original, tmp_path / "old.db")
    monkeypatch.chdir(tmp_path)
    return "sqlite:///old.db"


def test_a_dry_run_says_what_fits_and_writes_nothing(
    database: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", "optuna", database, "--into", "studies/lr", "--dry-run"]) == 0
    out = capsys.readouterr().out
    for said in (
        "2 trials of study s, 0 of them failures",
        "lr → actor_learning_rate",
        "left out     parameter dropout: unknown setting",
        "next: leverl import optuna sqlite:///old.db --into studies/lr",
    ):
        assert said in out
    assert not Path("studies").exists()


def test_a_study_is_begun(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "import",
        "optuna",
        database,
        "--study",
        "s",
        "--into",
        "studies/lr",
        "budget.trials=25",
        "steps=7",
    ]
    assert main(words) == 0
    assert "next: leverl tune --resume studies/lr" in capsys.readouterr().out
    study = load_study("studies/lr/study.yaml")
    assert study.name == "lr"
    assert study.target.set == {"steps": 7}
    assert (study.objective.goal, study.budget.trials) == ("minimize", 25)
    assert study.space == {"actor_learning_rate": {"min": 1e-5, "max": 1e-2, "log": True}}
    imported = read_imported(Path("studies/lr"))
    assert imported is not None
    assert [trial.value for trial in imported.trials] == [1e-4, 1e-3]
    assert main(["tune", "--resume", "studies/lr", "--dry-run"]) == 0


def test_an_existing_folder_is_kept(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "optuna", database, "--into", "studies/lr"]) == 0
    before = Path("studies/lr/study.yaml").read_text()
    assert main(["import", "optuna", database, "--into", "studies/lr", "budget.trials=40"]) == 2
    assert "exists already" in capsys.readouterr().err
    assert Path("studies/lr/study.yaml").read_text() == before


def test_programs_get_one_object(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["import", "optuna", "old.db", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["folder"] == "studies/s"
    assert (content["trials"], content["goal"], content["written"]) == (2, "minimize", True)
    assert content["names"] == {"lr": "actor_learning_rate"}
    assert len(content["left_out"]) == 2
    assert content["next"] == "leverl tune --resume studies/s"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["optuna", "old.db", "--study", "t"], 2, "no study 't'"),
        (["optuna", "sqlite:///none.db"], 2, "there is no file"),
        (["optuna", "mysql://me:secret@host/db"], 4, "driver for mysql://me:***@host/db"),
        (["optuna", "old.db", "--target", "none"], 2, "'none' is neither a recipe"),
        (["optuna", "old.db", "kl_ceof=1"], 2, "kl_coef"),
        (["optuna", "old.db", "objective.goal=maximize"], 2, "had goal minimize"),
    ],
)
def test_mistakes_have_exit_codes_and_leave_nothing(
    database: str, words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", *words]) == code
    assert said in capsys.readouterr().err
    assert not Path("studies").exists()
