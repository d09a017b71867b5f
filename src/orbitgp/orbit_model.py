"""What all models share: an orbit, a feature map, a base kernel and a likelihood."""

import math
from typing import Any

import torch
from jaxtyping import Float, Shaped
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.features import Projection
from orbitgp.kernels import Kernel
from orbitgp.likelihoods.base import Likelihood
from orbitgp.orbits.base import FiniteOrbit, Orbit, check_counts, check_inputs
from orbitgp.values import OrbitSample


class OrbitModel(nn.Module):
    """f(x) = E_{x_a ~ p_θ(x_a|x)} g(φ(x_a)),  g ~ GP(0, k_g),  y ~ p(y | f(x)).

    Inputs are [N, *event] of any shape that the orbit acts on. The feature map φ turns transformed
    inputs [B, *event] into [B, D] (flattened by default), where the base kernel lives; with a
    `projection`, it lives on some axes of it.
    """

    def __init__(
        self,
        *,
        orbit: Orbit,
        kernel: Kernel,
        likelihood: Likelihood,
        feature_map: nn.Module | None = None,
        projection: Projection | None = None,
    ) -> None:
        super().__init__()
        check_part(orbit, Orbit)
        check_part(kernel, Kernel)
        check_part(likelihood, Likelihood)
        self.orbit = orbit
        self.feature_map = nn.Flatten() if feature_map is None else feature_map
        self.projection = projection
        self.kernel = kernel
        self.likelihood = likelihood

    def parts(self, **others: nn.Module) -> dict[str, Any]:
        """What a model is made of, with others in place of some, as keyword arguments."""
        names = ("orbit", "kernel", "likelihood", "feature_map", "projection")
        return {name: getattr(self, name) for name in names} | others

    def sample_orbit(
        self,
        x: Shaped[Tensor, "N *event"],
        num_samples: int | None,
        *,
        generator: torch.Generator | None,
        group_size: int = 1,
    ) -> OrbitSample:
        """φ(x_a) for S draws of each input; for all of a finite orbit if S ≥ P or S is None."""
        check_inputs(x)
        draws = {"generator": generator, "group_size": group_size}
        return self.sample_orbit_at(x, self.orbit_noise(len(x), num_samples, **draws))

    def orbit_noise(
        self,
        num_inputs: int,
        num_samples: int | None,
        *,
        generator: torch.Generator | None,
        group_size: int = 1,
    ) -> Float[Tensor, "N S K"] | None:
        """Noise for S draws of each input; None where a whole finite orbit needs no draws."""
        wanted = math.inf if num_samples is None else num_samples
        if isinstance(self.orbit, FiniteOrbit) and wanted >= self.orbit.size:
            return None
        if num_samples is None:
            raise InputError(
                f"the orbit ({self.orbit.describe()}) has no end of points to enumerate; "
                "give num_samples, such as 32"
            )
        if generator is None:
            raise InputError(
                "orbit samples are random; pass generator=torch.Generator().manual_seed(0)"
            )
        check_counts(num_samples, group_size)
        draws = {"generator": generator, "group_size": group_size}
        return self.orbit.noise(num_inputs, num_samples, **draws)

    def sample_orbit_at(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "R S K"] | None
    ) -> OrbitSample:
        """φ(x_a) for the draws that this noise leads to; for all of a finite orbit if None.

        Noise of one row (R = 1) makes the same draws for every input.
        """
        if noise is None:
            assert isinstance(self.orbit, FiniteOrbit)
            return self.orbit.enumerate(x).map(self.features)
        return self.orbit.at(x, noise).map(self.features)

    def features(self, x: Float[Tensor, "B *event"]) -> Float[Tensor, "B D"]:
        """φ(x), projected if a projection is given."""
        features = self.feature_map(x)
        return features if self.projection is None else self.projection(features)


def check_part(part: object, kind: type) -> None:
    """Refuse what is no part of a model."""
    if not isinstance(part, kind):
        raise InputError(f"a model needs an instance of {kind.__qualname__}; got {part!r}")
