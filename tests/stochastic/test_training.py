"""The training loop against the closed form, against the gradient of the bound, and resumed."""

import math

import pytest
import torch

from orbitgp import (
    RBF,
    Affine,
    Gaussian,
    InducingPosterior,
    InvariantGP,
    OneHotGaussian,
    Rotation,
    SignFlips,
    StochasticSettings,
    elbo,
    mean_pairs,
    solve,
    statistics,
)
from orbitgp.callbacks.base import Callback
from orbitgp.distributed.group import ALONE
from orbitgp.errors import FileError, NumericalError
from orbitgp.fit.checkpoint import Checkpoint, FileCheckpoint
from orbitgp.inference.passes import Resident
from orbitgp.model import unbiased_pairs
from orbitgp.stochastic.natural import NaturalParameters
from orbitgp.stochastic.passes import best_q, bound_of_all, left_out
from orbitgp.stochastic.terms import batch_terms
from orbitgp.stochastic.training import Training
from tests.conftest import assert_close, assert_mean
from tests.files.crash import bars

pytestmark = pytest.mark.usefixtures("float64")
EVERYTHING = {"num_samples": None, "generator": None}


def flips_and_data(generator, num_data=40):
    """Whole finite orbits, so that nothing is random but the batches."""
    x = torch.randn(num_data, 2, generator=generator)
    y = torch.sin(2 * x[:, 0]).square()
    model = InvariantGP(
        orbit=SignFlips(0),
        kernel=RBF(1.3, 0.9),
        posterior=InducingPosterior(x[:15], 1),
        likelihood=Gaussian(0.1),
    )
    return model, x, y


def images_and_model(num_data=60, num_points=20):
    images, labels = bars(num_data)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    model = InvariantGP(
        orbit=Affine(-0.1, 0.1).double(),
        kernel=RBF(0.2, 3.0).double(),
        posterior=InducingPosterior(x.flatten(1)[:num_points], 3),
        likelihood=OneHotGaussian(3, noise=0.05).double(),
    )
    return model, x, y


def prior_of(model):
    posterior = model.posterior
    return NaturalParameters.optimum(
        torch.zeros_like(posterior.scale), torch.zeros_like(posterior.mean)
    )


def training(model, x, y, *, seed=3, **settings):
    return Training(
        model,
        prior_of(model),
        Resident(x, y),
        StochasticSettings(**settings),
        seed=seed,
        group=ALONE,
    )


def test_one_step_on_all_data_is_the_closed_form(generator):
    model, x, y = flips_and_data(generator)
    expected = solve(
        statistics(model, x, y, pairs=mean_pairs, **EVERYTHING),
        model.posterior.prior_covariance(model.kernel).detach(),
    )
    run = training(model, x, y, batch_size=100, rate=1e-12, point_rate=1e-12)
    run.step()
    q = run.natural.gaussian()
    assert_close(q.mean, expected.mean, tolerance=1e-6)
    assert_close(q.scale @ q.scale.mT, expected.scale @ expected.scale.mT, tolerance=1e-6)


def test_a_pass_over_all_data_is_the_closed_form_too(generator):
    model, x, y = flips_and_data(generator)
    run = training(model, x, y, batch_size=100, rate=1e-12, point_rate=1e-12)
    run.step()
    passed = best_q(model, Resident(x, y), num_draws=2, seed=1, group=ALONE)
    assert_close(passed.precision, run.natural.precision, tolerance=1e-9)
    assert_close(passed.target, run.natural.target, tolerance=1e-9)


def test_the_step_follows_the_gradient_of_the_bound(generator):
    model, x, y = flips_and_data(generator)
    run = training(model, x, y, batch_size=100)
    model.posterior.assign(run.natural.gaussian())
    value = elbo(model, x, y, num_data=40, **EVERYTHING).value
    parts = [p for group in run.optimizer.param_groups for p in group["params"]]
    expected = torch.autograd.grad(-value / 40, parts)
    assert math.isclose(run.step(), value.item(), rel_tol=1e-9)
    for part, slope in zip(parts, expected, strict=True):
        assert_close(part.grad, slope, tolerance=1e-9)


@pytest.mark.usefixtures("untyped")
def test_terms_of_a_batch_are_unbiased(generator):
    """The mean over batches and orbit samples is the bound of whole orbits."""
    model, x, y = flips_and_data(generator)
    model.orbit = SignFlips(0, 1)
    run = training(model, x, y)
    run.step()
    q, pairs = run.natural.gaussian(), unbiased_pairs(1)
    whole = batch_terms(model, q, x, y, None, pairs).expected
    draws = []
    with torch.no_grad():
        for _ in range(500):
            rows = torch.randperm(40, generator=generator)[:10]
            noise = model.orbit_noise(10, 2, generator=generator)
            draws.append(4 * batch_terms(model, q, x[rows], y[rows], noise, pairs).expected)
    assert_mean(torch.stack(draws), whole.detach(), "the bound of a batch")


