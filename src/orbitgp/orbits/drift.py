"""Slow changes of what a sensor reads as 0."""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.orbits.curves import cosine_curves
from orbitgp.orbits.ranged import Quantity, RangedOrbit


class Drift(RangedOrbit):
    """Series plus a smooth random curve, x_a(t) = x(t) + a f(t), with a learnable amplitude a.

    f has a standard deviation of 1, and is the same for all channels. Series are [N, T] or
    [N, channels, T]; estimators divide inputs by their largest value, so a is a part of that.

    Parameters
    ----------
    amplitude : float, default=0.03
        Where a starts.
    num_frequencies : int, default=4
        Cosines that make a curve.
    **options : object
        Of `UniformRange`: learn_low and learn_high, which must be alike, and prior.

    Raises
    ------
    InputError
        If there is no frequency.

    See Also
    --------
    GaussianNoise : Fast changes.

    Examples
    --------
    >>> from orbitgp import Drift
    >>> Drift(0.1).describe()
    'drift −10.0% … +10.0%'
    """

    def __init__(
        self, amplitude: float = 0.03, *, num_frequencies: int = 4, **options: Any
    ) -> None:
        if num_frequencies < 1:
            raise InputError(f"a drift needs at least 1 frequency; got {num_frequencies}")
        drift = Quantity("drift", "%", 100.0, digits=1, normal=True)
        super().__init__([drift], -amplitude, amplitude, symmetric=True, **options)
        self.num_frequencies = self.noise_size = num_frequencies

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that it was made with, besides its ranges."""
        return {"num_frequencies": self.num_frequencies}

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S *event"]:
        """Series that drift."""
        curves = cosine_curves(noise, x.shape[-1])
        added = (self.ranges.high.to(curves) * curves).to(x)
        return x.unsqueeze(1) + (added if x.ndim == 2 else added.unsqueeze(2))
