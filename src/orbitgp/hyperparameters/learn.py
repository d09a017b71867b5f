"""Hyperparameters with the most exact evidence: a scan over scales, then quasi-Newton steps.

Ranges have several optima, and gradients do not lead from one to another: they find the way from
wide ranges to narrow ones, but are proportional to the square of a narrow range. So a scan tries
common factors of all ranges over several orders of magnitude, wherever they start, and L-BFGS goes
on from the best of these. A second scan tries each range without the others, and those together
that are worth it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from orbitgp.hyperparameters.parameters import NARROWEST, Parameters
from orbitgp.hyperparameters.subset_evidence import Subset, best_scales, scales_with_gradient
from orbitgp.inference.exact import climbed_ratio, evidence_at
from orbitgp.kernels import average_covariances_among, average_gradients
from orbitgp.likelihoods.gaussian import Scales
from orbitgp.orbit_model import OrbitModel

COMMON = tuple(2.0**k for k in (*range(-8, 0), *range(1, 9)))
"""Factors of all ranges that a scan tries."""

ALONE = (2.0, 8.0, math.inf)
"""Factors of a range that is tried without the others; ∞ stands for its limit."""

WORTHWHILE = 1.0
"""Nats that one more range must add to the evidence of the few data of a scan."""

LENGTH_STEP = 0.8
MAX_LENGTH_STEPS = 12

MAX_SPECTRUM = 1200
"""Data up to which all eigenvalues are computed; beyond, a ratio costs a factorisation."""

NOTHING = Scales(1.0, 1.0, -math.inf)
"""Where a transformation leaves the range of numbers."""

PER_OCTAVE = 12
"""Widths between one and its double that a fine scan tries."""

MAX_WIDER = 1.5
"""The largest factor of all ranges in the last search."""

SAME = 1e-4
"""Points that differ by less than this part of their spread are one point."""

TOLERANCE = 0.02
"""Nats by which the last step of a climb may have gained."""


@dataclass
class Landscape:
    """The evidence of a subset as a function of the hyperparameters z.

    It moves the model: after a call the model has the z that was asked for last.
    """

    model: OrbitModel
    parameters: Parameters
    subset: Subset
    max_ratio: float
    ratio: float = 100.0
    """Where the search for the best ratio starts, if there are many data."""
    _last: tuple[bytes, Tensor] | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """n."""
        return len(self.subset.x)

    def at(self, z: np.ndarray) -> Scales:
        """The evidence, with the best variance and noise."""
        among = self.covariance(z)
        return NOTHING if among is None else self.scales(among)

    def covariance(self, z: np.ndarray) -> Float[Tensor, "N N"] | None:
        """Of the averages of g, without variance; None if a number leaves the range of numbers."""
        self.parameters.assign(z)
        points = _without_copies(self._points(z))
        if not torch.isfinite(points).all():
            return None
        among = average_covariances_among(self.model.kernel, points)
        return among if torch.isfinite(among).all() else None  # squares of large numbers

    def scales(self, among: Float[Tensor, "N N"]) -> Scales:
        """The best variance and noise for this covariance, and the evidence."""
        targets = self.subset.targets
        if self.size <= MAX_SPECTRUM:
            return best_scales(among, targets, self.max_ratio)
        largest = self.max_ratio / among.diagonal().mean().item()
        found = climbed_ratio(lambda r: evidence_at(among, targets, r), self.ratio, largest)
        self.ratio = found.ratio
        return found

    def with_gradient(self, z: np.ndarray) -> tuple[Scales, np.ndarray]:
        """The same, and its gradient."""
        self.parameters.assign(z)
        points, raw, kernel = self._points(z), self.parameters.raw, self.model.kernel
        if not torch.isfinite(points).all():
            return NOTHING, np.zeros_like(z)
        among = average_covariances_among(kernel, points)
        if not torch.isfinite(among).all():
            return NOTHING, np.zeros_like(z)
        scales, upstream = scales_with_gradient(among, self.subset.targets, self.max_ratio)
        slopes, of_kernel = average_gradients(kernel, raw, points, upstream)
        of_points = self.subset.gradients(self.model, raw, slopes)
        total = [a + b for a, b in zip(of_kernel, of_points, strict=True)]
        return scales, self.parameters.gradient(total)

    def _points(self, z: np.ndarray) -> Float[Tensor, "N S D"]:
        """Computed anew where anything but a lengthscale has changed."""
        rest = np.delete(z, np.arange(len(z))[self.parameters.lengths]).tobytes()
        if self._last is None or self._last[0] != rest:
            self._last = (rest, self.subset.points(self.model))
        return self._last[1]


def _without_copies(points: Float[Tensor, "N S D"]) -> Float[Tensor, "N R D"]:
    """One draw where all draws are the same, as they are if all ranges are switched off."""
    first = points[:, :1]
    gap = (points - first).abs().amax()
    return first if gap <= SAME * first.std(0, correction=0).amax() else points


def best_length(
    landscape: Landscape, z: np.ndarray, max_steps: int = MAX_LENGTH_STEPS
) -> tuple[np.ndarray, Scales]:
    """The lengthscale with the most evidence uphill from here: shorter, or else longer."""

    def trial(other: np.ndarray, _: Scales) -> Scales:
        return landscape.at(other)

    start, factors = (z, landscape.at(z)), (LENGTH_STEP, 1 / LENGTH_STEP)
    return uphill_length(landscape.parameters, trial, start, factors, max_steps)


def uphill_length(
    parameters: Parameters,
    trial: Callable[[np.ndarray, Scales], Scales],
    start: tuple[np.ndarray, Scales],
    factors: tuple[float, float],
    max_steps: int,
) -> tuple[np.ndarray, Scales]:
    """The best lengthscale in steps of the first factor, or of the second if the first gains none.

    `trial` is given the place to try and the scales of the best one so far.
    """
    best = start
    for factor in factors:
        for _ in range(max_steps if parameters.num_lengths else 0):
            other = best[0].copy()
            other[parameters.lengths] += math.log(factor)
            found = trial(other, best[1])
            if not found.evidence > best[1].evidence:
                break
            best = other, found
        if best is not start:
            break
    return best


def scan(landscape: Landscape, z: np.ndarray) -> tuple[np.ndarray, Scales]:
    """The best of common factors of all ranges, each with the lengthscale that suits it."""
    parameters, best = landscape.parameters, best_length(landscape, z)
    upper = _upper(parameters)
    for factor in COMMON if parameters.num_widths else ():
        other = best[0].copy()
        other[parameters.widths] = z[parameters.widths] + math.log(factor)
        best = _better(best, best_length(landscape, np.minimum(other, upper), 2))
    return best_length(landscape, best[0])


def scan_each(landscape: Landscape, z: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, Scales]:
    """Each range alone, then one after the other while it adds evidence, the most worthwhile first.

    An orbit contains those with fewer transformations: it must not end below any of them. Widths
    are multiples of those of `start`.
    """
    parameters, upper = landscape.parameters, _upper(landscape.parameters)
    off = z.copy()
    off[parameters.widths] = math.log(NARROWEST)
    best = best_length(landscape, off)
    found = []
    for place in range(parameters.num_widths):
        for factor in ALONE:
            width = min(start[place] + math.log(factor), upper[place])
            if math.isfinite(width):
                evidence = landscape.at(_with(best[0], place, width)).evidence
                found.append((evidence, place, width))
    alone = {place: (evidence, width) for evidence, place, width in sorted(found)}
    for place, (_, width) in sorted(alone.items(), key=lambda item: -item[1][0]):
        other = _with(best[0], place, width)
        if landscape.at(other).evidence > best[1].evidence + WORTHWHILE:
            best = best_length(landscape, other, 2)
    return best


def _with(z: np.ndarray, place: int, value: float) -> np.ndarray:
    other = z.copy()
    other[place] = value
    return other


def _upper(parameters: Parameters) -> np.ndarray:
    return np.array([high for _, high in parameters.bounds])


def fine_scan(landscape: Landscape, z: np.ndarray) -> tuple[np.ndarray, Scales]:
    """The best of closely spaced widths within an octave, where there is one range.

    With few draws, and where transformed inputs are interpolated, the evidence has many small
    optima. The widths that are tried do not depend on z, so starts that come near end alike.
    """
    parameters, best = landscape.parameters, (z, landscape.at(z))
    step = math.log(2) / PER_OCTAVE
    middle = round(z[0] / step) if parameters.num_widths == 1 else 0
    places = range(middle - PER_OCTAVE, middle + PER_OCTAVE + 1)
    for place in places if parameters.num_widths == 1 else ():
        other = z.copy()
        other[0] = min(place * step, parameters.bounds[0][1])
        best = _better(best, best_length(landscape, other, 1))
    return best


def climb(
    landscape: Landscape,
    z: np.ndarray,
    known: np.ndarray | None = None,
    *,
    max_steps: int,
    on_step: Callable[[np.ndarray, Scales], None],
) -> tuple[np.ndarray, Scales]:
    """L-BFGS from here, within the bounds; the best place that was seen, or one that was known."""
    places = [z] if known is None else [z, known]
    trials = [(place, landscape.at(place)) for place in places]
    size, best = landscape.size, max(trials, key=lambda trial: trial[1].evidence)
    if not len(z) or max_steps < 1:
        return best
    tolerance = TOLERANCE / max(abs(best[1].evidence), size)  # SciPy's is a relative one

    def objective(place: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal best
        scales, gradient = landscape.with_gradient(place)
        best = _better(best, (place.copy(), scales))
        # a place without evidence is far below all others, so that a line search turns back
        value = -scales.evidence / size if math.isfinite(scales.evidence) else 1e6
        return value, -gradient / size

    minimize(
        objective,
        z,
        jac=True,
        method="L-BFGS-B",
        bounds=landscape.parameters.bounds,
        # line searches may waste four evaluations
        options={"maxiter": max_steps, "maxfun": max_steps + 4, "ftol": tolerance},
        callback=lambda _: on_step(*best),
    )
    return best


def _better(
    first: tuple[np.ndarray, Scales], second: tuple[np.ndarray, Scales]
) -> tuple[np.ndarray, Scales]:
    return second if second[1].evidence > first[1].evidence else first


def search_width(landscape: Landscape, z: np.ndarray) -> tuple[np.ndarray, Scales]:
    """The best k × ranges, k from 0 to 1½, each with the lengthscale that suits it.

    k = 0 is the model without these invariances, so no orbit ends with less evidence than that.
    """
    widths, start = landscape.parameters.widths, z
    upper = _upper(landscape.parameters)
    best = best_length(landscape, z)
    if not landscape.parameters.num_widths:
        return best
    for factor, last in ((LENGTH_STEP, 0.1), (1 / LENGTH_STEP, MAX_WIDER)):
        k, moved = 1.0, False
        while k != last:
            k = min(k * factor, last) if factor > 1 else max(k * factor, last)
            other = best[0].copy()
            other[widths] = start[widths] + math.log(k)
            found = best_length(landscape, np.minimum(other, upper), 1)
            if not found[1].evidence > best[1].evidence:
                break
            best, moved = found, True
        if moved:
            break
    off = best[0].copy()
    off[widths] = math.log(NARROWEST)
    return _better(best, best_length(landscape, off))


def lost_without(landscape: Landscape, z: np.ndarray) -> np.ndarray:
    """The evidence that is lost, in nats, if a range is switched off, for each range of z."""
    whole, off = landscape.at(z).evidence, math.log(NARROWEST)
    lost = np.zeros(landscape.parameters.num_widths)
    for place in np.flatnonzero(z[: len(lost)] > off).tolist():
        lost[place] = whole - landscape.at(_with(z, place, off)).evidence
    landscape.parameters.assign(z)
    return lost
