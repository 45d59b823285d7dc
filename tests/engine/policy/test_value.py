import pytest
import torch

from leverl.engine.policy.log_probs import token_log_probs
from leverl.engine.policy.sequences import join
from leverl.engine.policy.value import HEAD_FILE, ValueModel
from leverl.errors import CheckpointError

PROMPTS = [[2, 3, 4], [5]]
RESPONSES = torch.tensor([[6, 7, 1], [3, 1, 0]])
LENGTHS = torch.tensor([3, 2])


def sequences():
    return join(PROMPTS, RESPONSES, LENGTHS)


@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_values_are_read_at_the_state_before_each_token(make_policy, kind):
    model = ValueModel.from_policy(make_policy(kind), head_seed=1)
    values = model.values(sequences())
    for row, prompt in enumerate(PROMPTS):
        for t in range(int(LENGTHS[row])):
            state = torch.tensor([prompt + RESPONSES[row, :t].tolist()])
            expected = model.head(model.backbone(state).last_hidden_state[0, -1])[0]
            torch.testing.assert_close(values[row, t], expected, atol=1e-5, rtol=1e-5)
    assert values[1, 2] == 0
    assert values[sequences().mask].std() > 0.1


def test_d46_values_do_not_depend_on_the_temperature(make_policy):
    policy = make_policy()
    model = ValueModel.from_policy(policy, head_seed=1)
    before = model.values(sequences())
    cold = token_log_probs(policy, sequences(), temperature=0.5).log_probs
    assert torch.equal(model.values(sequences()), before)
    assert not torch.equal(cold, token_log_probs(policy, sequences(), temperature=2.0).log_probs)


def test_the_critic_shares_nothing_with_the_policy(make_policy):
    policy = make_policy()
    model = ValueModel.from_policy(policy, head_seed=1)
    before = token_log_probs(policy, sequences(), temperature=1.0).log_probs
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    assert torch.equal(token_log_probs(policy, sequences(), temperature=1.0).log_probs, before)


def test_the_head_follows_its_seed_and_leaves_torchs_generator_alone(make_policy):
    policy = make_policy()
    before = torch.get_rng_state()
    a, b, c = (ValueModel.from_policy(policy, head_seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(a.head.weight, b.head.weight)
    assert not torch.equal(a.head.weight, c.head.weight)


def test_a_saved_critic_comes_back_bit_equal(make_policy, tmp_path):
    model = ValueModel.from_policy(make_policy(), head_seed=1)
    with torch.no_grad():
        model.head.bias.fill_(0.25)
    model.save(tmp_path)
    before = torch.get_rng_state()
    loaded = ValueModel.load(tmp_path)
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(loaded.values(sequences()), model.values(sequences()))


def test_a_folder_without_a_head_is_not_a_critic(make_policy, tmp_path):
    make_policy().model.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=HEAD_FILE):
        ValueModel.load(tmp_path)
