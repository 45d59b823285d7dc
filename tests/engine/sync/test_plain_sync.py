import copy

import pytest
import torch

from leverl.engine.inference.native import NativeEngine
from leverl.engine.inference.protocol import SamplingParams
from leverl.engine.policy.load import Policy
from leverl.engine.sync.plain import push, verify
from leverl.engine.weights import named_weights, tied_names
from leverl.errors import TrainingFailed

TYING = pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])


def scramble(model: torch.nn.Module) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.123)


def greedy(engine: NativeEngine) -> list[list[int]]:
    params = SamplingParams(8, temperature=0)
    return engine.generate([[2, 3, 4], [5, 6]], 1, params, seed=0, micro_batch_size=8).responses.tolist()


@TYING
@pytest.mark.parametrize("kind", ["qwen2", "gpt2"])
def test_d71_after_a_push_every_tensor_of_the_sampler_is_the_trainers(make_policy, kind, tied):
    trainer = make_policy(kind, tie_word_embeddings=tied)
    engine = NativeEngine(trainer, share_weights=False)
    scramble(engine._model)
    sent = push(trainer.model, engine, version=3)
    assert engine.version == 3
    assert sent == len(named_weights(trainer.model)) == len(engine.weights())
    ours, theirs = trainer.model.state_dict(), engine._model.state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert verify(trainer.model, engine) == sent


def test_d71_a_push_carries_updates_and_without_one_verify_names_the_first_difference(make_policy):
    trainer = make_policy()
    engine = NativeEngine(trainer, share_weights=False)
    before = greedy(engine)
    with torch.no_grad():
        trainer.model.model.layers[0].mlp.up_proj.weight += 1.0
    assert greedy(engine) == before
    with pytest.raises(TrainingFailed, match=r"'model\.layers\.0\.mlp\.up_proj\.weight' differs"):
        verify(trainer.model, engine)
    push(trainer.model, engine, version=1)
    assert verify(trainer.model, engine)
    assert greedy(engine) == greedy(NativeEngine(trainer)) != before


@TYING
def test_d72_tied_weights_are_sent_once_and_stay_tied(make_policy, tied, tmp_path):
    trainer = make_policy(tie_word_embeddings=tied)
    engine = NativeEngine(trainer, share_weights=False)
    aliases = {"lm_head.weight": "model.embed_tokens.weight"} if tied else {}
    assert tied_names(trainer.model) == tied_names(engine._model) == aliases
    scramble(engine._model)
    push(trainer.model, engine, version=1)
    model = engine._model
    same_storage = model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    assert same_storage == tied
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path)
    assert (loaded.lm_head.weight.data_ptr() == loaded.model.embed_tokens.weight.data_ptr()) == tied
    assert verify(loaded, engine) == len(named_weights(trainer.model))


def test_d72_a_tied_trainer_does_not_fit_an_untied_sampler(make_policy):
    engine = NativeEngine(make_policy(tie_word_embeddings=False), share_weights=False)
    with pytest.raises(TrainingFailed, match=r"1 of \d+ weights of version 1 never came.*'lm_head\.weight'"):
        push(make_policy(tie_word_embeddings=True).model, engine, version=1)


@pytest.mark.parametrize("share", [True, False])
def test_d73_the_same_prompt_is_answered_with_the_new_weights(make_policy, share):
    trainer = make_policy()
    engine = NativeEngine(trainer, share_weights=share)
    push(trainer.model, engine, version=0)
    before = greedy(engine)
    other = make_policy(seed=9)
    trainer.model.load_state_dict(other.model.state_dict())
    push(trainer.model, engine, version=1)
    assert engine.version == 1
    assert greedy(engine) == greedy(NativeEngine(other)) != before


def test_d74_nothing_is_sampled_while_weights_are_half_loaded(make_policy):
    trainer = make_policy()
    engine = NativeEngine(trainer, share_weights=False)
    engine.start(1)
    first, *rest = named_weights(trainer.model).items()
    engine.load([first])
    with pytest.raises(TrainingFailed, match="only partly loaded"):
        greedy(engine)
    with pytest.raises(TrainingFailed, match="never came"):
        engine.finish()
    assert engine.version == 0
    engine.load(rest)
    engine.finish()
    assert engine.version == 1
    greedy(engine)


def test_d75_one_flipped_byte_is_found(make_policy):
    trainer = make_policy()
    engine = NativeEngine(trainer, share_weights=False)
    push(trainer.model, engine, version=1)
    held = engine.weights()["model.layers.1.self_attn.o_proj.weight"]
    held.detach().view(torch.uint8)[5, 6] ^= 1
    with pytest.raises(
        TrainingFailed, match=r"'model\.layers\.1\.self_attn\.o_proj\.weight' differs.*version 1"
    ):
        verify(trainer.model, engine)


def test_d75_the_comparison_is_of_bits(make_policy):
    trainer = make_policy()
    with torch.no_grad():
        trainer.model.model.norm.weight[:2] = torch.tensor([0.0, torch.nan])
    engine = NativeEngine(trainer, share_weights=False)
    assert verify(trainer.model, engine)
    with torch.no_grad():
        engine.weights()["model.norm.weight"][0] = -0.0
    with pytest.raises(TrainingFailed, match=r"'model\.norm\.weight' differs"):
        verify(trainer.model, engine)


def test_a_sampler_of_lower_precision_is_compared_in_its_own(make_policy):
    trainer = make_policy()
    low = Policy(copy.deepcopy(trainer.model).bfloat16(), None, (1,), 0, trainer.vocab_size)
    engine = NativeEngine(low, share_weights=False)
    scramble(engine._model)
    push(trainer.model, engine, version=1)
    assert verify(trainer.model, engine)


def test_weights_that_do_not_belong_are_refused(make_policy):
    trainer = make_policy()
    weights = named_weights(trainer.model)
    name, tensor = next(iter(weights.items()))
    engine = NativeEngine(trainer, share_weights=False)
    with pytest.raises(TrainingFailed, match="outside an update"):
        engine.load([(name, tensor)])
    with pytest.raises(TrainingFailed, match="outside an update"):
        engine.finish()
    engine.start(1)
    with pytest.raises(TrainingFailed, match="version 2 starts while version 1"):
        engine.start(2)
    with pytest.raises(TrainingFailed, match=r"no weight 'model\.nothing'"):
        engine.load([("model.nothing", tensor)])
    engine.load([(name, tensor)])
    with pytest.raises(TrainingFailed, match="came twice"):
        engine.load([(name, tensor)])
    other = "model.norm.weight"
    with pytest.raises(TrainingFailed, match=r"shape \(3,\) in the trainer"):
        engine.load([(other, torch.zeros(3))])


def test_verify_names_weights_that_only_one_side_has(make_policy):
    trainer = make_policy()
    engine = NativeEngine(trainer, share_weights=False)
    weights = named_weights(trainer.model)
    with pytest.raises(TrainingFailed, match="'extra' does not exist in the sampler"):
        verify(weights | {"extra": torch.zeros(1)}, engine)
    del weights["model.norm.weight"]
    with pytest.raises(TrainingFailed, match=r"'model\.norm\.weight' does not exist in the trainer"):
        verify(weights, engine)


def test_shared_weights_cannot_be_overwritten_by_others(make_policy):
    trainer = make_policy()
    engine = NativeEngine(trainer)
    assert push(trainer.model, engine, version=1) == len(engine.weights())
    with pytest.raises(TrainingFailed, match="share_weights=False"):
        push(make_policy(seed=9).model, engine, version=2)
