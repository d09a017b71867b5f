"""Series that start earlier or later, and run slower or faster."""

import math
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.orbits.ranged import Quantity, RangedOrbit, factor_of
from orbitgp.orbits.ranges import Ends
from orbitgp.orbits.resample import Outside, check_outside, check_series, resample

SMALL_SHIFT, SMALL_STRETCH = 0.02, 0.05
"""Where ranges start: a part of the length, and the logarithm of a factor."""


class TimeAffine(RangedOrbit):
    """Series shifted in time and stretched about their middle, with learnable ranges.

    x_a(t) = x(m + e⁻ˢ (t − m − d)), with the shift d in samples, the logarithm s of the stretch and
    the middle m. Series are [N, T] or [N, channels, T], and are interpolated linearly.

    Parameters
    ----------
    length : int
        T.
    low, high : float or (float, float), optional
        Where the ends of the ranges of d (samples, later is positive) and s start: one number for
        both, or one for each; ∓2 % of the length and ∓0.05 if not given.
    outside : {"zero", "edge", "cyclic"}, default="edge"
        What a series is before its start and after its end: 0, its first and last value, or itself
        again. A cyclic series cannot be stretched: s is 0.
    sampling_rate : float, optional
        Samples in a second; shifts are then described in milliseconds.
    **options : object
        Of `UniformRange`: learn_low, learn_high, symmetric and prior.

    Raises
    ------
    InputError
        If length, rate or `outside` cannot be used.

    See Also
    --------
    TimeWarp : Local changes of speed.
    CyclicShifts : Every cyclic shift, as a finite group.

    Examples
    --------
    >>> import torch
    >>> from orbitgp import TimeAffine
    >>> TimeAffine(100, -5.0, 5.0, outside="cyclic").describe()
    'cyclic shift −5.0 … +5.0 samples'
    >>> orbit = TimeAffine(100, sampling_rate=50.0)
    >>> orbit.describe()
    'shift −40 … +40 ms, stretch ×0.95 … ×1.05'
    >>> orbit.sample(torch.rand(2, 3, 100), 4, generator=torch.Generator()).points.shape
    torch.Size([2, 4, 3, 100])
    """

    outside: Outside

    def __init__(
        self,
        length: int,
        low: Ends | None = None,
        high: Ends | None = None,
        *,
        outside: Outside = "edge",
        sampling_rate: float | None = None,
        **options: Any,
    ) -> None:
        check_outside(outside)
        if length < 2 or not (sampling_rate is None or 0 < sampling_rate < math.inf):
            raise InputError(
                "a transformation of time needs a length of at least 2 and a positive "
                f"sampling_rate; got {length} and {sampling_rate}"
            )
        small = [SMALL_SHIFT * length, SMALL_STRETCH][: 1 if outside == "cyclic" else 2]
        quantities = [
            _shift(length, outside, sampling_rate),
            factor_of("stretch", math.log(4)),
        ][: len(small)]
        low = [-end for end in small] if low is None else low
        super().__init__(quantities, low, small if high is None else high, **options)
        self.length, self.outside, self.sampling_rate = length, outside, sampling_rate

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that it was made with, besides its ranges."""
        return {
            "length": self.length,
            "outside": self.outside,
            "sampling_rate": self.sampling_rate,
        }

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse inputs that are no series of this length."""
        check_series(x, self.length)

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S *event"]:
        """Moved series."""
        check_series(x, self.length)
        shift, *stretch = self.parameters_from(noise).unsqueeze(-2).unbind(-1)
        times = torch.arange(self.length, dtype=shift.dtype, device=shift.device)
        if not stretch:
            return resample(x, times - shift, self.outside)
        middle = 0.5 * (self.length - 1)
        places = middle + torch.exp(-stretch[0]) * (times - middle - shift)
        return resample(x, places, self.outside)


def time_shift(length: int, high: float, outside: Outside = "edge") -> TimeAffine:
    """Shifts alone, by up to `high` samples to both sides where learning starts."""
    if outside == "cyclic":
        return TimeAffine(length, -high, high, outside=outside)
    flags = {"learn_low": [True, False], "learn_high": [True, False], "symmetric": True}
    return TimeAffine(length, [-high, 0.0], [high, 0.0], outside=outside, **flags)


def _shift(length: int, outside: Outside, sampling_rate: float | None) -> Quantity:
    """In samples or milliseconds, by at most half of the series."""
    name = "cyclic shift" if outside == "cyclic" else "shift"
    every = "any cyclic shift" if outside == "cyclic" else ""
    if sampling_rate is None:
        return Quantity(name, "samples", 1.0, 0.5 * length, 1, every)
    return Quantity(name, "ms", 1000 / sampling_rate, 0.5 * length, 0, every)
