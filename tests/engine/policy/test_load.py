import json

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from leverl.engine.policy.load import load_policy, private_rng
from leverl.engine.policy.log_probs import token_log_probs
from leverl.engine.policy.sequences import join
from leverl.engine.policy.tokenizer import character_tokenizer
from leverl.errors import ConfigError

VOCAB = 102


def save_model(make_policy, folder, rows: int, kind: str = "qwen2", **settings):
    """A model of `rows` embedding rows and the tokenizer of 102 ids."""
    config = make_policy(kind, silent=False, **settings).model.config
    config.vocab_size = rows
    with private_rng():
        AutoModelForCausalLM.from_config(AutoConfig.for_model(**config.to_dict())).save_pretrained(folder)
    character_tokenizer(64, "ascii").save_pretrained(folder)
    return folder


DROPOUTS = {
    "gpt2": {"resid_pdrop": 0.5, "attn_pdrop": 0.5, "embd_pdrop": 0.5},
    "qwen2": {"attention_dropout": 0.5},
}


@pytest.mark.parametrize("kind", list(DROPOUTS))
def test_d51_a_model_with_dropout_is_loaded_with_dropout_off(make_policy, tmp_path, kind):
    folder = save_model(make_policy, tmp_path, VOCAB, kind, **DROPOUTS[kind])
    assert json.loads((folder / "config.json").read_text()).items() >= DROPOUTS[kind].items()
    policy = load_policy(folder, device="cpu")
    policy.model.train()
    sequences = join([[7, 8, 9]], torch.tensor([[10, 11, 1]]), torch.tensor([3]))
    first = token_log_probs(policy, sequences, temperature=1.0).log_probs
    assert torch.equal(first, token_log_probs(policy, sequences, temperature=1.0).log_probs)


def test_d57_padding_rows_of_the_embedding_are_not_part_of_the_vocabulary(make_policy, tmp_path):
    assert load_policy(save_model(make_policy, tmp_path, 128)).vocab_size == VOCAB


def test_d61_end_tokens_come_from_generation_config_and_tokenizer(make_policy, tmp_path):
    folder = save_model(make_policy, tmp_path, VOCAB)
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [40, 41]}))
    policy = load_policy(folder)
    assert policy.eos_ids == (1, 40, 41)
    assert policy.pad_id == 0


def test_d59_without_a_pad_token_an_eos_serves_as_pad(make_policy, tmp_path):
    folder = save_model(make_policy, tmp_path, VOCAB)
    tokenizer = character_tokenizer(64, "ascii")
    tokenizer.pad_token = None
    tokenizer.save_pretrained(folder)
    policy = load_policy(folder)
    assert policy.pad_id == policy.eos_ids[0] == 1


def test_loading_leaves_torchs_generator_alone(make_policy, tmp_path):
    folder = save_model(make_policy, tmp_path, VOCAB)
    before = torch.get_rng_state()
    load_policy(folder)
    assert torch.equal(torch.get_rng_state(), before)


def test_bfloat16_computes_in_bfloat16_over_weights_that_stay_float32(make_policy, tmp_path):
    folder = save_model(make_policy, tmp_path, VOCAB)
    sequences = join([[7, 8, 9]], torch.tensor([[10, 11, 1]]), torch.tensor([3]))
    exact = token_log_probs(load_policy(folder), sequences, temperature=1.0).log_probs
    policy = load_policy(folder, dtype="bfloat16")
    found = token_log_probs(policy, sequences, temperature=1.0).log_probs
    assert found.dtype == torch.float32
    assert 0 < (found - exact).abs().max() < 0.05
    assert {parameter.dtype for parameter in policy.model.parameters()} == {torch.float32}


def test_a_small_update_is_not_swallowed_in_bfloat16(make_policy, tmp_path):
    policy = load_policy(save_model(make_policy, tmp_path, VOCAB), dtype="bfloat16")
    optimizer = torch.optim.AdamW(policy.model.parameters(), lr=1e-6, weight_decay=0.0)
    before = [parameter.detach().clone() for parameter in policy.model.parameters()]
    sequences = join([[7, 8, 9]], torch.tensor([[10, 11, 1]]), torch.tensor([3]))
    token_log_probs(policy, sequences, temperature=1.0).log_probs.sum().backward()
    optimizer.step()
    moved = [not torch.equal(a, b) for a, b in zip(before, policy.model.parameters(), strict=True)]
    assert all(moved)


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere' is not a folder\. Give a folder"):
        load_policy(tmp_path / "nowhere")


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"without config\.json"):
        load_policy(tmp_path)


def test_a_hub_name_that_cannot_be_reached_is_named():
    with pytest.raises(ConfigError, match=r"'nobody/nothing' cannot be loaded.*needs network access"):
        load_policy("nobody/nothing")


def test_a_folder_without_a_tokenizer_is_refused(make_policy, tmp_path):
    make_policy().model.save_pretrained(tmp_path)
    with pytest.raises(ConfigError, match="no tokenizer files"):
        load_policy(tmp_path)


def test_a_tokenizer_larger_than_the_embedding_is_refused(make_policy, tmp_path):
    with pytest.raises(ConfigError, match="102 ids but the embedding only 50 rows"):
        load_policy(save_model(make_policy, tmp_path, 50))


def test_an_unknown_dtype_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"model\.dtype is 'float8'"):
        load_policy(tmp_path, dtype="float8")


def test_a_model_that_can_never_stop_is_refused(make_policy, tmp_path):
    folder = save_model(make_policy, tmp_path, VOCAB)
    (folder / "generation_config.json").write_text("{}")
    tokenizer = character_tokenizer(64, "ascii")
    tokenizer.eos_token = None
    tokenizer.save_pretrained(folder)
    with pytest.raises(ConfigError, match="end-of-sequence"):
        load_policy(folder)