@pytest.mark.usefixtures("untyped")
def test_the_reported_bound_is_unbiased_and_its_error_is_right(generator):
    model, x, y = images_and_model()
    run = training(model, x, y, num_steps=5)
    run.finish(Callback(), Checkpoint())
    q, found = run.natural.gaussian(), []
    sizes = {"num_draws": 4, "group_size": 2, "group": ALONE}
    for seed in range(60):
        found.append(bound_of_all(model, q, Resident(x, y), seed=seed, **sizes))
    values, errors = torch.tensor(found).T
    exact = bound_of_all(model, q, Resident(x, y), seed=999, **{**sizes, "num_draws": 400})
    z = (values.mean() - exact[0]) / math.hypot(values.std() / math.sqrt(60), exact[1])
    print(f"bound: z = {z:.2f}, standard error {values.std() / math.sqrt(60):.2g}")
    assert abs(z) < 4
    # a variance of 60 values has a relative standard error of √(2/59)
    ratio = values.var() / errors.square().mean()
    assert abs(ratio - 1) < 4 * math.sqrt(2 / 59), ratio


def test_left_out_predictions_are_those_without_the_datum(generator):
    model, x, y = flips_and_data(generator)
    q = best_q(model, Resident(x, y), num_draws=2, seed=1, group=ALONE).gaussian()
    found = left_out(model, q, x, y, None)
    for row in (0, 20, 39):
        others = torch.arange(40) != row
        kept = Resident(x[others], y[others])
        model.posterior.assign(best_q(model, kept, num_draws=2, seed=1, group=ALONE).gaussian())
        expected = model.predict(x[row : row + 1])
        assert_close(found.mean[row], expected.mean[0], tolerance=1e-8)
        assert_close(found.variance[row], expected.variance[0], tolerance=1e-8)


class Stop(Callback):
    """Ends a run at a step, as a crash would."""

    def __init__(self, at):
        self.at = at

    def stepped(self, step):
        if step == self.at:
            raise RuntimeError("stopped")


def test_a_run_goes_on_bit_for_bit(tmp_path):
    settings = {"num_steps": 30, "batch_size": 16, "checkpoint_every": 10, "report_every": 4}
    whole = training(*images_and_model(), **settings)
    whole.finish(Callback(), Checkpoint())
    keep = FileCheckpoint(tmp_path / "checkpoint.safetensors")
    with pytest.raises(RuntimeError, match="stopped"):
        training(*images_and_model(), **settings).finish(Stop(17), keep)
    resumed = training(*images_and_model(), **settings)
    keep.restore(resumed)
    assert resumed.num_steps == 10
    resumed.finish(Callback(), keep)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
    assert whole.curve == resumed.curve
    assert len(whole.curve) == 7


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    keep = FileCheckpoint(tmp_path / "checkpoint.safetensors")
    run = training(*images_and_model(), num_steps=3, checkpoint_every=1)
    run.finish(Callback(), keep)
    with pytest.raises(FileError, match=r"other tensors|is needed"):
        keep.restore(training(*images_and_model(num_points=10), num_steps=3))
    with pytest.raises(FileError, match="step 3 of 2"):
        keep.restore(training(*images_and_model(), num_steps=2))


def test_both_ends_of_a_free_range_are_learned():
    model, x, y = images_and_model()
    model.orbit = Rotation(-0.1, 0.1, symmetric=False).double()
    run = training(model, x, y, num_steps=20, batch_size=32)
    run.finish(Callback(), Checkpoint())
    low, high = -model.orbit.ranges.low.item(), model.orbit.ranges.high.item()
    assert abs(low - 0.1) > 1e-3
    assert abs(high - 0.1) > 1e-3
    assert abs(low - high) > 1e-4


def test_a_range_can_return_from_its_limit():
    """Beyond the limit the gradient is 0, so an end that a step took there would stay."""
    model, x, y = images_and_model()
    model.orbit = Rotation(-3.0, 3.0).float()
    run = training(model, x, y, batch_size=32, rate=1.0)
    with torch.no_grad():
        model.orbit.ranges.raw.fill_(50.0)
    run.step()
    assert model.orbit.describe() == "rotation by any angle"
    run.step()
    assert model.orbit.ranges.raw.grad.abs().max() > 0


def test_a_bound_that_is_not_finite_is_said_before_any_step(generator):
    model, x, y = flips_and_data(generator)
    run = training(model, x, y)
    with torch.no_grad():
        model.posterior.points.fill_(float("nan"))
    with pytest.raises(NumericalError):
        run.step()
