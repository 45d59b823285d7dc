import torch

from leverl.engine.inference.protocol import SamplingParams
from leverl.engine.inference.sampling import draw


def test_an_id_of_probability_zero_is_never_drawn():
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf, 0.0, -torch.inf]]).repeat(3, 1)
    largest = 1 - 2.0**-52
    ids, log_probs = draw(logits, SamplingParams(1), torch.tensor([0.0, 0.5, largest], dtype=torch.float64))
    assert ids.tolist() == [1, 3, 3]
    torch.testing.assert_close(log_probs, torch.full((3,), 0.5).log())


def test_the_id_is_where_the_cumulative_probability_passes_the_uniform():
    probs = torch.tensor([0.1, 0.4, 0.2, 0.3], dtype=torch.float64)
    uniforms = torch.linspace(0, 0.999, 500, dtype=torch.float64)
    ids, _ = draw(probs.log().float().repeat(500, 1), SamplingParams(1), uniforms)
    expected = [next(i for i, c in enumerate(probs.cumsum(0)) if c > u + 1e-6 or c > u) for u in uniforms]
    assert sum(a != b for a, b in zip(ids.tolist(), expected, strict=True)) <= 1


def test_greedy_takes_the_best_and_is_certain():
    ids, log_probs = draw(torch.tensor([[0.0, 2.0, 1.0]]), SamplingParams(1, temperature=0), torch.zeros(1))
    assert ids.tolist() == [1]
    assert log_probs.tolist() == [0.0]
