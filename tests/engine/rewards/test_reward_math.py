"""The math reward: which responses state the answer, and what is equal to it."""

import threading
from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leverl.config.schema import Reward
from leverl.engine.rewards._answers import final_answer, same_answer
from leverl.engine.rewards._verifier import Verifier
from leverl.engine.rewards.math import MathReward
from leverl.engine.rewards.protocol import load_reward


@pytest.fixture(scope="module")
def reward() -> Iterator[MathReward]:
    verifier = Verifier(seconds=60)  # shared cores; the limit has a test of its own
    yield MathReward(verifier)
    verifier.close()


def score(reward: MathReward, response: str, truth: object) -> float:
    return reward(data_source="t", solution_str=response, ground_truth=truth, extra_info={})


POSITIVES = [
    ("5", "5"),
    ("5", 5),
    ("5.0", "5"),
    ("2.50", 2.5),
    ("+5", "5"),
    ("-5", "-5"),
    ("− 5", "-5"),
    ("05", "5"),
    (".5", "0.5"),
    ("1,234", "1234"),
    ("1234", "1,234"),
    ("1,234,567.8", "1234567.8"),
    ("1{,}234", "1234"),
    ("$1,234", "1234"),
    (r"\$5", "5"),
    ("1/2", "0.5"),
    (r"-\frac{1}{2}", "-0.5"),
    (r"\dfrac12", "1/2"),
    (r"\frac{11}{2}", "5.5"),
    ("5 1/2", "5.5"),
    (r"1\frac{1}{2}", "1.5"),
    ("1/2", "2/4"),
    ("50%", "50"),
    (r"50\%", "0.5"),
    ("1e5", "100000"),
    (r"3 \times 10^{4}", "30000"),
    ("5 cm", "5"),
    (r"5\text{ cm}", "5 cm"),
    ("x = 5", "5"),
    ("5", "x = 5"),
    ("x = 5", "x=5"),
    ("12 + 3 = 15", "15"),
    ("The answer is 5.", "5"),
    ("The answer is: **5**", "5"),
    ("**Answer:** 5", "5"),
    ("Final answer: $5$.", "5"),
    ("Answer:\n5", "5"),
    ("The answer is 3.5. Done", "3.5"),
    ("2 + 3 makes five.\n#### 5", "5"),
    (r"So it is \boxed{5}.", "5"),
    (r"First \boxed{4}, no: \boxed{5}", "5"),
    (r"This is not 3, so \boxed{5}", "5"),
    (r"\boxed{\frac{1}{2}}", "0.5"),
    ("<answer>4</answer><answer>5</answer>", "5"),
    (r"<answer>\boxed{5}</answer>", "5"),
    ("We need 2 + 3.\n\n5\n", "5"),
    ("B", "B"),
    ("(B)", "B"),
    ("b", "B"),
    (r"\boxed{\text{B}}", "B"),
    ("The answer is (B).", "B"),
    ("The answer is B) Paris", "B"),
    ("(b) Paris", "(B)"),
    ("The answer is Paris.", "paris"),
    ("No", "No"),
    (r"\boxed{1 + x}", "x+1"),
    (r"\boxed{\sqrt{8}}", r"2\sqrt{2}"),
    (r"\boxed{\{2, 1\}}", r"\{1,2\}"),
    (r"\boxed{\frac{\pi}{2}}", r"\pi/2"),
    (r"\boxed{\sin(x)}", r"\sin x"),
]

NEGATIVES = [
    ("15", "5"),
    ("5", "15"),
    ("-5", "5"),
    ("5", "-5"),
    ("51", "5"),
    ("5.1", "5"),
    ("12,34", "1234"),
    ("1234", "234"),
    ("1,234", "1"),
    ("0.333333", "1/3"),
    ("the answer is not 5", "5"),
    ("The answer isn't 5", "5"),
    ("The answer is definitely not 5.", "5"),
    ("I don't think the answer is 5", "5"),
    ("The wrong answer is 5", "5"),
    ("The answer is 5? No, it is 6.", "5"),
    ("The answer is 5. No, that is wrong.", "5"),
    ("The answer is 6, not 5", "5"),
    (r"It is not \boxed{5}", "5"),
    (r"\boxed{not 5}", "5"),
    (r"\boxed{\text{not } 5}", "5"),
    (r"\boxed{\ne 5}", "5"),
    (r"\boxed{\approx 5}", "5"),
    (r"\boxed{5} or rather \boxed{6}", "5"),
    (r"\boxed{5", "5"),
    ("<answer>5</answer><answer>6</answer>", "5"),
    ("5, 6", "5"),
    ("5 or 6", "5"),
    ("5 6", "6"),
    (r"\boxed{5 \\ 6}", "5"),
    (r"\boxed{5; 6}", "6"),
    (r"\pm 5", "5"),
    ("1, 2, 3, 4, 5", "5"),
    ("It is 5", "5"),
    ("5 is a nice number", "5"),
    ("12 + 3", "15"),  # the question
    ("15/3", "5"),
    ("5/1", "5"),
    ("2/4", "0.5"),
    ("11/2", "1.5"),
    ("2^{10}", "1024"),
    ("5 = 15", "15"),
    ("x = 6", "5"),
    ("y = 5", "x = 5"),
    ("5 m", "5 cm"),
    ("5 + ", "5"),
    ("5/0", "5"),
    ("5000%", "50%"),
    (">5", "5"),
    ("٥", "5"),
    ("nan", "5"),
    ("9" * 5000, "5"),
    ("", "5"),
    ("?", "5"),
    ("A", "B"),
    ("A or B", "B"),
    ("A B", "B"),
    ("The answer is not B", "B"),
    ("Because it is so", "B"),
    ("BC", "B"),
    ("Not Paris", "Paris"),
    ("ohell", "hello"),  # a product of variables to an algebra system
    ("on", "no"),
    (r"\boxed{x}", "x+1"),
    (r"\boxed{x + 1 \ne y}", "x+1"),
    (r"\boxed{\ne x + 1}", "x+1"),
    (r"\boxed{x + 1 \\ x + 2}", "x+1"),
    (r"\boxed{(2, 1)}", "(1, 2)"),
    (r"\boxed{the value x + 1}", "x+1"),
]


