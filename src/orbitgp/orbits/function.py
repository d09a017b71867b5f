"""An orbit from a user's own transformation."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.orbits.base import Orbit, repeat
from orbitgp.orbits.ranges import Ends, Range, UniformRange

TOLERANCE = 1e-3
"""Of the largest value: how far a function may be from the identity where its parameters are 0."""


class FunctionOrbit(Orbit):
    """A transformation of your own, with learnable ranges of its parameters.

    The parameters φ of the function are drawn uniformly between `low` and `high`.

    Parameters
    ----------
    function : callable
        Maps inputs [B, *event] and parameters [B, K] to transformed inputs [B, *event] by torch
        operations that are differentiable in the parameters; the identity at φ = 0.
    ranges : UniformRange, float or sequence of float
        The ranges of the parameters; or their lower ends, if `high` is given.
    high : float or sequence of float, optional
        The upper ends.
    names : sequence of str, optional
        Names of the parameters, for descriptions.

    Raises
    ------
    InputError
        If ranges or names are of the wrong kind or number.

    Examples
    --------
    Series [B, T] that are louder or softer:

    >>> import torch
    >>> from orbitgp import FunctionOrbit
    >>> def louder(x, gain):
    ...     return x * torch.exp(gain)
    >>> orbit = FunctionOrbit(louder, -0.1, 0.1, names=["gain"])
    >>> orbit.describe()
    'gain −0.1 … +0.1'
    """

    def __init__(
        self,
        function: Callable[[Tensor, Tensor], Tensor],
        ranges: nn.Module | Ends | None = None,
        high: Ends | None = None,
        *,
        names: Sequence[str] | None = None,
    ) -> None:
        super().__init__()
        if ranges is not None and high is not None and not isinstance(ranges, nn.Module):
            ranges, high = UniformRange(ranges, high), None
        if not isinstance(ranges, UniformRange) or high is not None or isinstance(names, str):
            raise InputError(
                "FunctionOrbit takes a function, the two ends of its range or a UniformRange, and "
                'a list of names, as in FunctionOrbit(function, -0.1, 0.1, names=["gain"]); got '
                f"{type(ranges).__name__}, {type(high).__name__} and {type(names).__name__}"
            )
        if not callable(function):
            raise InputError(f"the function of an orbit must be callable; got {function!r:.80}")
        self.function = function
        self.ranges = ranges
        self.noise_size = len(ranges.high)
        self.names = tuple(names or (f"φ{k + 1}" for k in range(self.noise_size)))
        if len(self.names) != self.noise_size or len(set(self.names)) < self.noise_size:
            raise InputError(
                f"{len(self.names)} names for {self.noise_size} parameters, "
                f"{', '.join(self.names)}; give one for each, and no name twice"
            )

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S *event"]:
        """The function applied to each input with each draw of its parameters."""
        inputs = repeat(x, noise.shape[1])
        parameters = self.ranges.rsample(noise).to(x.dtype)
        outputs = self._outputs(inputs, parameters.flatten(0, 1))
        if torch.is_grad_enabled() and self.ranges.learned.any() and not outputs.requires_grad:
            raise InputError(
                "torch cannot differentiate the outcome of the orbit's function in its parameters, "
                "so the range cannot be learned; use torch operations throughout, or "
                "freeze the range with learn_low=False, learn_high=False"
            )
        return outputs.unflatten(0, noise.shape[:2])

    def _outputs(self, inputs: Tensor, parameters: Tensor) -> Tensor:
        """What the function makes of them; its own errors are raised as bad input."""
        try:
            outputs = self.function(inputs, parameters)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise InputError(
                f"the orbit's function failed for inputs {list(inputs.shape)} and parameters "
                f"{list(parameters.shape)} ({type(error).__name__}: {error}); it must take "
                "any number of inputs at once, by torch operations"
            ) from error
        if not isinstance(outputs, Tensor) or outputs.shape != inputs.shape:
            given = list(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
            raise InputError(
                f"the orbit's function turned inputs {list(inputs.shape)} into {given}; it takes "
                f"inputs [B, *event] with parameters [B, {self.noise_size}], and must return a "
                "tensor and keep the shape"
            )
        return outputs

    @torch.no_grad()
    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Refuse a function that is not the identity at 0, or does not depend on a parameter."""
        zeros = x.new_zeros(len(x), self.noise_size)
        same = self._outputs(x.clone(), zeros.clone())
        if (same - x).abs().amax() > TOLERANCE * x.abs().amax():
            raise InputError(
                "the orbit's function changes inputs where all its parameters are 0; it must be "
                "the identity there, as x * torch.exp(gain) is and x * gain is not"
            )
        widest = torch.maximum(self.ranges.high, -self.ranges.low).to(x)
        for place, name in enumerate(self.names):
            parameters = zeros.clone()
            parameters[:, place] = widest[place]
            if widest[place] > 0 and torch.equal(self._outputs(x.clone(), parameters), same):
                raise InputError(
                    f"the orbit's function does not depend on its parameter {name} (column {place} "
                    f"of [B, {self.noise_size}]); use it, or leave it out of the range"
                )

    def describe(self) -> str:
        """In words."""
        return ", ".join(map(_words, self.learned_ranges()))

    def learned_ranges(self) -> tuple[Range, ...]:
        """By the names given, in the unit of the function's parameters."""
        ranges = self.ranges
        ends = ranges.low.tolist(), ranges.high.tolist(), ranges.identified.tolist()
        each = zip(self.names, *ends, strict=True)
        return tuple(Range(name, "", 0, *own) for name, *own in each)


def _words(found: Range) -> str:
    low, high = (f"{end:+.3g}".replace("-", "−") for end in (found.low, found.high))
    return f"{found.name} {low} … {high}{found.remark}"
