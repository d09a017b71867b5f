"""Bounds with local parameters: below the likelihood, tight where theory says, and unbiased."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from orbitgp import (
    RBF,
    GaussianNoise,
    InducingPosterior,
    InputError,
    InvariantGP,
    PolyaGamma,
    Recognition,
    SignFlips,
    Softmax,
    compose,
    coordinate_swap,
    elbo,
)
from orbitgp.likelihoods.polya_gamma import log_2cosh_half, logistic_precision, mean_sigmoid
from orbitgp.likelihoods.softmax import from_contrasts, to_contrasts
from orbitgp.model import mean_pairs, unbiased_pairs
from orbitgp.posterior.algebra import solve_rows
from orbitgp.posterior.inducing import moments
from orbitgp.stochastic.bound import pointwise_bound_at
from orbitgp.values import Moments, OrbitSample, Prediction
from tests.conftest import assert_close, assert_mean
from tests.models import random_q
from tests.reference.noise_orbit import exact_moments

pytestmark = pytest.mark.usefixtures("float64")

LIKELIHOODS = [PolyaGamma(), Softmax(4), Softmax(2)]
IDS = [f"{type(each).__name__}-{each.num_classes}" for each in LIKELIHOODS]


def bound_of(likelihood, labels, local, f):
    """The quadratic itself, at f."""
    bound = likelihood.bound_at(labels, local)
    return bound.expectation(Moments(f, f.square(), torch.zeros_like(f[:, :1])))


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=IDS)
@settings(max_examples=200, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), width=st.floats(1e-3, 30.0), local_width=st.floats(0, 30.0))
def test_no_bound_exceeds_the_log_likelihood(likelihood, seed, width, local_width):
    generator = torch.Generator().manual_seed(seed)
    f = width * torch.randn(8, likelihood.num_outputs, generator=generator)
    local = local_width * torch.randn(8, likelihood.num_local, generator=generator)
    labels = torch.randint(likelihood.num_classes, (8,), generator=generator)
    exact = likelihood.log_probabilities(f)[torch.arange(8), labels]
    assert (bound_of(likelihood, labels, local, f) <= exact + 1e-9 * (1 + exact.abs())).all()


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=IDS)
def test_bounds_touch_where_theory_says(likelihood, generator):
    f = 3 * torch.randn(50, likelihood.num_outputs, generator=generator)
    labels = torch.randint(likelihood.num_classes, (50,), generator=generator)
    exact = likelihood.log_probabilities(f)[torch.arange(50), labels]
    assert_close(bound_of(likelihood, labels, f, f), exact)
    assert_close(likelihood.log_probabilities(f).exp().sum(1), torch.ones(50))
    if not isinstance(likelihood, Softmax):  # even in c: at −c as well
        assert_close(bound_of(likelihood, labels, -f, f), exact)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=IDS)
def test_the_best_local_parameters_are_the_best(likelihood, generator):
    shape = (30, likelihood.num_outputs)
    mean = torch.randn(shape, generator=generator)
    variance = torch.rand(shape, generator=generator)[
        :, : 1 if "Softmax" in repr(likelihood) else 9
    ]
    labels = torch.randint(likelihood.num_classes, (30,), generator=generator)
    q = Moments(mean, mean.square(), variance)
    best = likelihood.best_local(q)
    highest = likelihood.bound_at(labels, best).expectation(q)
    for _ in range(20):
        other = best + 0.1 * torch.randn(best.shape, generator=generator)
        assert (likelihood.bound_at(labels, other).expectation(q) <= highest + 1e-12).all()
    local = best.clone().requires_grad_()
    (slope,) = torch.autograd.grad(likelihood.bound_at(labels, local).expectation(q).sum(), local)
    assert_close(slope, torch.zeros_like(slope))


def test_precision_and_constant_are_smooth_at_zero():
    c = torch.tensor([-2e-3, -1e-3, -1e-6, 0.0, 1e-6, 9.99e-4, 1.001e-3, 50.0], requires_grad=True)
    precision = logistic_precision(c)
    assert_close(precision[3], torch.tensor(0.25))
    assert_close(precision[5], precision[6], tolerance=1e-8)
    (slope,) = torch.autograd.grad(precision.sum() + log_2cosh_half(c).sum(), c)
    assert torch.isfinite(slope).all()
    assert_close(precision[-1].detach(), torch.tensor(0.01))
    assert_close(log_2cosh_half(torch.tensor(800.0)), torch.tensor(400.0))


def test_contrasts_are_an_orthonormal_basis_of_what_sums_to_nothing():
    for count in (2, 3, 10, 1000):
        rows = from_contrasts(torch.eye(count - 1))  # Vᵀ
        assert_close(rows @ rows.mT, torch.eye(count - 1), tolerance=1e-9)
        assert_close(rows.sum(1), torch.zeros(count - 1), tolerance=1e-9)
        assert_close(to_contrasts(torch.eye(count)), rows.mT, tolerance=1e-12)


def test_two_classes_are_one_logistic_choice(generator):
    f = torch.randn(20, 1, generator=generator)
    logistic = PolyaGamma().log_probabilities(f)
    assert_close(Softmax(2).log_probabilities(f / math.sqrt(2)).flip(1), logistic)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=IDS)
def test_class_probabilities_are_means_of_the_likelihood(likelihood, generator):
    shape = (6, likelihood.num_outputs)
    mean = 2 * torch.randn(shape, generator=generator)
    variance = 3 * torch.rand(shape, generator=generator)
    none = torch.zeros(shape)
    found = likelihood.class_probabilities(Prediction(mean, variance, none, none))
    assert_close(found.sum(1), torch.ones(6), tolerance=1e-9)
    draws = mean + variance.sqrt() * torch.randn(100_000, *shape, generator=generator)
    expected = likelihood.log_probabilities(draws).exp()
    error = expected.std(0) / math.sqrt(len(draws))
    # an even set of draws has an error of its own, far below that of as many random ones
    own = 2e-3 if isinstance(likelihood, Softmax) else 0.0
    z = ((found - expected.mean(0)).abs() - own) / error
    print(f"largest z {z.max():.2f}, standard errors up to {error.max():.2g}")
    assert z.max() < 4


def test_the_quadrature_of_a_sigmoid_is_a_probability():
    mean, variance = torch.linspace(-50, 50, 21), torch.full((21,), 400.0)
    found = mean_sigmoid(mean, variance)
    assert_close(found + found.flip(0), torch.ones(21))
    assert (found.diff() > 0).all()


def local_model(likelihood, orbit, generator):
    points = torch.randn(5, 2, generator=generator)
    num_scales = 1 if isinstance(likelihood, Softmax) else likelihood.num_outputs
    shared = num_scales == 1
    size = likelihood.num_outputs
    posterior = InducingPosterior(points, size, shared_covariance=shared, jitter=1e-8)
    posterior.assign(random_q(generator, 5, size, num_scales))
    kernel = RBF(variance=1.7, lengthscale=0.8).double()
    return InvariantGP(orbit=orbit, kernel=kernel, posterior=posterior, likelihood=likelihood)


def labelled(likelihood, generator, num_data=3):
    x = torch.randn(num_data, 2, generator=generator)
    labels = torch.randint(likelihood.num_classes, (num_data,), generator=generator)
    local = torch.randn(num_data, likelihood.num_local, generator=generator)
    return x, labels, local


ORBIT = compose(coordinate_swap(0, 1, 2), SignFlips(0, 1))


def subsets_of(x, num_samples):
    """Every ordered choice of so many of the 4 points of an orbit, for all inputs alike."""
    whole = ORBIT.enumerate(x).points
    for chosen in itertools.permutations(range(whole.shape[1]), num_samples):
        yield OrbitSample(whole[:, list(chosen)], float(whole.shape[1]))


def own_local(model, sample):
    """Local parameters from the very samples that the bound is estimated with."""
    covariances = model.covariances(sample, mean_pairs)
    factor = model.posterior.prior_factor(model.kernel)
    whitened = solve_rows(factor, covariances.groups.flatten(0, 1))
    return model.likelihood.best_local(moments(covariances, model.posterior.q, whitened))


@pytest.mark.parametrize("likelihood", LIKELIHOODS[:2], ids=IDS[:2])
def test_the_mean_over_all_subsets_is_exact_and_own_local_parameters_are_caught(
    likelihood, generator
):
    model = local_model(likelihood, ORBIT, generator)
    x, labels, local = labelled(likelihood, generator)
    samples, pairs = list(subsets_of(x, 2)), unbiased_pairs(1)
    assert len(samples) > 20

    def mean_bound(targets):
        found = [pointwise_bound_at(model, sample, x, targets(sample), pairs) for sample in samples]
        return torch.stack(found).mean(0)

    def exact(local):
        targets, whole = likelihood.with_local(labels, local), ORBIT.enumerate(x)
        return pointwise_bound_at(model, whole, x, targets, pairs)

    assert_close(mean_bound(lambda _: likelihood.with_local(labels, local)), exact(local))
    same = mean_bound(lambda sample: likelihood.with_local(labels, own_local(model, sample)))
    best = exact(own_local(model, ORBIT.enumerate(x)))
    # any mixture of valid parameters stays below the best; those of the same samples do not
    assert (same - best).abs().max() > 1e-3


@pytest.mark.parametrize("likelihood", LIKELIHOODS[:2], ids=IDS[:2])
def test_the_bound_of_a_noise_orbit_is_unbiased(likelihood, generator):
    model = local_model(likelihood, GaussianNoise(0.5, event_shape=(2,)), generator)
    x, labels, local = labelled(likelihood, generator)
    targets = likelihood.with_local(labels, local)
    exact = likelihood.quadratic_bound(x, targets).expectation(exact_moments(model, x)).sum()
    draws, copies = [], 50
    for _ in range(100):
        draws.append(
            elbo(
                model,
                x.repeat(copies, 1),
                targets.repeat(copies, 1),
                num_data=3 * copies,
                num_samples=4,
                group_size=2,
                generator=generator,
            ).expected_log_likelihood.detach()
            / copies
        )
    assert_mean(torch.stack(draws), exact.detach(), type(likelihood).__name__)


def test_a_recognition_network_gives_a_bound_and_learns(generator):
    network = Recognition(2, 2, 1, generator=generator)
    likelihood = PolyaGamma(recognition=network)
    model = local_model(likelihood, ORBIT, generator)
    x, labels, _ = labelled(likelihood, generator, 20)
    optimizer = torch.optim.Adam(network.parameters(), 0.02)
    best = own_local(model, ORBIT.enumerate(x)).detach()
    ceiling = elbo(
        model, x, likelihood.with_local(labels, best), num_data=20, num_samples=None, generator=None
    ).value
    values = []
    for _ in range(300):
        optimizer.zero_grad()
        value = elbo(model, x, labels, num_data=20, num_samples=None, generator=None).value
        (-value).backward()
        optimizer.step()
        values.append(value.item())
    print(f"{values[0]:.3f} → {values[-1]:.3f}, best {ceiling.item():.3f}")
    assert max(values) <= ceiling + 1e-9
    assert ceiling - values[-1] < 0.1 * (ceiling - values[0])


@pytest.mark.parametrize(
    ("targets", "said"),
    [
        (torch.tensor([0, 4]), "0 … 4"),
        (torch.tensor([-1, 0]), "-1 … 0"),
        (torch.tensor([0.0, 1.0]), "integers"),
        (torch.zeros(2, 3), "with_local"),
        (torch.zeros(2, 1, dtype=torch.long), "integers"),
    ],
)
def test_labels_that_are_none_are_refused(targets, said):
    with pytest.raises(InputError, match=said):
        Softmax(4).quadratic_bound(torch.zeros(2, 1), targets)
    with pytest.raises(InputError, match="at least 2"):
        Softmax(1)


def test_labels_come_back_with_their_local_parameters(generator):
    likelihood = PolyaGamma()
    _, labels, local = labelled(likelihood, generator)
    assert (likelihood.labels_of(likelihood.with_local(labels, local)) == labels).all()
    assert (likelihood.labels_of(labels) == labels).all()
