"""One orbit after another."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.orbits.base import FiniteOrbit, Orbit

MAX_FINITE_SIZE = 2**24
"""Beyond this a point's number is no longer exact in float32, and repeats are rare anyway."""

FEWEST = 4
"""Draws of the other parts, at least, if all points of finite parts are to be taken for each."""


def compose(*orbits: Orbit) -> Orbit:
    """Apply orbits in turn, the first one first.

    Parameters
    ----------
    *orbits : Orbit
        Two or more.

    Returns
    -------
    Orbit
        A `FiniteOrbit` if all of them are, and the number of points is at most 2²⁴.

    Raises
    ------
    InputError
        If there are fewer than two.

    Examples
    --------
    >>> from orbitgp import Mirror, QuarterTurns, compose
    >>> compose(QuarterTurns(), Mirror()).size
    8
    """
    if len(orbits) < 2:
        raise InputError(f"composition takes at least two orbits; got {len(orbits)}")
    others = [orbit for orbit in orbits if not isinstance(orbit, Orbit)]
    if others:
        raise InputError(
            f"composition takes orbits; got {others[0]!r:.80}: make them first, as in "
            "compose(Affine(-0.1, 0.1), Mirror())"
        )
    finite = [orbit for orbit in orbits if isinstance(orbit, FiniteOrbit)]
    if len(finite) < len(orbits) or math.prod(o.size for o in finite) > MAX_FINITE_SIZE:
        return Composition(orbits)
    return FiniteComposition(finite)


