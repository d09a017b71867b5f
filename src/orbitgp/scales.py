"""The variance of a kernel and of the noise, and the evidence that data have with them."""

import math
from dataclasses import dataclass

from orbitgp.likelihoods.gaussian import NOISE_FLOOR


@dataclass(frozen=True)
class Scales:
    """r = v/σ² for the kernel as it is, σ², and the evidence with them."""

    ratio: float
    noise: float
    evidence: float


def scales_at(quadratic: float, log_volume: float, shape: tuple[int, int], ratio: float) -> Scales:
    """The best σ² for one r, from tr YᵀA⁻¹Y and log |A| of A = r K + I and targets Y [N, C].

    log p(Y) = −½ N C log 2πσ² − tr YᵀA⁻¹Y / 2σ² − ½ C log |A|,   σ² = tr YᵀA⁻¹Y / NC.
    """
    size, num_outputs = shape
    count = size * num_outputs
    noise = max(quadratic / count, 2 * NOISE_FLOOR)
    fit = count * math.log(2 * math.pi * noise) + quadratic / noise
    return Scales(ratio, noise, -0.5 * (fit + num_outputs * log_volume))
