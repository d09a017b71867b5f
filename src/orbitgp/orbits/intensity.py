"""Brightness and contrast."""

import torch
from jaxtyping import Float
from torch import Tensor
from torch.distributions import Distribution

from orbitgp.orbits.base import Orbit
from orbitgp.orbits.ranges import Ends, Flags, UniformRange, known


class Intensity(Orbit):
    """Contrast and brightness, x_a = eᶜ x + b, with learnable ranges of c and b.

    Inputs may have any shape. Estimators divide inputs by their largest value, so b is a part of
    that.

    Parameters
    ----------
    low, high : float or sequence of float, default=∓0.05
        Where the ends of the ranges start: one number for all parameters, or one for each.
    learn_low, learn_high : bool or sequence of bool, default=True
        Which ends are learned.
    symmetric : bool, optional
        Whether both ends of a range are tied; by default where they start as mirror images.
    prior : torch.distributions.Distribution, optional
        Distribution of the widths that are learned.

    Examples
    --------
    >>> from orbitgp import Intensity
    >>> Intensity(-0.1, 0.1).describe()
    'contrast ×0.90 … ×1.11, brightness −0.10 … +0.10'
    """

    noise_size = 2
    names = ("contrast", "brightness")

    def __init__(
        self,
        low: Ends = -0.05,
        high: Ends = 0.05,
        *,
        learn_low: Flags = True,
        learn_high: Flags = True,
        symmetric: bool | None = None,
        prior: Distribution | None = None,
    ) -> None:
        super().__init__()
        flags = {"learn_low": learn_low, "learn_high": learn_high}
        ends = [torch.as_tensor(end).expand(2).tolist() for end in (low, high)]
        self.ranges = UniformRange(*ends, symmetric=symmetric, prior=prior, **flags)

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S 2"]
    ) -> Float[Tensor, "N S *event"]:
        """Brighter and darker inputs."""
        contrast, brightness = self.ranges.rsample(noise).to(x.dtype).unbind(-1)
        shape = (*contrast.shape, *[1] * (x.ndim - 1))
        return x.unsqueeze(1) * contrast.exp().view(shape) + brightness.view(shape)

    def describe(self) -> str:
        """In words; without what is frozen at 0."""
        (contrast, brightness) = self.learned_ranges().values()
        words = [
            f"contrast ×{contrast[0]:.2f} … ×{contrast[1]:.2f}",
            f"brightness {brightness[0]:+.2f} … {brightness[1]:+.2f}".replace("-", "−"),
        ]
        found = zip(words, self.ranges.used, self.ranges.identified, strict=True)
        shown = [word + known(bool(told)) for word, used, told in found if used]
        return ", ".join(shown) or "no invariance"

    def learned_ranges(self) -> dict[str, tuple[float, float]]:
        """Factors, and parts of the largest value."""
        (low_c, low_b), (high_c, high_b) = self.ranges.low, self.ranges.high
        return {
            "contrast (×)": (low_c.exp().item(), high_c.exp().item()),
            "brightness": (low_b.item(), high_b.item()),
        }
