import pytest
import torch

from leverl.engine.policy.log_probs import log_probs_of, token_log_probs
from leverl.engine.policy.sequences import Sequences, join
from leverl.errors import ConfigError

PROMPTS = [[2, 3, 4], [5], [8, 9, 3, 4, 5]]
RESPONSES = torch.tensor([[6, 7, 1, 0], [3, 1, 0, 0], [2, 2, 4, 1]])
LENGTHS = torch.tensor([3, 2, 4])


def sequences() -> Sequences:
    return join(PROMPTS, RESPONSES, LENGTHS)


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_d50_a_log_prob_comes_from_the_logits_one_position_before(make_policy, kind):
    policy = make_policy(kind)
    found = token_log_probs(policy, sequences(), temperature=1.0).log_probs
    for row, prompt in enumerate(PROMPTS):
        text = prompt + RESPONSES[row, : LENGTHS[row]].tolist()
        log_softmax = policy.model(torch.tensor([text])).logits[0].log_softmax(-1)
        for t in range(int(LENGTHS[row])):
            expected = log_softmax[len(prompt) + t - 1, text[len(prompt) + t]]
            torch.testing.assert_close(found[row, t], expected, atol=1e-5, rtol=0)
    assert not found[~sequences().mask].any()


def test_d50_changing_a_token_changes_only_its_own_and_later_log_probs(make_policy):
    policy = make_policy()
    before = token_log_probs(policy, sequences(), temperature=1.0).log_probs
    changed = RESPONSES.clone()
    changed[2, 1] = 7
    after = token_log_probs(policy, join(PROMPTS, changed, LENGTHS), temperature=1.0).log_probs
    differs = (after - before).abs() > 1e-6
    assert differs.tolist() == [[False] * 4, [False] * 4, [False, True, True, True]]


def test_d51_two_passes_in_training_mode_are_identical(make_policy):
    policy = make_policy("gpt2", resid_pdrop=0.5, attn_pdrop=0.5, embd_pdrop=0.5)
    policy.model.train()
    first = token_log_probs(policy, sequences(), temperature=1.0).log_probs
    assert torch.equal(first, token_log_probs(policy, sequences(), temperature=1.0).log_probs)


def test_d51_without_silencing_dropout_they_would_differ(make_policy):
    policy = make_policy("gpt2", resid_pdrop=0.5, silent=False)
    policy.model.train()
    with torch.random.fork_rng():
        first = token_log_probs(policy, sequences(), temperature=1.0).log_probs
        second = token_log_probs(policy, sequences(), temperature=1.0).log_probs
    assert (first - second).abs().max() > 0.1


def test_d52_the_log_softmax_of_bfloat16_logits_is_float32():
    generator = torch.Generator().manual_seed(0)
    logits = (30 * torch.randn(64, 1000, generator=generator)).bfloat16()
    tokens = torch.randint(1000, (64,), generator=generator)
    expected = logits.double().log_softmax(-1).gather(1, tokens[:, None]).squeeze(1)
    found, _ = log_probs_of(logits, tokens, 1.0)
    assert found.dtype == torch.float32
    assert ((found.double() - expected) / expected.abs().clamp_min(1)).abs().max() < 1e-5


@pytest.mark.parametrize("kind", ["qwen2", "llama", "gpt2", "bloom", "mistral-window", "mamba"])
def test_d53_a_sequence_alone_in_a_batch_and_padded_has_the_same_log_probs(make_policy, kind):
    policy = make_policy(kind, std=0.2)
    together = token_log_probs(policy, sequences(), temperature=0.7).log_probs
    for row, prompt in enumerate(PROMPTS):
        n = int(LENGTHS[row])
        alone = join([prompt], RESPONSES[row : row + 1, :n], LENGTHS[row : row + 1])
        right = Sequences(
            torch.nn.functional.pad(alone.ids, (0, 5), value=6), alone.prompt_lengths, alone.lengths, n
        )
        for other in (alone, right):
            found = token_log_probs(policy, other, temperature=0.7).log_probs[0]
            assert (found - together[row, :n]).abs().max() <= 1e-5
        if (
            kind != "mamba"
        ):  # transformers' Mamba lets padding on the left into its state when there is no cache
            assert (left_padded(policy, alone, n) - together[row, :n]).abs().max() <= 1e-5


def left_padded(policy, alone: Sequences, n: int) -> torch.Tensor:
    """Log-probs of the last n tokens by transformers alone, with 3 pads on the left."""
    ids = torch.nn.functional.pad(alone.ids, (3, 0))
    mask = torch.ones_like(ids)
    mask[:, :3] = 0
    options = (
        {} if policy.model.config.model_type == "bloom" else {"position_ids": (mask.cumsum(1) - 1).clamp(0)}
    )
    logits = policy.model(ids, attention_mask=mask, **options).logits[:, -n - 1 : -1] / 0.7
    return logits.log_softmax(-1).gather(2, ids[:, -n:, None])[0, :, 0]


def test_d57_ids_beyond_the_tokenizer_have_no_probability(make_policy):
    policy = make_policy(vocab_size=10)
    logits = policy.model(torch.tensor([[2, 3, 4]])).logits[0, -1, :10]
    one = join([[2, 3, 4]], torch.tensor([[6]]), torch.tensor([1]))
    found = token_log_probs(policy, one, temperature=1.0, entropy=True)
    torch.testing.assert_close(found.log_probs[0, 0], logits.log_softmax(-1)[6])
    p = logits.softmax(-1)
    torch.testing.assert_close(found.require_entropy()[0, 0], -(p * p.log()).sum())


def test_a_support_removes_ids_but_never_the_token_itself():
    logits = torch.tensor([[1.0, 2.0, 3.0]], requires_grad=True)

    def only_the_best(x: torch.Tensor) -> torch.Tensor:
        return x.masked_fill(x < x.max(-1, keepdim=True).values, -torch.inf)

    token = torch.tensor([0])
    log_probs, entropy = log_probs_of(logits, token, 1.0, entropy=True, support=only_the_best)
    expected = torch.tensor([1.0, 3.0]).log_softmax(0)
    torch.testing.assert_close(log_probs, expected[:1])
    torch.testing.assert_close(entropy[0], -(expected.exp() * expected).sum())
    (log_probs + entropy).sum().backward()
    assert logits.grad.isfinite().all()


def test_gradients_reach_the_model_and_padding_has_none(make_policy):
    policy = make_policy()
    token_log_probs(policy, sequences(), temperature=1.0).log_probs.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in policy.model.parameters())


def test_greedy_temperature_and_a_missing_entropy_are_refused(make_policy):
    policy = make_policy()
    with pytest.raises(ConfigError, match="temperature is 0"):
        token_log_probs(policy, sequences(), temperature=0.0)
    with pytest.raises(ConfigError, match="entropy=True"):
        token_log_probs(policy, sequences(), temperature=1.0).require_entropy()
