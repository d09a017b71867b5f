"""An orbit from a user's own transformation."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.orbits.base import Orbit, repeat
from orbitgp.orbits.ranges import UniformRange, known


class FunctionOrbit(Orbit):
    """x_a = function(x, φ) with φ ~ Unif(low, high), the ranges learned through the function.

    `function` maps inputs [B, *event] and parameters [B, K] to [B, *event], with torch operations
    that are differentiable in the parameters, and is the identity at φ = 0:

        def louder(x, gain):  # series [B, T], gain [B, 1]
            return x * torch.exp(gain)

        orbit = FunctionOrbit(louder, UniformRange(-0.1, 0.1), names=["gain"])
    """

    def __init__(
        self,
        function: Callable[[Tensor, Tensor], Tensor],
        ranges: nn.Module,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(ranges, UniformRange) or isinstance(names, str):
            raise InputError(
                "FunctionOrbit takes a UniformRange, such as UniformRange(-0.1, 0.1), and a list "
                f"of names; got {type(ranges).__name__} and {type(names).__name__}"
            )
        self.function = function
        self.ranges = ranges
        self.noise_size = len(ranges.high)
        self.names = tuple(names or (f"φ{k + 1}" for k in range(self.noise_size)))
        if len(self.names) != self.noise_size:
            raise InputError(
                f"{len(self.names)} names for {self.noise_size} parameters; give one for each"
            )

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S *event"]:
        """The function applied to each input with each draw of its parameters."""
        inputs = repeat(x, noise.shape[1])
        parameters = self.ranges.rsample(noise).to(x.dtype)
        outputs = self.function(inputs, parameters.flatten(0, 1))
        if not isinstance(outputs, Tensor) or outputs.shape != inputs.shape:
            given = list(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
            raise InputError(
                f"the orbit's function turned inputs {list(inputs.shape)} into {given}; it takes "
                f"inputs [B, *event] with parameters [B, {self.noise_size}], and must return a "
                "tensor and keep the shape"
            )
        if torch.is_grad_enabled() and self.ranges.learned.any() and not outputs.requires_grad:
            raise InputError(
                "torch cannot differentiate the outcome of the orbit's function in its parameters, "
                "so the range cannot be learned; use torch operations throughout, or "
                "freeze the range with learn_low=False, learn_high=False"
            )
        return outputs.unflatten(0, noise.shape[:2])

    def describe(self) -> str:
        """In words."""
        ranges = self.ranges
        ends = zip(ranges.low.tolist(), ranges.high.tolist(), ranges.identified, strict=True)
        words = ", ".join(
            f"{name} {low:+.3g} … {high:+.3g}{known(bool(told))}"
            for name, (low, high, told) in zip(self.names, ends, strict=True)
        )
        return words.replace("-", "−")

    def learned_ranges(self) -> dict[str, tuple[float, float]]:
        """By the names given, in the unit of the function's parameters."""
        ends = zip(self.ranges.low.tolist(), self.ranges.high.tolist(), strict=True)
        return dict(zip(self.names, ends, strict=True))
