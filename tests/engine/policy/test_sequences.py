import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from leverl.engine.policy.sequences import join, micro_batches, split

ids = st.lists(st.integers(0, 99), min_size=1, max_size=6)


@given(st.lists(st.tuples(ids, st.lists(st.integers(0, 99), max_size=5)), min_size=1, max_size=8))
def test_d65_joined_sequences_split_into_what_they_were(pairs):
    responses = torch.full((len(pairs), 5), 77)  # junk beyond the lengths
    for row, (_, response) in enumerate(pairs):
        responses[row, : len(response)] = torch.tensor(response, dtype=torch.long)
    lengths = torch.tensor([len(response) for _, response in pairs])
    sequences = join([prompt for prompt, _ in pairs], responses, lengths)
    assert split(sequences) == pairs
    assert sequences.ids.shape[1] == max(len(prompt) + len(response) for prompt, response in pairs)
    assert torch.equal(sequences.mask.sum(1), lengths)


def test_d65_prompt_and_response_have_no_hole_between_them():
    sequences = join([[1, 2], [3]], torch.tensor([[4, 0, 0], [5, 6, 7]]), torch.tensor([1, 3]))
    assert sequences.ids[0, :3].tolist() == [1, 2, 4]
    assert sequences.ids[1].tolist() == [3, 5, 6, 7]


@given(st.lists(st.integers(1, 50), min_size=1, max_size=40), st.integers(1, 120))
def test_micro_batches_hold_each_row_once_within_the_bound(lengths, max_tokens):
    total = torch.tensor(lengths)
    parts = micro_batches(total, max_tokens)
    assert sorted(torch.cat(parts).tolist()) == list(range(len(lengths)))
    for part in parts:
        assert len(part) * int(total[part].max()) <= max_tokens or len(part) == 1


def test_micro_batches_sort_by_length():
    parts = micro_batches(torch.tensor([2, 9, 2, 8, 2]), max_tokens=18)
    assert [part.tolist() for part in parts] == [[1, 3], [0, 2, 4]]


@pytest.mark.parametrize("bound", [1, 10**9])
def test_micro_batches_of_extreme_bounds(bound):
    assert len(micro_batches(torch.tensor([3, 3, 3]), bound)) == (3 if bound == 1 else 1)
