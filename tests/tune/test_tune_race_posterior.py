"""The belief about finalists: closed forms against brute force."""

import math

import numpy as np
import pytest

from leverl.tune.evidence.posterior import Belief, Observation, expected_positive, probability_positive


def random_belief(generator: np.random.Generator, count: int) -> Belief:
    root = generator.standard_normal((count, count))
    ids = tuple(f"c{number:03d}" for number in range(count))
    return Belief(ids, generator.standard_normal(count), root @ root.T + 0.1 * np.eye(count))


def brute_force(belief: Belief, runs: list[Observation], common: float) -> tuple[np.ndarray, np.ndarray]:
    """Conditioning of the joint normal of (θ, b, y), written out."""
    seeds = sorted({run.seed for run in runs})
    count = len(belief.ids)
    prior = np.zeros((count + len(seeds),) * 2)
    prior[:count, :count] = belief.covariance
    prior[count:, count:] = common * np.eye(len(seeds))
    design = np.zeros((len(runs), len(prior)))
    for row, run in enumerate(runs):
        design[row, belief.ids.index(run.config_id)] = 1.0
        design[row, count + seeds.index(run.seed)] = 1.0
    mean = np.concatenate([belief.mean, np.zeros(len(seeds))])
    y = np.array([run.value for run in runs])
    joint = design @ prior @ design.T + np.diag([run.variance for run in runs])
    gain = prior @ design.T @ np.linalg.inv(joint)
    return (mean + gain @ (y - design @ mean))[:count], (prior - gain @ design @ prior)[:count, :count]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("common", [0.0, 0.7])
def test_the_update_is_the_conditional_of_the_joint_normal(seed: int, common: float) -> None:
    generator = np.random.default_rng(seed)
    belief = random_belief(generator, 4)
    pairs = [(0, 1), (1, 1), (2, 1), (0, 2), (2, 2), (0, 3)]  # not everyone on every seed
    runs = [
        Observation(f"c{n:03d}", s, float(generator.standard_normal()), 0.2 + generator.random())
        for n, s in pairs
    ]
    found = belief.after(runs, common)
    mean, covariance = brute_force(belief, runs, common)
    np.testing.assert_allclose(found.mean, mean, atol=1e-8)
    np.testing.assert_allclose(found.covariance, covariance, atol=1e-8)
    turned = belief.after(runs[::-1], common)
    np.testing.assert_allclose(turned.mean, mean, atol=1e-8)


def test_a_pending_run_narrows_as_if_done_and_moves_nothing() -> None:
    belief = random_belief(np.random.default_rng(1), 3)
    done = Observation("c000", 1, 2.0, 0.5)
    pending, ended = Observation("c001", 1, None, 0.5), Observation("c001", 1, -3.0, 0.5)
    found = belief.after([done, pending], 0.3)
    np.testing.assert_allclose(found.mean, belief.after([done], 0.3).mean)
    np.testing.assert_allclose(found.covariance, belief.after([done, ended], 0.3).covariance)
    np.testing.assert_allclose(belief.after([pending], 0.3).mean, belief.mean)


def test_runs_of_others_are_none_of_its_business() -> None:
    belief = random_belief(np.random.default_rng(2), 2)
    assert belief.after([Observation("c009", 1, 5.0, 1.0)], 0.1) is belief


def test_certainty_needs_no_noise() -> None:
    belief = Belief(("c000", "c001"), np.array([1.0, 0.5]), np.zeros((2, 2)))
    found = belief.after([Observation("c000", 1, 9.0, 0.0)], 0.0)
    np.testing.assert_array_equal(found.mean, [1.0, 0.5])
    assert list(found.probability_best()) == [1.0, 0.0]
    assert list(found.expected_loss()) == [0.0, 0.5]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_probability_best_and_expected_loss_against_monte_carlo(count: int) -> None:
    generator = np.random.default_rng(count)
    belief = random_belief(generator, count)
    draws = generator.multivariate_normal(belief.mean, belief.covariance, 400_000)
    best = np.bincount(draws.argmax(axis=1), minlength=count) / len(draws)
    loss = (draws.max(axis=1, keepdims=True) - draws).mean(axis=0)
    np.testing.assert_allclose(belief.probability_best(), best, atol=0.02 if count > 2 else 0.003)
    np.testing.assert_allclose(belief.expected_loss(), loss, atol=0.05 if count > 2 else 0.01)


def test_equals_share_the_probability() -> None:
    belief = Belief(tuple("abcd"), np.zeros(4), np.eye(4) + 5.0)  # what is common to all does not matter
    np.testing.assert_allclose(belief.probability_best(), 0.25, atol=0.02)
    # the largest of four standard normals is 1.0294 on average
    np.testing.assert_allclose(belief.expected_loss(), 1.0294, atol=0.03)


def test_a_difference_is_free_of_what_is_common() -> None:
    belief = Belief(("a", "b"), np.array([1.0, 0.0]), np.array([[0.5, 0.3], [0.3, 0.5]]))
    assert belief.difference(0, 1) == (1.0, pytest.approx(math.sqrt(0.4)))
    assert belief.shifted(9.0).difference(0, 1)[1] == pytest.approx(math.sqrt(0.4))
    assert belief.of(["b", "a"]).difference(0, 1)[0] == -1.0


def test_normal_integrals() -> None:
    draws = 0.3 + 0.8 * np.random.default_rng(0).standard_normal(1_000_000)
    assert probability_positive(0.3, 0.8) == pytest.approx((draws > 0).mean(), abs=0.002)
    assert expected_positive(0.3, 0.8) == pytest.approx(np.maximum(draws, 0).mean(), abs=0.002)
    assert [probability_positive(m, 0.0) for m in (-1.0, 0.0, 1.0)] == [0.0, 0.5, 1.0]
    assert [expected_positive(m, 0.0) for m in (-1.0, 2.0)] == [0.0, 2.0]
