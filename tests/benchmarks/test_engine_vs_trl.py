"""The helpers of benchmarks/engine_vs_trl.py; TRL itself is not needed."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`module("_floor")` imports one of the benchmark's modules, as the script does."""
    monkeypatch.syspath_prepend(FOLDER)

    def load(name: str) -> ModuleType:
        import importlib

        return importlib.import_module(name)

    yield load
    for name in [
        name for name, loaded in sys.modules.items() if str(FOLDER) in str(vars(loaded).get("__file__"))
    ]:
        del sys.modules[name]


def test_responses_end_with_the_probability_that_gives_the_mean(module: Any) -> None:
    workload = module("_workload")
    p = workload.end_probability(workload.WORKLOADS["natural"])
    assert sum((1 - p) ** t for t in range(64)) == pytest.approx(16)
    assert workload.end_probability(workload.WORKLOADS["equal"]) == 0


def test_the_model_ends_responses_with_that_probability(module: Any, tmp_path: Path) -> None:
    from leverl.engine.policy.load import load_policy

    workload = module("_workload")
    for lengths, low, high in (
        (workload.Lengths("natural", 64, 16), 0.04, 0.09),
        (workload.Lengths("equal", 8, 8), 0, 1e-12),
    ):
        small = workload.Setting(workload.Model("small", 64, 64, 2, 4, responses=16), lengths)
        workload.build_model(tmp_path, small)
        policy = load_policy(tmp_path)
        ids = torch.randint(policy.vocab_size, (8, 16), generator=torch.Generator().manual_seed(1))
        ends = policy.model(ids).logits.softmax(-1)[..., policy.eos_ids[0]]
        assert low <= float(ends.mean().detach()) <= high


def test_prompts_are_different_and_equally_long(module: Any) -> None:
    workload = module("_workload")
    tokenizer, texts = workload.byte_tokenizer(), workload.prompt_texts()
    assert len(set(texts)) == len(texts)
    assert {len(tokenizer(text)["input_ids"]) for text in texts} == {workload.PROMPT_TOKENS}


def test_the_floor_counts_rows_that_live_and_tokens_that_are_there(module: Any) -> None:
    floor = module("_floor")
    assert floor.live_rows([4, 2, 2, 1]) == [4, 3, 1, 1]
    assert floor.rectangle([4, 2, 2, 1, 1]) == (5, 2)


def test_gradients_that_differ_do_not_agree(module: Any) -> None:
    compare = module("_gradients").agreement
    g = {"a": torch.tensor([1.0, 2.0]), "b": torch.tensor([[3.0]])}
    assert compare(g, {name: value.clone() for name, value in g.items()}, 1).agrees
    assert not compare(g, g | {"b": torch.tensor([[3.1]])}, 1).agrees
    assert not compare(g, {name: -value for name, value in g.items()}, 1).agrees
    with pytest.raises(SystemExit, match="'b'"):
        compare(g, {"a": g["a"]}, 1)


def test_the_table_has_medians_shares_and_ratios(module: Any) -> None:
    def step(wall: float) -> dict[str, Any]:
        floor = {"generation": 0.3, "training": 0.5, "cpu": 0.8}
        return {
            "wall": wall,
            "cpu": wall,
            "generation": 0.3,
            "tokens": 160,
            "responses": 10,
            "longest": 16,
            "floor": floor,
        }

    shard = {
        "rounds": [{"leverl": [step(1.0)], "trl": [step(2.0)]}, {"leverl": [step(1.0)], "trl": [step(4.0)]}],
        "memory": {"leverl": {"baseline": 400.0, "peak": 500.0}, "trl": {"baseline": 400.0, "peak": 600.0}},
        "gradients": {"max_difference": 1e-7, "cosine": 1.0},
    }
    text = module("_table").table({"0.8M/equal": shard})
    assert "| 0.8M/equal | leverl | 1.00 [1.00–1.00] |" in text
    assert "| 80 % | 80 % | 160 | 16.0 | 100 (500) |" in text
    assert "| 0.8M/equal | 3.00 [2.50–3.50] | 3.00 [2.50–3.50] | 0.50 |" in text