class Composition(Orbit):
    """x_a drawn by one orbit after another: each draw of one is moved once by the next."""

    def __init__(self, orbits: Sequence[Orbit]) -> None:
        super().__init__()
        self.orbits = nn.ModuleList(orbits)
        self.noise_size = sum(orbit.noise_size for orbit in orbits)
        self.needs_images = any(orbit.needs_images for orbit in orbits)
        finite = [orbit for orbit in orbits if isinstance(orbit, FiniteOrbit)]
        self.num_points = math.prod(int(orbit.size) for orbit in finite)

    def noise(
        self, num_inputs: int, num_samples: int, *, generator: torch.Generator, group_size: int = 1
    ) -> Float[Tensor, "N S K"]:
        """The noise of all parts side by side."""

        def draw(part: Orbit) -> Tensor:
            if not isinstance(part, FiniteOrbit):
                draws = {"generator": generator, "group_size": group_size}
                return part.noise(num_inputs, num_samples, **draws)
            # one sample for each of N·S rows: finite parts, too, are drawn independently here
            rows = part.noise(num_inputs * num_samples, 1, generator=generator)
            return rows.reshape(num_inputs, num_samples, part.noise_size)

        return torch.cat([draw(part) for part in _parts(self)], -1)

    def shared_noise(
        self, num_samples: int, *, generator: torch.Generator
    ) -> Float[Tensor, "1 S K"]:
        """Balanced over all coordinates of all parts.

        If S is a multiple of the P points of finite parts, as after `num_shared`, all of them are
        taken for each of S/P draws of the others, so an average is invariant to a group exactly.
        Otherwise points may repeat.
        """
        points = self.num_points
        if num_samples % points or num_samples < FEWEST * points:
            points = 1
        noise = super().shared_noise(num_samples // points, generator=generator)
        noise = noise.repeat_interleave(points, 1)
        rest = torch.arange(num_samples) % points
        start = 0
        for part in _parts(self):
            if isinstance(part, FiniteOrbit):
                own = noise[..., start]
                own.copy_(rest % part.size if points > 1 else (own * part.size).floor())
                rest = rest // int(part.size)
            start += part.noise_size
        return noise

    def num_shared(self, num_samples: int) -> int:
        """A multiple of the points of finite parts, unless they are many."""
        points = self.num_points
        return num_samples if num_samples < FEWEST * points else num_samples // points * points

    def transform(
        self, x: Float[Tensor, "N *event"], noise: Float[Tensor, "N S K"]
    ) -> Float[Tensor, "N S *event"]:
        """Each part applied to the outcome of the one before."""
        parts, noises = zip(*self._with_noise(noise), strict=True)
        return _in_turn(parts, x, noises)

    def check(self, x: Float[Tensor, "N *event"]) -> None:
        """Each part by itself."""
        for part in _parts(self):
            part.check(x)

    def measured_in(self, unit: float) -> None:
        """Each part by itself."""
        for part in _parts(self):
            part.measured_in(unit)

    def alike(
        self, noise: Float[Tensor, "1 S K"], like: Float[Tensor, "N *event"]
    ) -> Callable[[Float[Tensor, "N *event"]], Float[Tensor, "N S *event"]]:
        """Each part applied to the outcome of the one before."""
        (first, own), *rest = self._with_noise(noise)
        return _chained(first.alike(own, like), [part.each(own, like) for part, own in rest])

    def each(
        self, noise: Float[Tensor, "1 S K"], like: Float[Tensor, "N *event"]
    ) -> Callable[[Float[Tensor, "N S *event"]], Float[Tensor, "N S *event"]]:
        """The same for inputs that have samples already."""
        (first, own), *rest = self._with_noise(noise)
        return _chained(first.each(own, like), [part.each(own, like) for part, own in rest])

    def _with_noise(self, noise: Float[Tensor, "N S K"]) -> list[tuple[Orbit, Tensor]]:
        sizes = [part.noise_size for part in _parts(self)]
        return list(zip(_parts(self), noise.split(sizes, -1), strict=True))

    def describe(self) -> str:
        """In words."""
        return ", then ".join(part.describe() for part in _parts(self))

    def learned_ranges(self) -> dict[str, tuple[float, float]]:
        """Those of all parts."""
        return _all_ranges(_parts(self))

    def unidentified(self) -> list[str]:
        """Those of all parts."""
        names = iter(self.learned_ranges())
        return [
            name
            for part in _parts(self)
            for own, name in zip(part.learned_ranges(), names, strict=False)
            if own in part.unidentified()
        ]


class FiniteComposition(FiniteOrbit):
    """Every point of one finite orbit moved to every point of the next: P = P₁ P₂ …"""

    def __init__(self, orbits: Sequence[FiniteOrbit]) -> None:
        super().__init__()
        self.orbits = nn.ModuleList(orbits)
        self.size = math.prod(orbit.size for orbit in orbits)
        self.needs_images = any(orbit.needs_images for orbit in orbits)

    def act(
        self, x: Float[Tensor, "N *event"], index: Int[Tensor, "N S"]
    ) -> Float[Tensor, "N S *event"]:
        """The number of a point, written in mixed base P₁, P₂, …, numbers a point of each part."""
        digits, rest = [], index
        for part in _parts(self):
            size = int(part.size)
            digits.append((rest % size).unsqueeze(-1).float())
            rest = rest // size
        return _in_turn(_parts(self), x, digits)

    def describe(self) -> str:
        """In words."""
        return ", then ".join(part.describe() for part in _parts(self))

    def learned_ranges(self) -> dict[str, tuple[float, float]]:
        """Those of all parts."""
        return _all_ranges(_parts(self))


def _parts(composition: Composition | FiniteComposition) -> list[Orbit]:
    return [part for part in composition.orbits if isinstance(part, Orbit)]


def _all_ranges(parts: Sequence[Orbit]) -> dict[str, tuple[float, float]]:
    """Side by side; a repeated name is made unique by the position of its part."""
    together: dict[str, tuple[float, float]] = {}
    for place, part in enumerate(parts, 1):
        for name, ends in part.learned_ranges().items():
            together[f"{name}, part {place}" if name in together else name] = ends
    return together


def _chained(
    first: Callable[[Tensor], Tensor], rest: Sequence[Callable[[Tensor], Tensor]]
) -> Callable[[Tensor], Tensor]:
    def transform(x: Tensor) -> Tensor:
        points = first(x)
        for move in rest:
            points = move(points)
        return points

    return transform


def _in_turn(parts: Sequence[Orbit], x: Tensor, noises: Sequence[Tensor]) -> Tensor:
    """Transform by each part in turn, the S samples of one being the inputs of the next."""
    points = parts[0].transform(x, noises[0])
    for part, noise in zip(parts[1:], noises[1:], strict=True):
        moved = part.transform(points.flatten(0, 1), noise.flatten(0, 1).unsqueeze(1))
        points = moved.squeeze(1).unflatten(0, points.shape[:2])
    return points
