import pytest
import torch
from torch.distributions import Normal

from orbitgp import (
    Gaussian,
    InputError,
    Likelihood,
    OneHotGaussian,
    PolyaGamma,
    Softmax,
)
from orbitgp.values import Moments, Prediction
from tests.conftest import assert_close, assert_mean, concrete

pytestmark = pytest.mark.usefixtures("float64")

TESTED = {Gaussian, OneHotGaussian, PolyaGamma, Softmax}


def test_no_likelihood_goes_untested():
    assert {cls for cls in concrete(Likelihood) if cls.__module__.startswith("orbitgp")} == TESTED


@pytest.mark.parametrize("noise", [0.3, [0.3, 0.7, 1.5]])
def test_bound_is_the_log_density(noise, generator):
    likelihood = Gaussian(noise)
    y, f = torch.randn(2, 5, 3, generator=generator)
    bound = likelihood.quadratic_bound(y, y)
    at_f = bound.expectation(Moments(f, f**2, torch.zeros(5, 1)))
    assert_close(at_f, Normal(f, likelihood.noise.sqrt()).log_prob(y).sum(1))


def test_one_output_may_be_flat(generator):
    y = torch.randn(4, generator=generator)
    flat, column = (Gaussian(0.2).quadratic_bound(y, t) for t in (y, y[:, None]))
    assert_close(flat.linear, column.linear)


def test_noise_is_learned_and_keeps_its_floor():
    likelihood = Gaussian(0.3)
    assert_close(likelihood.noise, torch.tensor([0.3]))
    likelihood.quadratic_bound(torch.zeros(3, 1), torch.ones(3, 1)).constant.sum().backward()
    assert likelihood.raw_noise.grad != 0
    assert_close(Gaussian(1e4).noise, torch.tensor([1e4]))
    likelihood.raw_noise.data.fill_(-1000)
    assert likelihood.noise > 0


def test_one_hot_codes():
    likelihood = OneHotGaussian(3, noise=0.1)
    labels = torch.tensor([2, 0])
    x = torch.zeros(2, 1)
    coded = Gaussian(0.1).quadratic_bound(x, torch.tensor([[0.0, 0, 1], [1, 0, 0]]))
    assert_close(likelihood.quadratic_bound(x, labels).linear, coded.linear)


def prediction(mean, variance):
    return Prediction(mean, variance, torch.zeros_like(mean), torch.zeros_like(mean))


def test_two_classes_have_a_closed_form(generator):
    likelihood = OneHotGaussian(2, noise=0.2)
    mean = torch.randn(50, 2, generator=generator)
    variance = torch.rand(50, 2, generator=generator)
    ours = likelihood.class_probabilities(prediction(mean, variance))
    spread = (variance.sum(1) + 2 * likelihood.noise).sqrt()
    exact = Normal(0.0, 1.0).cdf((mean[:, 0] - mean[:, 1]) / spread)
    assert_close(ours[:, 0], exact, tolerance=1e-4)


def test_class_probabilities_by_monte_carlo(generator):
    """Draw f from q, then a code y, and count its largest entry."""
    likelihood = OneHotGaussian(4, noise=0.3)
    mean = torch.tensor([[0.7, 0.4, 0.1, -0.2], [0.3, 0.2, 0.3, 0.2]])
    variance = torch.tensor([[0.1, 0.3, 0.1, 0.2], [0.1, 0.1, 0.1, 0.1]])
    f = mean + variance.sqrt() * torch.randn(100_000, 2, 4, generator=generator)
    y = f + likelihood.noise.detach().sqrt() * torch.randn(f.shape, generator=generator)
    counts = torch.nn.functional.one_hot(y.argmax(-1), 4).double()
    ours = likelihood.class_probabilities(prediction(mean, variance)).detach()
    assert_mean(counts, ours, "largest entry")
    assert_close(ours.sum(1), torch.ones(2))


def test_class_probabilities_of_impossible_classes_are_finite():
    likelihood = OneHotGaussian(3, noise=1e-5)
    mean = torch.tensor([[1.0, 0.0, 0.0]])
    ours = likelihood.class_probabilities(prediction(mean, torch.zeros(1, 3)))
    assert torch.isfinite(ours.log()[:, 0]).all()
    assert_close(ours.sum(1), torch.ones(1))


def test_uncertainty_softens_probabilities():
    likelihood = OneHotGaussian(2, noise=0.1)
    mean = torch.tensor([[0.9, 0.1]])
    sure = likelihood.class_probabilities(prediction(mean, torch.full((1, 2), 0.01)))
    unsure = likelihood.class_probabilities(prediction(mean, torch.full((1, 2), 1.0)))
    assert sure[0, 0] > unsure[0, 0] > 0.5


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gaussian(0.0), "above"),
        (lambda: Gaussian(float("nan")), "finite"),
        (
            lambda: Gaussian([0.1, 0.2]).quadratic_bound(torch.ones(2, 3), torch.ones(2, 3)),
            "one for each",
        ),
        (lambda: Gaussian().quadratic_bound(torch.ones(2, 1), torch.ones(2, 1, 1)), "N, C"),
        (lambda: Gaussian().quadratic_bound(torch.ones(2, 1), torch.ones(2).long()), "floating"),
        (lambda: OneHotGaussian(1), "at least 2"),
        (lambda: OneHotGaussian(3).encode(torch.tensor([0, 3])), "0 … 2"),
        (lambda: OneHotGaussian(3).encode(torch.tensor([-1, 0])), "0 … 2"),
        (lambda: OneHotGaussian(3).quadratic_bound(torch.ones(2, 1), torch.ones(2)), "integers"),
    ],
)
def test_bad_arguments_say_what_to_do(make, message):
    with pytest.raises(InputError, match=message):
        make()
