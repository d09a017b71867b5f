"""Learnable uniform distributions around the identity: φ ~ Unif(low, high), low ≤ 0 ≤ high."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.nn.functional import softplus

from orbitgp.errors import InputError

Ends = float | Sequence[float]
Flags = bool | Sequence[bool]


def inverse_softplus(value: Float[Tensor, "*K"]) -> Float[Tensor, "*K"]:
    """The raw parameter whose softplus is `value`; −∞ for 0."""
    # log(eᵛ − 1) = v + log(1 − e⁻ᵛ)
    return value + torch.log(-torch.expm1(-value))


class UniformRange(nn.Module):
    """K independent φ_k ~ Unif(−softplus(raw_low), +softplus(raw_high)); 0 is the identity.

    The ends are ordered by construction, low ≤ 0 ≤ high, and are learned apart unless `symmetric`
    ties them. `learn_low`, `learn_high` freeze single ends; `prior` is a distribution over the
    widths |low| and |high| of the ends that are learned.
    """

    raw: Tensor
    learned: Bool[Tensor, "E K"]

    def __init__(
        self,
        low: Ends,
        high: Ends,
        *,
        learn_low: Flags = True,
        learn_high: Flags = True,
        symmetric: bool = False,
        prior: Distribution | None = None,
    ) -> None:
        super().__init__()
        lower, upper = torch.broadcast_tensors(_vector(low), _vector(high))
        _check_ends(lower, upper, symmetric)
        widths = torch.stack([upper] if symmetric else [-lower, upper])
        flags = [learn_high] if symmetric else [learn_low, learn_high]
        learned = torch.stack([torch.as_tensor(flag).expand(upper.shape) for flag in flags])
        if ((widths == 0) & learned).any():
            raise InputError(
                "an end of a range that starts at exactly 0 cannot be learned, since its gradient "
                "is 0 there; start at a small value such as 0.01, or freeze it with "
                "learn_low=False or learn_high=False"
            )
        self.raw = nn.Parameter(inverse_softplus(widths))
        self.register_buffer("learned", learned.clone())
        self.prior = prior

    @property
    def widths(self) -> Float[Tensor, "E K"]:
        """|low| and |high|, each [K]; one row if they are tied."""
        return softplus(torch.where(self.learned, self.raw, self.raw.detach()))

    @property
    def low(self) -> Float[Tensor, "K"]:
        """The lower ends, φ_min ≤ 0."""
        return -self.widths[0]

    @property
    def high(self) -> Float[Tensor, "K"]:
        """The upper ends, φ_max ≥ 0."""
        return self.widths[-1]

    def rsample(self, uniform: Float[Tensor, "*batch K"]) -> Float[Tensor, "*batch K"]:
        """φ = low + (high − low) u for u ~ Unif(0, 1): the reparameterised draw."""
        widths = self.widths.to(uniform)
        return (widths[0] + widths[-1]) * uniform - widths[0]

    def log_prior(self) -> Float[Tensor, ""]:
        """Log density of the learned widths under the prior; 0 without one."""
        if self.prior is None:
            return self.raw.new_zeros(())
        log_density = self.prior.log_prob(self.widths)
        return torch.where(self.learned, log_density, torch.zeros_like(log_density)).sum()


def _vector(ends: Ends) -> Float[Tensor, "K"]:
    return torch.as_tensor(ends, dtype=torch.get_default_dtype()).reshape(-1)


def _check_ends(low: Tensor, high: Tensor, symmetric: bool) -> None:
    if not (torch.isfinite(low).all() and torch.isfinite(high).all()):
        raise InputError(f"range ends must be finite; got low={low.tolist()}, high={high.tolist()}")
    if (low > 0).any() or (high < 0).any():
        raise InputError(
            f"a range must contain the identity, 0: got low={low.tolist()}, high={high.tolist()}; "
            "give low ≤ 0 ≤ high"
        )
    if symmetric and not torch.equal(-low, high):
        raise InputError(
            f"a symmetric range needs low = −high; got low={low.tolist()}, high={high.tolist()}"
        )
