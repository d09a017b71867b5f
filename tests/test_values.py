import pytest
import torch

from orbitgp.errors import InputError
from orbitgp.values import Moments, OrbitSample, QuadraticBound, SufficientStatistics
from tests.conftest import assert_close


def random_statistics(generator, num_grams=1, num_points=4, num_outputs=3, num_data=5.0):
    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    return SufficientStatistics(
        constant=draw(),
        linear=draw(num_points, num_outputs),
        gram=draw(num_grams, num_points, num_points),
        variance=draw(num_grams),
        num_data=num_data,
    )


@pytest.mark.parametrize("num_grams", [1, 3])
def test_statistics_add_scale_and_survive_the_wire(generator, num_grams):
    a, b = (random_statistics(generator, num_grams) for _ in range(2))
    total = sum([a, b])
    assert_close(total.gram, a.gram + b.gram)
    assert total.num_data == 10
    scaled = total.scaled_to(40)
    assert_close(scaled.linear, 4 * (a.linear + b.linear))
    assert scaled.num_data == 40
    again = SufficientStatistics.from_bytes(total.to_bytes())
    for name in ("constant", "linear", "gram", "variance"):
        assert torch.equal(getattr(again, name), getattr(total, name))
    assert again.num_data == total.num_data


def test_statistics_of_different_models_do_not_add(generator):
    with pytest.raises(InputError, match="same inducing points"):
        random_statistics(generator) + random_statistics(generator, num_points=5)


@pytest.mark.parametrize("data", [b"", b"not safetensors", b"\xff" * 64])
def test_foreign_bytes_are_refused(data):
    with pytest.raises(InputError, match="not the statistics"):
        SufficientStatistics.from_bytes(data)


def test_bytes_of_other_tensors_are_refused(generator):
    from safetensors.torch import save

    with pytest.raises(InputError, match="not the statistics"):
        SufficientStatistics.from_bytes(save({"weights": torch.zeros(3)}))


def test_bound_expectation_is_the_quadratic(generator):
    mean, linear = torch.randn(2, 4, 3, generator=generator, dtype=torch.float64)
    variance, precision = torch.rand(2, 4, 1, generator=generator, dtype=torch.float64)
    constant = torch.randn(4, generator=generator, dtype=torch.float64)
    bound = QuadraticBound(constant, linear, precision)
    expectation = bound.expectation(Moments(mean, mean**2, variance))
    for n in range(4):
        slow = constant[n].clone()
        for c in range(3):
            second = mean[n, c] ** 2 + variance[n, 0]
            slow += linear[n, c] * mean[n, c] - 0.5 * precision[n, 0] * second
        assert_close(expectation[n], slow)


def test_orbit_sample_maps_each_point(generator):
    sample = OrbitSample(torch.randn(2, 3, 4, 5, generator=generator), orbit_size=3)
    assert sample.is_whole
    mapped = sample.map(lambda x: x.flatten(1)[:, :7])
    assert mapped.points.shape == (2, 3, 7)
    assert torch.equal(mapped.points[1, 2], sample.points[1, 2].flatten()[:7])
    assert mapped.orbit_size == 3
