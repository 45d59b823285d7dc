import numpy as np
import pytest

from leverl.errors import ConfigError
from leverl.tune.space.axis import Axis
from leverl.tune.surrogate.encoding import OFF_PLACE, Encoding

RATE = Axis("rate", low=1e-5, high=1e-1, scale="log")
KL = Axis("kl", low=1e-4, high=1e-1, scale="log", other=0.0)
CLIP = Axis("clip", low=0.1, high=0.5)
LOSS = Axis("loss", kind="categorical", values=("a", "b", "c"))
SWITCH = Axis("switch", kind="categorical", values=(True, False))
EPOCHS = Axis("epochs", kind="categorical", values=(4, 1, 2))


def rows(axes: list[Axis], *configurations: dict[str, object]) -> np.ndarray:
    return Encoding(tuple(axes)).encode(list(configurations))


def test_numbers_lie_on_their_scale() -> None:
    x = rows([RATE], {"rate": 1e-5}, {"rate": 1e-3}, {"rate": 1e-1})
    assert x[:, 0] == pytest.approx([0, 0.5, 1])


def test_lists_of_numbers_are_ordered_by_size_and_fill_the_range() -> None:
    x = rows([EPOCHS], {"epochs": 1}, {"epochs": 2}, {"epochs": 4})
    assert x[:, 0] == pytest.approx([0, 0.5, 1])


def test_words_are_equally_far_apart() -> None:
    x = rows([LOSS], {"loss": "a"}, {"loss": "b"}, {"loss": "c"})
    distances = np.linalg.norm(x[:, None] - x[None], axis=-1)
    assert distances[np.triu_indices(3, 1)] == pytest.approx([1, 1, 1])


def test_true_and_false_need_one_dimension() -> None:
    x = rows([SWITCH], {"switch": True}, {"switch": False})
    assert x.tolist() == [[1, 1], [0, 1]]


def test_the_value_beside_a_range_has_a_switch() -> None:
    off, low = rows([KL], {"kl": 0.0}, {"kl": 1e-4})
    assert off.tolist() == [OFF_PLACE, 0, 1]
    assert low == pytest.approx([0, 1, 1])


def test_levers_without_effect_do_not_tell_configurations_apart() -> None:
    """A missing lever is one point, whatever kind it is, and lies away from every active value."""
    axes = [RATE, KL, CLIP, LOSS]
    first, second, active = rows(
        axes, {"rate": 1e-3}, {"rate": 1e-3}, {"rate": 1e-3, "clip": 0.3, "kl": 0.0, "loss": "a"}
    )
    assert first.tolist() == second.tolist()
    assert np.linalg.norm(first - active) >= 1


def test_true_is_not_one() -> None:
    axis = Axis("mixed", kind="categorical", values=(True, 1, "x"))
    encoding = Encoding((axis,))
    assert encoding.encode([{"mixed": True}]).tolist() != encoding.encode([{"mixed": 1}]).tolist()


def test_values_outside_are_refused() -> None:
    encoding = Encoding((CLIP,))
    assert not encoding.contains({"clip": 0.9})
    assert encoding.contains({})
    with pytest.raises(ConfigError, match=r"clip = 0.9 lies outside"):
        encoding.encode([{"clip": 0.9}])


def test_nothing_is_no_rows() -> None:
    assert rows([RATE, LOSS]).shape == (0, 6)
