import pytest
import torch

from leverl.engine.inference.filtering import filter_logits

LOGITS = torch.tensor([[0.1, 0.4, 0.2, 0.3]]).log()


def kept(**settings: float) -> list[int]:
    return filter_logits(LOGITS, **settings)[0].isfinite().nonzero().flatten().tolist()


@pytest.mark.parametrize(("k", "expected"), [(0, [0, 1, 2, 3]), (1, [1]), (2, [1, 3]), (9, [0, 1, 2, 3])])
def test_top_k_keeps_the_most_probable(k, expected):
    assert kept(top_k=k) == expected


@pytest.mark.parametrize(
    ("p", "expected"), [(1.0, [0, 1, 2, 3]), (0.3, [1]), (0.41, [1, 3]), (0.69, [1, 3]), (0.71, [1, 2, 3])]
)
def test_top_p_keeps_the_smallest_set_that_reaches_p(p, expected):
    assert kept(top_p=p) == expected


def test_top_p_counts_what_top_k_left():
    # Of 0.4 and 0.3 the first has 4/7 = 0.571.
    assert kept(top_k=2, top_p=0.57) == [1]
    assert kept(top_k=2, top_p=0.58) == [1, 3]


def test_kept_logits_are_unchanged_and_the_input_too():
    before = LOGITS.clone()
    found = filter_logits(LOGITS, top_k=2, top_p=0.9)
    assert torch.equal(found[found.isfinite()], LOGITS[0, [1, 3]])
    assert torch.equal(LOGITS, before)
