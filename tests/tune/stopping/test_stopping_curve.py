"""Extrapolated learning curves, against curves whose end is known."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from leverl.record.series import EMPTY, Series
from leverl.tune.model import Prediction
from leverl.tune.stopping.curve import Forecast, forecast, predict_final

UNTIL, EVERY, LAST_K = 200, 10, 3


def saturating(start: float, ceiling: float, mid: float, steepness: float) -> Callable[[float], float]:
    """ScaleRL's curve over the share of the run."""

    def curve(share: float) -> float:
        growth = 0.0 if share == 0 else 1.0 / (1.0 + (mid / share) ** steepness)
        return start + (ceiling - start) * growth

    return curve


def seen(curve: Callable[[float], float], share: float, *, every: int = EVERY) -> Series:
    steps = tuple(range(0, round(share * UNTIL) + 1, every))
    return Series(steps, tuple(curve(step / UNTIL) for step in steps))


def end(curve: Callable[[float], float]) -> float:
    return sum(curve(1 - i * EVERY / UNTIL) for i in range(LAST_K)) / LAST_K


def predicted(
    series: Series, *, scale: float = 1.0, errors: Series = EMPTY, seed_sd: float = 0.0
) -> Prediction:
    found = predict_final(series, errors, UNTIL, LAST_K, scale=scale, seed_sd=seed_sd)
    assert found is not None
    return found


def forecasted(series: Series, *, maximize: bool = True) -> Forecast:
    found = forecast(series, EMPTY, UNTIL, LAST_K, scale=1.0, maximize=maximize)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("start", "ceiling", "mid", "steepness"),
    [(0.1, 0.8, 0.35, 2.2), (0.0, 1.0, 0.15, 1.3), (0.5, 0.9, 0.3, 4.5)],
)
@pytest.mark.parametrize(("share", "tolerance"), [(0.5, 0.04), (0.8, 0.01)])
def test_a_saturating_curve_is_continued(
    start: float, ceiling: float, mid: float, steepness: float, share: float, tolerance: float
) -> None:
    curve = saturating(start, ceiling, mid, steepness)
    found = predicted(seen(curve, share))
    assert found.mean == pytest.approx(end(curve), abs=tolerance)
    assert abs(found.mean - end(curve)) < 2 * found.standard_error
    assert found.mean > curve(share)


def test_more_of_the_curve_leaves_less_doubt() -> None:
    curve = saturating(0.1, 0.8, 0.35, 2.2)
    errors = [predicted(seen(curve, share)).standard_error for share in (0.2, 0.4, 0.6, 0.8, 0.95)]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] > 0.1
    assert errors[-1] < 0.01


def test_a_curve_that_fell_is_not_expected_to_recover() -> None:
    def curve(share: float) -> float:
        return 0.6 * share / 0.3 if share < 0.3 else max(0.6 - 2.5 * (share - 0.3), 0.05)

    found = forecasted(seen(curve, 0.6))
    prediction = found.prediction()
    assert -0.1 < prediction.mean < 0.3
    assert prediction.standard_error > 0.03  # nor to stay where it is for sure
    assert found.probability_above(0.6) < 0.05


def test_a_flat_curve_may_still_rise_early_on_but_not_at_the_end() -> None:
    early, late = (forecasted(seen(lambda _: 0.1, share)) for share in (0.15, 0.8))
    assert early.prediction().mean == pytest.approx(0.13, abs=0.05)  # runs more often rise than fall
    assert early.probability_above(0.5) > 0.02
    assert late.prediction() == Prediction(pytest.approx(0.1, abs=0.01), pytest.approx(0.0, abs=0.02))
    assert late.probability_above(0.5) < 0.001


def test_a_late_rise_is_followed() -> None:
    curve = saturating(0.0, 0.8, 0.6, 6.0)
    flat, rising = predicted(seen(curve, 0.2)), predicted(seen(curve, 0.6))
    assert 0 <= flat.mean < 0.15
    assert rising.mean == pytest.approx(end(curve), abs=0.1)
    assert rising.mean > curve(0.6) + 0.1


@pytest.mark.parametrize(("factor", "offset"), [(100.0, 0.0), (1.0, -21.0), (1000.0, 500.0)])
def test_units_do_not_matter(factor: float, offset: float) -> None:
    series = seen(saturating(0.1, 0.8, 0.35, 2.2), 0.4)
    other = Series(series.steps, tuple(factor * value + offset for value in series.values))
    one, two = predicted(series), predicted(other, scale=factor)
    assert two.mean == pytest.approx(factor * one.mean + offset)
    assert two.standard_error == pytest.approx(factor * one.standard_error)


