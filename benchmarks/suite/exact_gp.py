"""Exact GPs of GPyTorch with one RBF kernel, as in its tutorials."""

from typing import Any

import gpytorch
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import RBFKernel, ScaleKernel
from gpytorch.likelihoods import DirichletClassificationLikelihood, GaussianLikelihood
from gpytorch.means import ConstantMean
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from experiments.prediction import Prediction, of_probabilities
from experiments.splits import Split

STEPS, RATE = 60, 0.1
MAX_LEARNED = 1000
"""Inputs that kernel and noise are learned on; the posterior is that of all."""

NUM_DRAWS = 256
"""Of latent functions, whose softmax is averaged."""


class ExactGP(gpytorch.models.ExactGP):
    """A constant mean and an RBF kernel, of its own for each output."""

    def __init__(self, x: Tensor, y: Tensor, likelihood: Any) -> None:
        super().__init__(x, y, likelihood)
        shape = y.shape[:-1]
        kernel = RBFKernel(batch_shape=shape)
        # from GPyTorch's own start, ln 2, distances of hundreds of inputs have no gradient
        kernel.initialize(lengthscale=torch.pdist(x[:MAX_LEARNED]).median().clamp(min=1e-3))
        self.mean = ConstantMean(batch_shape=shape)
        self.kernel = ScaleKernel(kernel, batch_shape=shape)

    def forward(self, x: Tensor) -> MultivariateNormal:
        """The prior."""
        mean, covariance = self.mean(x), self.kernel(x)
        assert isinstance(mean, Tensor)
        return MultivariateNormal(mean, covariance)


def gpytorch_gp(split: Split, *, seed: int) -> Prediction:
    """Dirichlet classification (Milios et al. 2018), or regression on standardised numbers."""
    scale = abs(split.x).max()
    x, x_test = (
        torch.from_numpy(part.reshape(len(part), -1) / scale).double()
        for part in (split.x, split.x_test)
    )
    with gpytorch.settings.max_cholesky_size(10_000):
        if split.num_classes:
            return _classified(x, torch.from_numpy(split.y), x_test, seed)
        return _regressed(x, torch.from_numpy(split.y), x_test)


def _classified(x: Tensor, y: Tensor, x_test: Tensor, seed: int) -> Prediction:
    def likelihood(labels: Tensor) -> DirichletClassificationLikelihood:
        return DirichletClassificationLikelihood(
            labels, learn_additional_noise=True, dtype=torch.float64
        )

    part = first_of_each_class(y)
    learned = learn(ExactGP(x[part], _targets(likelihood(y[part])), likelihood(y[part])))
    whole = likelihood(y)
    model = ExactGP(x, _targets(whole), whole)
    model.load_state_dict(learned.state_dict())
    latent = predict(model, x_test)
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(NUM_DRAWS, *latent.mean.shape, generator=generator, dtype=torch.float64)
    draws = latent.mean + latent.variance.sqrt() * noise
    return of_probabilities(draws.softmax(1).mean(0).mT.numpy())


def _regressed(x: Tensor, y: Tensor, x_test: Tensor) -> Prediction:
    mean, deviation = y.mean(), y.std()
    targets = (y - mean) / deviation
    part = slice(MAX_LEARNED)
    learned = learn(ExactGP(x[part], targets[part], GaussianLikelihood().double()))
    learned.set_train_data(x, targets, strict=False)
    latent = predict(learned, x_test)
    likelihood: Any = learned.likelihood
    observed = likelihood(latent)
    spread = observed.variance.sqrt() * deviation
    return Prediction((observed.mean * deviation + mean).numpy(), spread.detach().numpy())


def first_of_each_class(y: Tensor) -> Tensor:
    """The first rows, with at least one of each class among them."""
    first = [int((y == label).nonzero()[0]) for label in y.unique()]
    return torch.tensor(sorted({*first, *range(min(len(y), MAX_LEARNED))}))


def _targets(likelihood: DirichletClassificationLikelihood) -> Tensor:
    targets = likelihood.transformed_targets
    assert isinstance(targets, Tensor)
    return targets


def learn(model: ExactGP) -> ExactGP:
    """Type-II maximum likelihood by Adam."""
    model = model.double().train()
    objective = ExactMarginalLogLikelihood(model.likelihood, model)
    optimizer = torch.optim.Adam(model.parameters(), RATE)
    inputs: Any = model.train_inputs
    (x,), targets = inputs, model.train_targets
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = objective(model(x), targets)
        assert isinstance(value, Tensor)
        (-value.sum()).backward()
        optimizer.step()
    return model


@torch.no_grad()
def predict(model: ExactGP, x: Tensor) -> MultivariateNormal:
    """The posterior of the latent functions, input by input."""
    found = model.double().eval()(x)
    assert isinstance(found, MultivariateNormal)
    return found