@pytest.mark.parametrize(("response", "truth"), POSITIVES)
def test_h86_math_positives(reward: MathReward, response: str, truth: object) -> None:
    assert score(reward, response, truth) == 1.0


@pytest.mark.parametrize(("response", "truth"), NEGATIVES)
def test_h86_math_negatives(reward: MathReward, response: str, truth: object) -> None:
    assert score(reward, response, truth) == 0.0


def test_h84_works_off_the_main_thread_and_from_several_at_once(reward: MathReward) -> None:
    results: dict[int, float | Exception] = {}

    def work(number: int) -> None:
        try:
            results[number] = score(reward, rf"\boxed{{{number} + x}}", "x+3")
        except Exception as error:  # noqa: BLE001 - shown by the assertion below
            results[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {number: float(number == 3) for number in range(6)}


def test_h84_an_endless_expression_is_a_timeout_and_the_next_one_is_compared() -> None:
    verifier = Verifier(seconds=0.5)
    try:
        for endless in ("9^{9^{9}}", "100000000!"):
            with pytest.raises(TimeoutError, match=r"comparing .*sqrt\{2\}': no result within 0\.5 s"):
                verifier.equal(endless, r"\sqrt{2}")
        verifier._seconds = 60
        assert verifier.equal(r"\frac{2}{\sqrt{2}}", r"\sqrt{2}")
    finally:
        verifier.close()


def test_h84_a_verifier_that_died_is_an_error_and_is_started_anew() -> None:
    verifier = Verifier(seconds=60)
    try:
        assert verifier.equal("y", "y")
        assert verifier._child is not None
        verifier._child._process.kill()
        with pytest.raises(RuntimeError, match="the verifier ended with code -9"):
            verifier.equal("1+x", "x+1")
        assert verifier.equal("1+x", "x+1")
    finally:
        verifier.close()


@pytest.mark.parametrize(
    ("truth", "error", "message"),
    [
        (None, TypeError, "must be text or a number, found None"),
        (["5"], TypeError, r"must be text or a number, found \['5'\]"),
        (" ", ValueError, "the ground truth is empty"),
        ("^^", ValueError, r"'\^\^' is not an expression that math-verify can parse"),
    ],
)
def test_h84_a_ground_truth_that_cannot_be_used_raises(
    reward: MathReward, truth: object, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        score(reward, r"\boxed{x}", truth)


def test_the_kind_is_found_by_its_name() -> None:
    assert isinstance(load_reward(Reward(kind="math")), MathReward)


def never(answer: str, truth: str) -> bool:
    raise AssertionError(f"numbers and text need no algebra system: {answer!r}, {truth!r}")


@given(st.integers(-(10**12), 10**12), st.integers(-(10**12), 10**12))
def test_h86_integers_in_any_writing_are_equal_only_to_themselves(number: int, other: int) -> None:
    for text in (f"{number}", f"{number:,}", f"{number}.0", f"${number:,}$", f"x = {number}"):
        assert same_answer(text, str(number), never)
        assert same_answer(text, str(other), never) == (number == other)


@given(st.fractions(max_denominator=1000).filter(lambda value: value.denominator > 1))
def test_h86_fractions_are_equal_in_lowest_terms_only(value: Fraction) -> None:
    sign = "-" if value < 0 else ""
    top, bottom = abs(value.numerator), value.denominator
    assert same_answer(f"{value.numerator}/{bottom}", str(value), never)
    assert same_answer(f"{sign}\\frac{{{top}}}{{{bottom}}}", str(value), never)
    assert not same_answer(f"{sign}{2 * top}/{2 * bottom}", str(value), never)


@given(st.recursive(st.text("a1 ", max_size=3), lambda inner: inner.map(lambda text: f"{{{text}}}x")))
def test_h86_a_box_is_read_to_its_own_brace(content: str) -> None:
    assert final_answer(f"so \\boxed{{{content}}} }} {{") == content


@given(st.text(max_size=60) | st.text("answer is:#\\boxed{}<>/5.? \n*$", max_size=60))
def test_h86_any_response_is_read_without_an_error(response: str) -> None:
    answer = final_answer(response)
    assert answer is None or same_answer(answer, "5", never) in (True, False)
