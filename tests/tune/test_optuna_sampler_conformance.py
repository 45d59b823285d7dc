"""Optuna's own tests of samplers, all that apply to one objective."""

from collections.abc import Callable

import pytest
from optuna.samplers import BaseSampler
from optuna.testing.pytest_samplers import (
    BasicSamplerTestCase,
    RelativeSamplerTestCase,
    SingleOnlySamplerTestCase,
)

from leverl.tune.optuna_sampler import LeverlSampler


class TestConformance(BasicSamplerTestCase, RelativeSamplerTestCase, SingleOnlySamplerTestCase):
    """MultiObjectiveSamplerTestCase does not apply: studies with several objectives are refused."""

    test_conditional_parameter_objective = pytest.mark.slow(
        BasicSamplerTestCase.test_conditional_parameter_objective
    )
    test_dynamic_range_objective = pytest.mark.slow(BasicSamplerTestCase.test_dynamic_range_objective)
    test_nan_objective_value = pytest.mark.slow(BasicSamplerTestCase.test_nan_objective_value)
    test_single_parameter_objective = pytest.mark.slow(BasicSamplerTestCase.test_single_parameter_objective)
    test_trial_relative_params = pytest.mark.slow(RelativeSamplerTestCase.test_trial_relative_params)

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: LeverlSampler(seed=0)
