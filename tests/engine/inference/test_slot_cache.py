import torch
from transformers.cache_utils import DynamicCache, DynamicSlidingWindowLayer

from leverl.engine.inference.slot_cache import SlotLayer, expand


def states(rows: int, slots: int, seed: int) -> torch.Tensor:
    return torch.randn(rows, 2, slots, 3, generator=torch.Generator().manual_seed(seed))


def test_it_holds_what_the_dynamic_cache_holds():
    oracle, prefilled = DynamicCache(), DynamicCache()
    for cache in (oracle, prefilled):
        for layer in range(2):
            cache.update(states(3, 5, layer), states(3, 5, 10 + layer), layer)
    rows = torch.tensor([0, 0, 1, 1, 2, 2])
    slots = expand(prefilled, rows, room=4)
    oracle.reorder_cache(rows)
    assert all(type(layer) is SlotLayer for layer in slots.layers)
    order = torch.tensor([0, 5, 2, 3])
    for step in range(4):
        for layer in range(2):
            new = states(oracle.layers[0].keys.shape[0], 1, 100 + 10 * step + layer)
            expected, found = oracle.update(new, new + 1, layer), slots.update(new, new + 1, layer)
            assert torch.equal(found[0], expected[0])
            assert torch.equal(found[1], expected[1])
        assert slots.get_seq_length() == oracle.get_seq_length()
        assert slots.get_mask_sizes(1, 0) == oracle.get_mask_sizes(1, 0)
        if step == 1:
            oracle.reorder_cache(order)
            slots.reorder_cache(order)


def test_other_kinds_of_layers_stay_transformers_own():
    cache = DynamicCache()
    cache.layers = [DynamicSlidingWindowLayer(sliding_window=3)]
    cache.layer_class_to_replicate = None
    cache.update(states(2, 5, 0), states(2, 5, 1), 0)
    found = expand(cache, torch.tensor([1, 1, 0]), room=4)
    assert found is cache
    assert found.layers[0].keys.shape[0] == 3
