"""Series that run slower here and faster there."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import pad

from orbitgp.errors import InputError
from orbitgp.orbits.curves import cosine_curves
from orbitgp.orbits.ranged import Quantity, RangedOrbit
from orbitgp.orbits.resample import check_series, resample


class TimeWarp(RangedOrbit):
    """Series read at a smooth random speed, from their start to their end.

    x_a(t) = x(T ∫₀ᵗ v / ∫₀ᵀ v) with the speed v = exp(a f), a random curve f of standard deviation
    1 and a learnable amplitude a: time never runs backwards. Series are [N, T] or [N, channels, T].

    Parameters
    ----------
    length : int
        T.
    amplitude : float, default=0.1
        Where a starts: the standard deviation of the logarithm of the speed.
    num_frequencies : int, default=4
        Cosines that make a curve.
    **options : object
        Of `UniformRange`: learn_low and learn_high, which must be alike, and prior.

    Raises
    ------
    InputError
        If length or number of frequencies cannot be used.

    See Also
    --------
    TimeAffine : Shift and stretch of the whole series.

    Examples
    --------
    >>> from orbitgp import TimeWarp
    >>> TimeWarp(100, 0.2).describe()
    'speed −20% … +20%'
    """

    def __init__(
        self, length: int, amplitude: float = 0.1, *, num_frequencies: int = 4, **options: Any
    ) -> None:
        if length < 2 or not 1 <= num_frequencies <= length:
            raise InputError(
                "a warp of time needs a length of at least 2, and 1 to as many frequencies; got "
                f"{length} and {num_frequencies}"
            )
        speed = Quantity("speed", "%", 100.0, math.log(4), 0, normal=True)
        super().__init__([speed], -amplitude, amplitude, symmetric=True, **options)
        self.length, self.num_frequencies = length, num_frequencies
        self.noise_size = num_frequencies

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that it was made with, besides its ranges."""
        return {"length": self.length, "num_frequencies": self.num_frequencies}

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse inputs that are no series of this length."""
        check_series(x, self.length)

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S *event"]:
        """Warped series."""
        check_series(x, self.length)
        curves = cosine_curves(noise, self.length - 1)
        speed = torch.exp(self.ranges.high.to(curves) * curves)
        passed = pad(speed.cumsum(-1), (1, 0))
        times = passed * ((self.length - 1) / passed[..., -1:])
        return resample(x, times)
