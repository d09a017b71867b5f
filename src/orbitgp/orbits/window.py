"""Parts of series, as long as the whole."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.orbits.ranged import Quantity, RangedOrbit
from orbitgp.orbits.resample import check_series, resample


class Window(RangedOrbit):
    """A random part of a series, stretched to the length of the whole.

    The part that is left out is uniform in [0, high], and the window lies anywhere. Series are
    [N, T] or [N, channels, T].

    Parameters
    ----------
    length : int
        T.
    high : float, default=0.05
        Where the upper end starts, as a part of the length.
    **options : object
        Of `UniformRange`: learn_high and prior.

    Raises
    ------
    InputError
        If the length is below 2.

    See Also
    --------
    TimeAffine : Shift and stretch.

    Examples
    --------
    >>> from orbitgp import Window
    >>> Window(100, 0.1).describe()
    'left out 0.0% … 10.0%'
    """

    def __init__(self, length: int, high: float = 0.05, **options: Any) -> None:
        if length < 2:
            raise InputError(f"a window needs a length of at least 2; got {length}")
        left_out = Quantity("left out", "%", 100.0, 0.9, 1)
        super().__init__([left_out], 0.0, high, learn_low=False, **options)
        self.length, self.noise_size = length, 2

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that it was made with, besides its ranges."""
        return {"length": self.length}

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse inputs that are no series of this length."""
        check_series(x, self.length)

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S 2"]
    ) -> Float[Tensor, "N S *event"]:
        """Windows of the series."""
        check_series(x, self.length)
        out = self.parameters_from(noise)
        times = torch.arange(self.length, dtype=out.dtype, device=out.device)
        start = out * noise[..., 1:].to(out) * (self.length - 1)
        return resample(x, start + (1 - out) * times)
