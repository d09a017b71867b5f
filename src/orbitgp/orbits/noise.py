"""Insensitivity to small random perturbations."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import softplus

from orbitgp.errors import InputError
from orbitgp.filters import inverse_softplus
from orbitgp.orbits.base import UNIT, Orbit
from orbitgp.orbits.ranges import Range


class GaussianNoise(Orbit):
    """Small random perturbations, x_a = x + s ε with ε ~ N(0, I) and a learnable scale s.

    With an RBF kernel every covariance has a closed form.

    Parameters
    ----------
    scale : float or Tensor of shape event_shape, default=0.1
        s: one number, or one for each coordinate.
    event_shape : tuple of int
        Shape of one input.
    learnable : bool, default=True
        Whether s is learned.

    Raises
    ------
    InputError
        If s is negative, or 0 and to be learned.

    Examples
    --------
    >>> from orbitgp import GaussianNoise
    >>> GaussianNoise(0.1, event_shape=(3,)).describe()
    'noise ±0.1'
    """

    def __init__(
        self,
        scale: float | Float[Tensor, "*event"] = 0.1,
        *,
        event_shape: tuple[int, ...],
        learnable: bool = True,
    ) -> None:
        super().__init__()
        scale = torch.as_tensor(scale, dtype=torch.get_default_dtype())
        if not torch.isfinite(scale).all() or (scale < 0).any():
            raise InputError(f"the scale of noise must be finite and ≥ 0; got {scale.tolist()}")
        if learnable and (scale == 0).any():
            raise InputError(
                "a scale of exactly 0 cannot be learned, since its gradient is 0 there; start at a "
                "small value such as 0.01, or pass learnable=False"
            )
        raw = inverse_softplus(scale) if learnable else scale
        self.raw_scale = nn.Parameter(raw, requires_grad=learnable)
        self.learnable = learnable
        self.event_shape = torch.Size(event_shape)
        self.noise_size = self.event_shape.numel()

    @property
    def scale(self) -> Float[Tensor, "*event"]:
        """s ≥ 0."""
        return softplus(self.raw_scale) if self.learnable else self.raw_scale

    def noise(
        self, num_inputs: int, num_samples: int, *, generator: torch.Generator, group_size: int = 1
    ) -> Float[Tensor, "N S K"]:
        """Uniforms for every coordinate; too many for an even cover, so independent always."""
        del group_size
        return super().noise(num_inputs, num_samples, generator=generator)

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S *event"]:
        """Perturbed inputs."""
        return x.unsqueeze(1) + self._added(x, noise)

    def alike(
        self, noise: Float[Tensor, "1 S K"], like: Float[Tensor, "N *event"]
    ) -> Callable[[Float[Tensor, "N *event"]], Float[Tensor, "N S *event"]]:
        """The same noise for all inputs."""
        added = self._added(like, noise)
        return lambda x: x.unsqueeze(1) + added

    def each(
        self, noise: Float[Tensor, "1 S K"], like: Float[Tensor, "N *event"]
    ) -> Callable[[Float[Tensor, "N S *event"]], Float[Tensor, "N S *event"]]:
        """Noise s for sample s of every input."""
        added = self._added(like, noise)
        return lambda points: points + added

    def _added(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "R S K"]
    ) -> Float[Tensor, "R S *event"]:
        if x.shape[1:] != self.event_shape:
            raise InputError(
                f"this noise was made for inputs of shape {list(self.event_shape)}; "
                f"got {list(x.shape[1:])}: pass event_shape={tuple(x.shape[1:])}"
            )
        # in float64, where the middle of the last step of noise is not yet 1
        normal = torch.special.ndtri(noise.double() + 0.5 / UNIT).to(x)
        return self.scale.to(x) * normal.unflatten(-1, self.event_shape)

    def describe(self) -> str:
        """In words."""
        low, high = self.scale.min().item(), self.scale.max().item()
        return f"noise ±{low:.3g}" if low == high else f"noise ±{low:.3g} … ±{high:.3g}"

    def learned_ranges(self) -> tuple[Range, ...]:
        """The smallest and the largest scale, which are the same if there is one."""
        return (Range("scale of noise", "", 0, self.scale.min().item(), self.scale.max().item()),)
