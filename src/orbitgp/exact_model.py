"""ExactInvariantGP: a model whose posterior is exact, given transformations that inputs share."""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from orbitgp.features import Projection
from orbitgp.kernels import Kernel
from orbitgp.likelihoods.base import Likelihood
from orbitgp.orbit_model import OrbitModel, check_part
from orbitgp.orbits.base import Orbit, check_inputs
from orbitgp.posterior.algebra import square_root
from orbitgp.posterior.exact import ExactPosterior
from orbitgp.values import OrbitSample, Prediction


class ExactInvariantGP(OrbitModel):
    """Gaussian process given all data, with S transformations T_s that all inputs share.

    f(x) = mean_s g(φ(T_s x)). Mean, variance and joint draws come from one posterior, which is
    exact for this model. Estimators make it; see their attribute `model_`.

    Parameters
    ----------
    orbit : Orbit
        Where the transformations come from.
    kernel : gpytorch.kernels.Kernel
        The kernel of g.
    posterior : ExactPosterior
        Points of the training data, and the solution for their targets.
    likelihood : Likelihood
        p(y | f), Gaussian.
    feature_map : torch.nn.Module, optional
        φ; inputs are flattened if there is none.
    projection : Projection, optional
        Principal axes of the features.

    Raises
    ------
    InputError
        If a part is of the wrong kind.

    Examples
    --------
    >>> import numpy as np
    >>> from orbitgp import InvariantGPRegressor
    >>> X = np.linspace(0, 1, 20)[:, None]
    >>> InvariantGPRegressor(random_state=0).fit(X, X[:, 0]).model_.__class__.__name__
    'ExactInvariantGP'
    """

    def __init__(
        self,
        *,
        orbit: Orbit,
        kernel: Kernel,
        posterior: ExactPosterior,
        likelihood: Likelihood,
        feature_map: nn.Module | None = None,
        projection: Projection | None = None,
    ) -> None:
        check_part(posterior, ExactPosterior)
        super().__init__(
            orbit=orbit,
            kernel=kernel,
            likelihood=likelihood,
            feature_map=feature_map,
            projection=projection,
        )
        self.posterior = posterior

    @torch.no_grad()
    def predict(self, x: Shaped[Tensor, "N *event"], *, batch_size: int = 256) -> Prediction:
        """Mean and variance of f at each input; there is no Monte-Carlo error."""
        check_inputs(x)
        noise = self.posterior.noise
        return self.predict_from(self.sample_orbit_at(part, noise) for part in x.split(batch_size))

    def predict_from(self, samples: Iterable[OrbitSample]) -> Prediction:
        """`predict`, from orbit points that were drawn with `posterior.noise`."""
        return Prediction.concatenated(list(map(self.predictor(), samples)))

    def predictor(self) -> Callable[[OrbitSample], Prediction]:
        """`predict_from` for one sample; what depends on the model alone is computed once."""
        return self.posterior.predictor(self.kernel)

    @torch.no_grad()
    def predict_f_samples(
        self, x: Shaped[Tensor, "N *event"], num_draws: int, *, generator: torch.Generator
    ) -> Float[Tensor, "K N C"]:
        """Joint draws of f at all inputs from the posterior; (N S)² base covariances."""
        check_inputs(x)
        sample = self.sample_orbit_at(x, self.posterior.noise)
        mean, covariance = self.posterior.joint(self.kernel, sample)
        shape = (num_draws, *mean.shape)
        noise = torch.randn(shape, generator=generator, device=generator.device).to(mean)
        return mean + square_root(covariance) @ noise
