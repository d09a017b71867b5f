import pytest
import torch
from torch.distributions import Normal

from orbitgp import Gaussian, InputError, Likelihood, OneHotGaussian
from orbitgp.values import Moments, Prediction
from tests.conftest import assert_close, assert_mean

pytestmark = pytest.mark.usefixtures("float64")

TESTED = {Gaussian, OneHotGaussian}


def concrete(cls):
    for sub in cls.__subclasses__():
        if not sub.__abstractmethods__:
            yield sub
        yield from concrete(sub)


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


def test_class_probabilities_are_the_normalised_densities(generator):
    likelihood = OneHotGaussian(3, noise=0.2)
    mean = torch.rand(4, 3, generator=generator)
    variance = 0.3 * torch.rand(4, 3, generator=generator)
    ours = likelihood.class_probabilities(prediction(mean, variance))
    spread = (variance + likelihood.noise).sqrt()
    density = torch.stack([Normal(mean, spread).log_prob(code).sum(1) for code in torch.eye(3)], 1)
    assert_close(ours, density.softmax(1))
    assert_close(ours.sum(1), torch.ones(4))


def test_class_probabilities_by_monte_carlo(generator):
    """Draw f from q, then the code e_k with density N(e_k; f, σ²I): the same odds."""
    likelihood = OneHotGaussian(2, noise=0.3)
    mean, variance = torch.tensor([[0.7, 0.4]]), torch.tensor([[0.1, 0.1]])
    f = mean + variance.sqrt() * torch.randn(200_000, 2, generator=generator)
    noise = likelihood.noise.detach()
    densities = torch.stack(
        [Normal(f, noise.sqrt()).log_prob(code).sum(1).exp() for code in torch.eye(2)], 1
    )
    ours = likelihood.class_probabilities(prediction(mean, variance)).detach()[0]
    odds = (ours[0] / ours[1]).item()
    assert_mean(densities[:, 0] - odds * densities[:, 1], torch.zeros(1), "odds")


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
        (lambda: OneHotGaussian(3).encode(torch.tensor([0, 3])), "0 … 2"),
        (lambda: OneHotGaussian(3).encode(torch.tensor([-1, 0])), "0 … 2"),
        (lambda: OneHotGaussian(3).quadratic_bound(torch.ones(2, 1), torch.ones(2)), "integers"),
    ],
)
def test_bad_arguments_say_what_to_do(make, message):
    with pytest.raises(InputError, match=message):
        make()
