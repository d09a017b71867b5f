"""An orbit from a user's own transformation."""

from collections.abc import Callable, Sequence

from jaxtyping import Float
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.orbits.base import Orbit, repeat
from orbitgp.orbits.ranges import UniformRange


class FunctionOrbit(Orbit):
    """x_a = function(x, φ) with φ ~ Unif(low, high), the ranges learned through the function.

    `function` maps inputs [B, *event] and parameters [B, K] to [B, *event], with torch operations
    that are differentiable in the parameters, and is the identity at φ = 0.
    """

    def __init__(
        self,
        function: Callable[[Tensor, Tensor], Tensor],
        ranges: UniformRange,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
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
        outputs = self.function(inputs, self.ranges.rsample(noise).flatten(0, 1))
        if outputs.shape != inputs.shape:
            raise InputError(
                f"the orbit's function turned inputs {list(inputs.shape)} into "
                f"{list(outputs.shape)}; it must keep the shape"
            )
        return outputs.unflatten(0, noise.shape[:2])

    def describe(self) -> str:
        """In words."""
        rows = zip(self.names, self.ranges.low.tolist(), self.ranges.high.tolist(), strict=True)
        words = ", ".join(f"{name} {low:+.3g} … {high:+.3g}" for name, low, high in rows)
        return words.replace("-", "−")
