"""Schedules, and settings that no run could use."""

import pytest

from orbitgp import InputError, StochasticSettings


def test_rates_fall_linearly():
    settings = StochasticSettings(num_steps=101, last_rate=0.1)
    assert settings.rate_at(0) == 1
    assert settings.rate_at(50) == pytest.approx(0.55)
    assert settings.rate_at(100) == pytest.approx(0.1)


def test_q_becomes_an_average_of_the_last_steps():
    """Each of the last steps, and what was before with its usual weight, counts alike."""
    settings = StochasticSettings(num_steps=100, averaged=0.2, batch_size=100, memory=1000)
    usual = settings.natural_rate_at(0, 10**6)
    assert usual == pytest.approx(0.1)
    weights = []
    for step in range(80, 100):
        rate = settings.natural_rate_at(step, 10**6)
        weights = [weight * (1 - rate) for weight in weights] + [rate]
    assert weights == pytest.approx([weights[0]] * 20)


def test_a_batch_of_all_data_gives_whole_steps():
    assert StochasticSettings(batch_size=50).natural_rate_at(0, 50) == 1


@pytest.mark.parametrize(
    "wrong",
    [{"num_steps": 0}, {"rate": -1.0}, {"last_rate": 2.0}, {"num_draws": 6}, {"num_draws": 4}],
)
def test_settings_that_no_run_could_use(wrong):
    with pytest.raises(InputError):
        StochasticSettings(**wrong)
