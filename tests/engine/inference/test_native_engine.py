"""What is sampled: distribution, stopping, masks, seeds, and independence of how work is cut up."""

import pytest
import torch
from scipy.stats import chisquare

from leverl.engine.data.batch import STOPPED, TRUNCATED
from leverl.engine.inference.batching import MIN_ROWS, compaction
from leverl.engine.inference.native import NativeEngine
from leverl.engine.inference.protocol import SamplingParams
from leverl.engine.policy.load import Policy
from leverl.engine.policy.sequences import join, split
from leverl.errors import ConfigError, TrainingFailed

EQUAL = [[2, 3, 4], [5, 6, 7], [8, 9, 3]]
MIXED = [[2, 3, 4], [5], [8, 9, 3, 4, 5, 6, 7]]


@pytest.mark.parametrize("kind", ["qwen2", "gpt2", "mistral-window"])
@pytest.mark.parametrize("prompts", [EQUAL, MIXED], ids=["equal", "mixed"])
def test_greedy_equals_transformers_generate(make_policy, kind, prompts):
    policy = make_policy(kind)
    found = NativeEngine(policy).generate(
        prompts, 1, SamplingParams(12, temperature=0, stop_ids=(1,)), seed=0, micro_batch_size=64
    )
    for row, prompt in enumerate(prompts):
        expected = policy.model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            do_sample=False,
            max_new_tokens=12,
        )
        assert found.responses[row][found.mask[row]].tolist() == expected[0, len(prompt) :].tolist()
    assert not found.log_probs.any()


def test_sampling_frequencies_match_the_softmax(make_policy):
    policy = make_policy(std=0.15)
    n = 4000
    found = NativeEngine(policy).generate(
        [[2, 3, 4]], n, SamplingParams(1, temperature=1.5), seed=11, micro_batch_size=n
    )
    with torch.no_grad():
        probs = (policy.model(torch.tensor([[2, 3, 4]])).logits[0, -1] / 1.5).double().softmax(-1)
    counts = found.responses.flatten().bincount(minlength=len(probs))
    assert probs.min() * n >= 5  # else chi-square is not valid
    assert chisquare(counts.numpy(), (probs * n).numpy()).pvalue > 1e-3


@pytest.mark.parametrize("prompts", [EQUAL, MIXED], ids=["equal", "mixed"])
@pytest.mark.parametrize("kind", ["qwen2", "mistral-window"])
def test_the_micro_batch_size_never_changes_what_is_sampled(make_policy, kind, prompts):
    engine = NativeEngine(make_policy(kind))
    params = SamplingParams(10, stop_ids=(1, 5))
    whole = engine.generate(prompts, 8, params, seed=5, micro_batch_size=24)
    for size in (2, 7, 1000):
        parts = engine.generate(prompts, 8, params, seed=5, micro_batch_size=size)
        assert torch.equal(parts.responses, whole.responses)
        assert torch.equal(parts.mask, whole.mask)
        assert torch.equal(parts.finish, whole.finish)
        torch.testing.assert_close(parts.log_probs, whole.log_probs, atol=1e-6, rtol=0)


def test_d57_no_id_beyond_the_tokenizer_is_sampled(make_policy):
    policy = make_policy(vocab_size=10)  # the embedding has 23 rows
    with torch.no_grad():
        policy.model.get_input_embeddings().weight[10:] *= 10  # would win most of the time
    for temperature in (0.0, 1.0):
        params = SamplingParams(8, temperature=temperature)
        found = NativeEngine(policy).generate(EQUAL, 16, params, seed=0, micro_batch_size=64)
        assert int(found.responses.max()) < 10


def test_d58_samples_differ_within_a_group_and_between_seeds_and_repeat_with_the_seed(make_policy):
    engine = NativeEngine(make_policy(std=0.1))
    params = SamplingParams(8)

    def sampled(seed: int) -> torch.Tensor:
        return engine.generate([[2, 3], [2, 3]], 16, params, seed=seed, micro_batch_size=16).responses

    first = sampled(1)
    assert len(first.unique(dim=0)) == 32
    assert len(torch.cat([first, sampled(2)]).unique(dim=0)) == 64
    assert torch.equal(first, sampled(1))


def test_d59_with_pad_equal_to_eos_one_eos_per_finished_sample_is_in_the_mask(make_policy):
    made = make_policy(std=0.1)
    policy = Policy(made.model, None, eos_ids=(1,), pad_id=1, vocab_size=made.vocab_size)
    params = SamplingParams(20, stop_ids=policy.eos_ids)
    found = NativeEngine(policy).generate(EQUAL, 16, params, seed=0, micro_batch_size=64)
    eos_in_mask = ((found.responses == 1) & found.mask).sum(1)
    finished = found.finish == STOPPED
    assert 5 < int(finished.sum()) < 48
    assert torch.equal(eos_in_mask, finished.long())


def test_d60_the_mask_ends_with_the_first_eos(make_policy):
    found = NativeEngine(make_policy(std=0.1)).generate(
        MIXED, 16, SamplingParams(20, stop_ids=(1,)), seed=0, micro_batch_size=64
    )
    for ids, mask in zip(found.responses.tolist(), found.mask.tolist(), strict=True):
        expected = ids.index(1) + 1 if 1 in ids else 20
        assert sum(mask) == expected
        assert all(mask[:expected])
        assert not any(ids[expected:])  # pads
    assert found.responses.shape[1] == int(found.mask.sum(1).max())


