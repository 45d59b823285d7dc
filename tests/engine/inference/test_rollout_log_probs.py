"""The sampler's log-probs against an independent recomputation by the trainer's code or by transformers."""

from functools import partial

import pytest
import torch

from leverl.engine.inference.filtering import filter_logits
from leverl.engine.inference.native import NativeEngine
from leverl.engine.inference.protocol import Generation, SamplingParams
from leverl.engine.policy.load import Policy
from leverl.engine.policy.log_probs import Support, token_log_probs
from leverl.engine.policy.sequences import join

EQUAL = [[2, 3, 4], [5, 6, 7], [8, 9, 3]]
MIXED = [[2, 3, 4], [5], [8, 9, 3, 4, 5, 6, 7]]


def sample(
    policy: Policy, prompts: list[list[int]], params: SamplingParams, group_size: int = 4
) -> Generation:
    return NativeEngine(policy).generate(prompts, group_size, params, seed=7, micro_batch_size=64)


def recompute(
    policy: Policy,
    prompts: list[list[int]],
    generation: Generation,
    temperature: float,
    support: Support | None = None,
) -> torch.Tensor:
    group_size = len(generation.responses) // len(prompts)
    repeated = [prompt for prompt in prompts for _ in range(group_size)]
    sequences = join(repeated, generation.responses, generation.mask.sum(1))
    with torch.no_grad():
        return token_log_probs(policy, sequences, temperature=temperature, support=support).log_probs


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("prompts", [EQUAL, MIXED], ids=["equal", "mixed"])
@pytest.mark.parametrize("kind", ["qwen2", "llama", "gpt2", "bloom", "mistral-window"])
def test_d45_recomputed_log_probs_equal_the_rollouts_at_any_temperature(
    make_policy, kind, prompts, temperature
):
    policy = make_policy(kind, std=0.2)
    generation = sample(policy, prompts, SamplingParams(12, temperature=temperature, stop_ids=(1,)))
    again = recompute(policy, prompts, generation, temperature)
    assert generation.log_probs[generation.mask].std() > 0.2  # a zero head would make this test vacuous
    assert (again - generation.log_probs).abs().max() <= 1e-5


def test_d45_a_wrong_temperature_is_seen(make_policy):
    policy = make_policy()
    generation = sample(policy, EQUAL, SamplingParams(12, temperature=0.7))
    assert (recompute(policy, EQUAL, generation, 1.0) - generation.log_probs).abs().max() > 0.1


@pytest.mark.parametrize("prompts", [EQUAL, MIXED], ids=["equal", "mixed"])
def test_a_recurrent_model_samples_what_it_scores(make_policy, prompts):
    policy = make_policy("mamba")
    generation = sample(policy, prompts, SamplingParams(8, stop_ids=(1,)))
    assert (recompute(policy, prompts, generation, 1.0) - generation.log_probs).abs().max() <= 1e-5


@pytest.mark.parametrize("prompts", [EQUAL, MIXED], ids=["equal", "mixed"])
def test_a_model_without_a_cache_samples_the_same_ids(make_policy, prompts):
    policy = make_policy("gpt2")
    params = SamplingParams(8, stop_ids=(1,))
    expected = sample(policy, prompts, params)
    engine = NativeEngine(policy)
    engine._lm.cache_name = None
    found = engine.generate(prompts, 4, params, seed=7, micro_batch_size=64)
    assert torch.equal(found.responses, expected.responses)
    torch.testing.assert_close(found.log_probs, expected.log_probs, atol=1e-5, rtol=0)


def test_d47_the_engine_reports_log_probs_of_the_tempered_distribution(make_policy):
    policy = make_policy("qwen2")
    generation = sample(policy, EQUAL, SamplingParams(6, temperature=0.6), group_size=2)
    for row in range(6):
        ids = torch.tensor([EQUAL[row // 2] + generation.responses[row].tolist()])
        with torch.no_grad():
            logits = policy.model(ids).logits[0, 2:-1]
        expected = (logits / 0.6).log_softmax(-1).gather(1, generation.responses[row, :, None]).squeeze(1)
        torch.testing.assert_close(generation.log_probs[row], expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("top_k", "top_p"), [(5, 1.0), (0, 0.7), (8, 0.8)])
def test_d48_recomputing_on_the_same_support_gives_ratio_one(make_policy, top_k, top_p):
    policy = make_policy()
    params = SamplingParams(12, temperature=0.8, top_k=top_k, top_p=top_p)
    generation = sample(policy, MIXED, params, group_size=8)
    support = partial(filter_logits, top_k=top_k, top_p=top_p)
    again = recompute(policy, MIXED, generation, 0.8, support)
    assert (again - generation.log_probs).abs().max() <= 1e-5
    assert (recompute(policy, MIXED, generation, 0.8) - generation.log_probs).abs().max() > 0.1


def test_d49_the_recorded_log_prob_is_the_sampled_tokens(make_policy):
    policy = make_policy(std=0.2)
    generation = sample(policy, EQUAL, SamplingParams(1), group_size=32)
    with torch.no_grad():
        log_softmax = policy.model(torch.tensor(EQUAL)).logits[:, -1].log_softmax(-1).repeat_interleave(32, 0)
    expected = log_softmax.gather(1, generation.responses)
    torch.testing.assert_close(generation.log_probs, expected, atol=1e-5, rtol=0)
    assert (
        log_softmax.max(1).values[:, None] - expected
    ).max() > 0.5  # tokens other than the best were drawn


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_d53_sampling_does_not_depend_on_the_other_prompts(make_policy, kind):
    policy = make_policy(kind)
    params = SamplingParams(10, stop_ids=(1,))
    engine = NativeEngine(policy)
    together = engine.generate(MIXED, 1, params, seed=3, micro_batch_size=8)
    for row, prompt in enumerate(MIXED):
        # The uniforms of row r are those of sample r, so earlier prompts are kept as placeholders.
        alone = engine.generate([prompt] * (row + 1), 1, params, seed=3, micro_batch_size=8)
        length = int(together.mask[row].sum())
        assert alone.responses[row, :length].tolist() == together.responses[row, :length].tolist()
        delta = alone.log_probs[row, :length] - together.log_probs[row, :length]
        assert delta.abs().max() <= 1e-5


@pytest.mark.parametrize("kind", ["qwen2", "gpt2", "bloom"])
def test_d63_left_padded_prompts_have_the_logits_of_unpadded_ones(make_policy, kind):
    policy = make_policy(kind)
    generation = sample(policy, MIXED, SamplingParams(6), group_size=1)
    for row, prompt in enumerate(MIXED):
        ids = torch.tensor([prompt + generation.responses[row].tolist()])
        with torch.no_grad():
            logits = policy.model(ids).logits[0, len(prompt) - 1 : -1]
        expected = logits.log_softmax(-1).gather(1, generation.responses[row, :, None]).squeeze(1)
        torch.testing.assert_close(generation.log_probs[row], expected, atol=1e-5, rtol=0)