def test_scores_to_minimise_are_negated_scores_to_maximise() -> None:
    series = seen(saturating(0.1, 0.8, 0.35, 2.2), 0.4)
    negated = Series(series.steps, tuple(-value for value in series.values))
    one, two = forecasted(series), forecasted(negated, maximize=False)
    assert two.prediction().mean == pytest.approx(-one.prediction().mean)
    assert two.prediction().standard_error == pytest.approx(one.prediction().standard_error)
    assert two.probability_above(-0.7, 0.1) == pytest.approx(1 - one.probability_above(0.7, 0.1))


def test_it_is_deterministic() -> None:
    series = seen(saturating(0.1, 0.8, 0.35, 2.2), 0.4)
    first = forecasted(series)
    forecast.cache_clear()
    assert forecasted(series) == first


def test_a_run_that_is_complete_has_its_score() -> None:
    series = seen(saturating(0.1, 0.8, 0.35, 2.2), 1.0)
    errors = Series(series.steps, tuple(0.02 for _ in series.steps))
    expected = sum(series.values[-LAST_K:]) / LAST_K
    assert predicted(series, errors=errors) == Prediction(pytest.approx(expected), pytest.approx(0.02))


def test_evaluations_of_the_tail_that_are_known_are_not_predicted_again() -> None:
    steps = (*range(0, 200, 20), 190)  # the last evaluation is still missing
    series = Series(steps, tuple(0.1 + step / 1000 for step in steps))
    one, two = (predict_final(series, EMPTY, 200, k, scale=1.0) for k in (1, 2))
    assert one is not None
    assert two is not None
    assert two.mean == pytest.approx((one.mean + series.values[-1]) / 2)
    assert two.standard_error == pytest.approx(one.standard_error / 2)


def test_missing_evaluations_follow_the_spacing_and_the_last_step() -> None:
    # Evaluated every 30 steps until 100: 90 and 100 are to come after 60, so two of three are predicted.
    series = Series((0, 30, 60), (0.2, 0.2, 0.2))
    two, three = (predict_final(series, EMPTY, 100, k, scale=1.0) for k in (2, 3))
    assert two is not None
    assert three is not None
    assert three.standard_error == pytest.approx(two.standard_error * 2 / 3)


def test_the_error_of_the_evaluations_is_a_floor_and_seeds_add_to_it() -> None:
    series = seen(lambda _: 0.5, 0.9)
    errors = Series(series.steps, tuple(0.04 for _ in series.steps))
    plain, with_errors = predicted(series), predicted(series, errors=errors)
    assert with_errors.standard_error == pytest.approx(math.hypot(plain.standard_error, 0.04))
    with_seeds = predicted(series, errors=errors, seed_sd=0.1)
    assert with_seeds.standard_error == pytest.approx(math.hypot(with_errors.standard_error, 0.1))


@pytest.mark.parametrize(
    ("values", "scale"), [((0.1, 0.2), 1.0), ((0.1, math.nan, 0.2), 1.0), ((0.1, 0.1, 0.1), 0.0)]
)
def test_too_little_is_no_prediction(values: tuple[float, ...], scale: float) -> None:
    series = Series(tuple(range(0, 10 * len(values), 10)), values)
    assert predict_final(series, EMPTY, UNTIL, LAST_K, scale=scale) is None


def test_evaluations_that_are_not_finite_are_left_out() -> None:
    series = Series((0, 10, 20, 30, 40), (0.1, 0.2, math.nan, 0.3, 0.35))
    kept = Series((0, 10, 30, 40), (0.1, 0.2, 0.3, 0.35))
    assert predicted(series) == predicted(kept)


def test_probability_above_counts_the_doubt_about_the_level() -> None:
    found = Forecast((0.25, 0.75), (0.0, 1.0), (0.0, 0.0))
    assert found.probability_above(0.5) == pytest.approx(0.75)
    assert found.probability_above(1.0) == pytest.approx(0.375)
    assert found.probability_above(0.5, 10.0) == pytest.approx(0.5, abs=0.02)
    assert found.prediction() == Prediction(pytest.approx(0.75), pytest.approx(math.sqrt(0.1875)))


@pytest.mark.parametrize("share", [0.3, 0.5])
def test_the_interval_holds_on_noisy_curves(share: float) -> None:
    """Coverage over 100 curves: saturating ones with noise, a third of them flat."""
    generator = np.random.default_rng(3)
    inside = 0
    for number in range(100):
        gain = 0.0 if number % 3 == 0 else generator.uniform(0.2, 1.0)
        curve = saturating(0.0, gain, generator.uniform(0.05, 0.9), generator.uniform(1.0, 6.0))
        steps = tuple(range(0, UNTIL + 1, EVERY))
        values = [curve(step / UNTIL) + generator.normal(0, 0.02) for step in steps]
        count = round(share * UNTIL / EVERY) + 1
        found = predicted(Series(steps[:count], tuple(values[:count])))
        truth = sum(values[-LAST_K:]) / LAST_K
        inside += abs(found.mean - truth) <= 1.96 * found.standard_error
    assert inside >= 0.9 * 100