def test_d61_any_of_several_eos_ids_ends_a_response_and_stays_in_it(make_policy):
    stops = (1, 4, 9)
    found = NativeEngine(make_policy(std=0.1)).generate(
        EQUAL, 32, SamplingParams(20, stop_ids=stops), seed=0, micro_batch_size=96
    )
    last = found.responses.gather(1, found.mask.sum(1, keepdim=True) - 1).squeeze(1)
    stopped = found.finish == STOPPED
    assert set(last[stopped].tolist()) == set(stops)
    inner = found.mask.clone().scatter_(1, found.mask.sum(1, keepdim=True) - 1, False)
    assert not torch.isin(found.responses[inner], torch.tensor(stops)).any()


def test_d62_a_truncated_response_has_no_eos(make_policy):
    found = NativeEngine(make_policy(std=0.1)).generate(
        EQUAL, 16, SamplingParams(5, stop_ids=(1,)), seed=0, micro_batch_size=64
    )
    truncated = found.finish == TRUNCATED
    assert 0 < int(truncated.sum()) < 48
    assert (found.responses[truncated] != 1).all()
    assert found.mask[truncated].all()


def test_a_stop_token_at_the_last_position_is_a_stop(make_policy):
    found = NativeEngine(make_policy(std=0.1)).generate(
        EQUAL, 32, SamplingParams(1, stop_ids=(1,)), seed=0, micro_batch_size=96
    )
    assert torch.equal(found.finish == STOPPED, found.responses[:, 0] == 1)
    assert (found.finish == STOPPED).any()


def test_without_stop_ids_all_responses_have_full_length(make_policy):
    found = NativeEngine(make_policy(std=0.1)).generate(
        EQUAL, 8, SamplingParams(9), seed=0, micro_batch_size=7
    )
    assert found.mask.all()
    assert found.responses.shape == (24, 9)
    assert (found.finish == TRUNCATED).all()


def test_d68_the_trainer_gets_the_sampled_ids_byte_for_byte(make_policy):
    found = NativeEngine(make_policy(std=0.1)).generate(
        MIXED, 4, SamplingParams(8, stop_ids=(1,)), seed=0, micro_batch_size=64
    )
    repeated = [prompt for prompt in MIXED for _ in range(4)]
    pairs = split(join(repeated, found.responses, found.mask.sum(1)))
    kept = [row[mask].tolist() for row, mask in zip(found.responses, found.mask, strict=True)]
    assert pairs == list(zip(repeated, kept, strict=True))


def test_sampling_leaves_torchs_generator_and_the_training_mode_alone(make_policy):
    policy = make_policy()
    policy.model.train()
    before = torch.get_rng_state()
    engine = NativeEngine(policy, share_weights=False)
    NativeEngine(policy).generate(EQUAL, 2, SamplingParams(4), seed=0, micro_batch_size=8)
    engine.generate(EQUAL, 2, SamplingParams(4), seed=0, micro_batch_size=8)
    assert torch.equal(torch.get_rng_state(), before)
    assert policy.model.training


def test_rollout_log_probs_can_be_used_in_a_loss(make_policy):
    found = NativeEngine(make_policy()).generate(EQUAL, 2, SamplingParams(4), seed=0, micro_batch_size=8)
    weight = torch.ones(6, 4, requires_grad=True)
    (weight * found.log_probs).sum().backward()  # tensors of torch.inference_mode would raise here
    assert torch.equal(weight.grad, found.log_probs)


def test_finished_rows_leave_and_live_ones_fill_their_places():
    live = torch.tensor([True, False, True, False, False, True, True, False])
    assert compaction(live).tolist() == [0, 5, 2, 6]
    assert compaction(torch.ones(8, dtype=torch.bool)) is None
    one_left = torch.zeros(8, dtype=torch.bool)
    one_left[6] = True
    order = compaction(one_left)
    assert len(order) == MIN_ROWS
    assert 6 in order.tolist()
    assert compaction(torch.tensor([False, True, False, False])) is None


def test_few_finished_rows_of_many_stay():
    live = torch.ones(64, dtype=torch.bool)
    live[:3] = False
    assert compaction(live) is None
    live[3] = False
    assert compaction(live).tolist() == [60, 61, 62, 63, *range(4, 60)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompts": []}, "no prompts"),
        ({"prompts": [[2], []]}, r"prompts \[1\]"),
        ({"group_size": 0}, "group_size is 0"),
        ({"micro_batch_size": 0}, "micro_batch_size is 0"),
        ({"params": SamplingParams(62)}, "together 65, but the model has 64 positions"),
    ],
)
def test_wrong_calls_are_refused(make_policy, change, message):
    call = {"prompts": EQUAL, "group_size": 1, "params": SamplingParams(2), "seed": 0, "micro_batch_size": 4}
    with pytest.raises(ConfigError, match=message):
        NativeEngine(make_policy()).generate(**(call | change))


@pytest.mark.parametrize(
    "settings", [{"max_new_tokens": 0}, {"temperature": -1.0}, {"top_p": 0.0}, {"top_p": 1.1}, {"top_k": -1}]
)
def test_impossible_sampling_params_are_refused(settings):
    with pytest.raises(ConfigError, match=next(iter(settings))):
        SamplingParams(**({"max_new_tokens": 1} | settings))


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_weights_that_are_not_finite_are_reported(make_policy, temperature):
    policy = make_policy()
    with torch.no_grad():
        policy.model.get_input_embeddings().weight[3] = torch.nan
    with pytest.raises(TrainingFailed, match="NaN or infinite"):
        NativeEngine(policy).generate(
            EQUAL, 1, SamplingParams(2, temperature=temperature), seed=0, micro_batch_size=4
        )
