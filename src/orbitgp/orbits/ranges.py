"""Learnable uniform distributions around the identity: φ ~ Unif(low, high), low ≤ 0 ≤ high.

What they have learned, as people speak of it, is a `Range`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import softplus

from orbitgp.errors import InputError
from orbitgp.filters import inverse_softplus

Ends = float | Sequence[float]
Flags = bool | Sequence[bool]


@dataclass(frozen=True)
class Range:
    """A range of one parameter of a transformation, in the unit that people use.

    Parameters
    ----------
    name : str
        Of the parameter, such as "rotation".
    unit : str
        Of both ends, such as "°"; empty for a number without a unit.
    part : int
        The place of its orbit in a composition, from 1 on, if several orbits of the composition
        have a range of this name; 0 where there is only one.
    low, high : float
        The ends.
    identified : bool, default=True
        Whether the evidence depends on the range; otherwise its width means nothing.
    logarithmic : bool, default=False
        Whether the parameter is a factor, which changes nothing where it is 1.

    See Also
    --------
    Orbit.learned_ranges : The ranges of an orbit.

    Examples
    --------
    >>> from orbitgp import Rotation, compose
    >>> first, second = compose(Rotation(-0.1, 0.1), Rotation(-0.2, 0.2)).learned_ranges()
    >>> second.name, second.unit, second.part, round(second.high, 1)
    ('rotation', '°', 2, 11.5)
    >>> second.title
    'rotation of part 2 (°)'
    """

    name: str
    unit: str
    part: int
    low: float
    high: float
    identified: bool = True
    logarithmic: bool = False

    @property
    def key(self) -> tuple[str, int]:
        """What tells this range from the others of its orbit."""
        return self.name, self.part

    @property
    def words(self) -> str:
        """The name, with the part where several have a range of this name."""
        return f"{self.name} of part {self.part}" if self.part else self.name

    @property
    def title(self) -> str:
        """The same with its unit."""
        return f"{self.words} ({self.unit})" if self.unit else self.words

    @property
    def remark(self) -> str:
        """What words about the range end with, if its width means nothing."""
        return "" if self.identified else " (not identified)"

    @property
    def neutral(self) -> float:
        """The value of the parameter that changes nothing."""
        return 1.0 if self.logarithmic else 0.0


def ranges_from(records: Sequence[Mapping[str, Any]]) -> tuple[Range, ...]:
    """Return the ranges that JSON holds, or raise a TypeError if it holds something else."""
    found = tuple(Range(**record) for record in records)
    for own in found:
        numbers, flags = (own.low, own.high), (own.identified, own.logarithmic)
        right = isinstance(own.name, str) and isinstance(own.unit, str)
        right = right and isinstance(own.part, int)
        right = right and all(isinstance(number, int | float) for number in numbers)
        if not right or not all(isinstance(flag, bool) for flag in flags):
            raise TypeError(f"a range is {own!r:.80}")
    return found


class UniformRange(nn.Module):
    """K independent parameters, uniform between learnable ends around the identity, 0.

    The ends are ordered by construction, low ≤ 0 ≤ high. A transformation common to all inputs is
    no invariance, and an isotropic kernel cannot see it: only the width of a range is identified.
    So ends that start as mirror images are tied, and learned as one number.

    Parameters
    ----------
    low, high : float or sequence of float
        Where the ends start.
    learn_low, learn_high : bool or sequence of bool, default=True
        Which ends are learned.
    symmetric : bool, optional
        Whether both ends are tied; False frees them, as in the paper.
    limit : float or sequence of float, default=inf
        The largest distance of an end from 0.
    prior : torch.distributions.Distribution, optional
        Distribution of the widths that are learned.

    Raises
    ------
    InputError
        If the ends do not contain 0, exceed the limit, or start at exactly 0 though learned.

    Examples
    --------
    >>> from orbitgp import UniformRange
    >>> ranges = UniformRange(-0.1, 0.2)
    >>> round(ranges.low.item(), 6), round(ranges.high.item(), 6)
    (-0.1, 0.2)
    """

    learned: Bool[Tensor, "E K"]
    frozen: Float[Tensor, "E K"]
    limit: Float[Tensor, "K"]
    identified: Bool[Tensor, "K"]

    def __init__(
        self,
        low: Ends,
        high: Ends,
        *,
        learn_low: Flags = True,
        learn_high: Flags = True,
        symmetric: bool | None = None,
        limit: Ends = math.inf,
        prior: Distribution | None = None,
    ) -> None:
        super().__init__()
        counts = {len(ends) for ends in (low, high) if isinstance(ends, Sequence)}
        if len(counts) > 1:
            raise InputError(
                f"a range needs as many lower as upper ends; got low={low!r:.60}, high={high!r:.60}"
            )
        lower, upper = _vector(low), _vector(high)
        size = max(len(lower), len(upper))
        lower, upper = _expand(lower, size, "low"), _expand(upper, size, "high")
        flags = {"learn_low": learn_low, "learn_high": learn_high}
        masks = [_expand(torch.as_tensor(f).reshape(-1), size, name) for name, f in flags.items()]
        if symmetric is None:
            symmetric = torch.equal(-lower, upper) and torch.equal(*masks)
        most = _expand(_vector(limit), size, "limit")
        _check_ends(lower, upper, symmetric, most)
        widths = torch.stack([upper] if symmetric else [-lower, upper])
        learned = torch.stack([masks[0] & masks[1]] if symmetric else masks)
        if ((widths == 0) & learned).any():
            raise InputError(
                "an end of a range that starts at exactly 0 cannot be learned, since its gradient "
                "is 0 there; start at a small value such as 0.01, or freeze it with "
                "learn_low=False or learn_high=False"
            )
        # a frozen end is no part of the parameter's meaning, so no optimiser can move it
        start = torch.where(learned, widths, torch.ones_like(widths))
        self.raw = nn.Parameter(inverse_softplus(start), requires_grad=bool(learned.any()))
        self.register_buffer("frozen", widths)
        self.register_buffer("learned", learned)
        self.register_buffer("limit", most)
        # False where a fit found that the evidence hardly changes without this range
        self.register_buffer("identified", torch.ones(size, dtype=torch.bool))
        self.prior = prior

    @property
    def widths(self) -> Float[Tensor, "E K"]:
        """|low| and |high|, each [K]; one row if they are tied."""
        learned = torch.minimum(softplus(self.raw), self.limit)
        return torch.where(self.learned, learned, self.frozen)

    @property
    def low(self) -> Float[Tensor, "K"]:
        """The lower ends, φ_min ≤ 0."""
        return -self.widths[0]

    @property
    def high(self) -> Float[Tensor, "K"]:
        """The upper ends, φ_max ≥ 0."""
        return self.widths[-1]

    @property
    def used(self) -> Bool[Tensor, "K"]:
        """Which parameters are not frozen at 0."""
        return ((self.frozen > 0) | self.learned).any(0)

    @torch.no_grad()
    def freeze(self, column: int) -> None:
        """Keep one parameter as it is, frozen, and all others at 0."""
        widths = torch.zeros_like(self.frozen)
        widths[:, column] = self.widths[:, column]
        self.frozen.copy_(widths)
        self.learned.zero_()

    def assign_widths(self, widths: Float[Tensor, "E K"]) -> None:
        """Take these widths for the ends that are learned."""
        with torch.no_grad():
            raw = inverse_softplus(torch.minimum(widths.to(self.raw), self.limit))
            self.raw.copy_(torch.where(self.learned, raw, self.raw))

    def rsample(self, uniform: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch K"]:
        """φ = low + (high − low) u for u ~ Unif(0, 1): the reparameterised draw."""
        widths = self.widths.to(uniform.device)
        return (widths[0] + widths[-1]) * uniform.to(widths.dtype) - widths[0]

    def log_prior(self) -> Float[Tensor, ""]:
        """Log density of the learned widths under the prior; 0 without one."""
        if self.prior is None:
            return self.raw.new_zeros(())
        return self.prior.log_prob(self.widths[self.learned]).sum()


def _vector(ends: Ends) -> Float[Tensor, "K"]:
    return torch.as_tensor(ends, dtype=torch.get_default_dtype()).reshape(-1)


def _expand(values: Shaped[Tensor, "L"], size: int, name: str) -> Shaped[Tensor, "K"]:
    if len(values) not in (1, size):
        raise InputError(
            f"{name} has {len(values)} entries for {size} parameters; give 1 or {size}"
        )
    return values.expand(size).clone()  # or a file could not be read into it


def _check_ends(low: Tensor, high: Tensor, symmetric: bool, limit: Tensor) -> None:
    given = f"low {_listed(low)}, high {_listed(high)}"
    if not (torch.isfinite(low).all() and torch.isfinite(high).all()):
        raise InputError(f"range ends must be finite; got {given}")
    if (low > 0).any() or (high < 0).any():
        raise InputError(f"a range must contain the identity, 0; got {given}: give low ≤ 0 ≤ high")
    if (torch.maximum(-low, high) > limit * (1 + 1e-6)).any():
        raise InputError(f"a range must stay within ±{_listed(limit)}; got {given}")
    if symmetric and not torch.equal(-low, high):
        raise InputError(f"a symmetric range needs low = −high; got {given}")


def _listed(ends: Tensor) -> str:
    return "[" + ", ".join(f"{end:g}" for end in ends.tolist()) + "]"
