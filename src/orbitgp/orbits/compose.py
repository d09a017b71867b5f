"""One orbit after another."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orbitgp.errors import InputError
from orbitgp.orbits.base import FiniteOrbit, Orbit
from orbitgp.orbits.ranges import Range

MAX_FINITE_SIZE = 2**24
"""Beyond this a point's number is no longer exact in float32, and repeats are rare anyway."""

FEWEST = 4
"""Draws of the other parts, at least, if all points of finite parts are to be taken for each."""


def compose(*orbits: Orbit) -> Orbit:
    """Apply orbits in turn, the first one first.

    Parameters
    ----------
    *orbits : Orbit
        Two or more. A composition among them is replaced by its own parts, in order.

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
    parts = flattened(orbits)
    finite = [part for part in parts if isinstance(part, FiniteOrbit)]
    if len(finite) < len(parts) or math.prod(part.size for part in finite) > MAX_FINITE_SIZE:
        return Composition(parts)
    return FiniteComposition(finite)


def flattened(orbits: Iterable[Orbit]) -> list[Orbit]:
    """Return the orbits in order, each composition replaced by its own parts."""
    return [part for orbit in orbits for part in parts_of(orbit)]


def parts_of(orbit: Orbit) -> list[Orbit]:
    """Return the parts of a composition in order, or any other orbit alone."""
    if not isinstance(orbit, Composition | FiniteComposition):
        return [orbit]
    return [part for part in orbit.orbits if isinstance(part, Orbit)]


class Composition(Orbit):
    """x_a drawn by one orbit after another: each draw of one is moved once by the next.

    No part is a composition itself: a nested one is replaced by its parts.
    """

    def __init__(self, orbits: Sequence[Orbit]) -> None:
        super().__init__()
        parts = flattened(orbits)
        self.orbits = nn.ModuleList(parts)
        self.noise_size = sum(part.noise_size for part in parts)
        self.needs_images = any(part.needs_images for part in parts)
        finite = [part for part in parts if isinstance(part, FiniteOrbit)]
        self.num_points = math.prod(int(part.size) for part in finite)

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

        return torch.cat([draw(part) for part in parts_of(self)], -1)

    def shared_noise(
        self, num_samples: int, *, generator: torch.Generator
    ) -> Float[Tensor, "1 S K"]:
        """Return noise that is balanced over all coordinates of all parts.

        If S is a multiple of the P points of finite parts, each of these points is taken S/P
        times. With four times as many draws or more, as after `num_shared`, all P points share
        each of S/P draws of the others, so an average is invariant to a group exactly. Otherwise
        each finite part is balanced by itself.
        """
        points = self.num_points
        whole = num_samples % points == 0
        copies = points if whole and num_samples >= FEWEST * points else 1
        noise = super().shared_noise(num_samples // copies, generator=generator)
        noise = noise.repeat_interleave(copies, 1)
        finite = [pair for pair in self._with_noise(noise) if isinstance(pair[0], FiniteOrbit)]
        parts, columns = [part for part, _ in finite], [own for _, own in finite]
        if not whole:
            indices = [own * part.size for part, own in finite]
        elif copies > 1 or not finite:
            indices = _digits(torch.arange(num_samples).view(1, -1, 1), parts)
        else:  # one stratified coordinate numbers the points of all finite parts together
            indices = _digits((columns[0] * points).long(), parts)
        for own, index in zip(columns, indices, strict=True):
            own.copy_(index.floor())
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
        for part in parts_of(self):
            part.check(x)

    def measured_in(self, unit: float) -> None:
        """Each part by itself."""
        for part in parts_of(self):
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
        sizes = [part.noise_size for part in parts_of(self)]
        return list(zip(parts_of(self), noise.split(sizes, -1), strict=True))

    def describe(self) -> str:
        """Return it in words, with numbers of parts that have a range of the same name."""
        return _words(self)

    def learned_ranges(self) -> tuple[Range, ...]:
        """Return the ranges of all parts, in order."""
        return _all_ranges(parts_of(self))


class FiniteComposition(FiniteOrbit):
    """Every point of one finite orbit moved to every point of the next: P = P₁ P₂ …

    No part is a composition itself: a nested one is replaced by its parts.
    """

    def __init__(self, orbits: Sequence[FiniteOrbit]) -> None:
        super().__init__()
        parts = flattened(orbits)
        self.orbits = nn.ModuleList(parts)
        self.size = math.prod(part.size for part in parts)
        self.needs_images = any(part.needs_images for part in parts)

    def act(
        self, x: Float[Tensor, "N *event"], index: Int[Tensor, "N S"]
    ) -> Float[Tensor, "N S *event"]:
        """The number of a point, written in mixed base P₁, P₂, …, numbers a point of each part."""
        parts = parts_of(self)
        digits = [digit.unsqueeze(-1).float() for digit in _digits(index, parts)]
        return _in_turn(parts, x, digits)

    def describe(self) -> str:
        """Return it in words, with numbers of parts that have a range of the same name."""
        return _words(self)

    def learned_ranges(self) -> tuple[Range, ...]:
        """Return the ranges of all parts, in order."""
        return _all_ranges(parts_of(self))


def _all_ranges(parts: Sequence[Orbit]) -> tuple[Range, ...]:
    """Return the ranges of all parts; ranges with the same name differ by their part."""
    ranges = [part.learned_ranges() for part in parts]
    counts = Counter(name for own in ranges for name in {found.name for found in own})
    return tuple(
        replace(found, part=place) if counts[found.name] > 1 else found
        for place, own in enumerate(ranges, 1)
        for found in own
    )


def _words(composition: Composition | FiniteComposition) -> str:
    repeated = {found.part for found in composition.learned_ranges()}
    parts = enumerate(parts_of(composition), 1)
    return ", then ".join(
        f"part {place}: {part.describe()}" if place in repeated else part.describe()
        for place, part in parts
    )


def _digits(number: Int[Tensor, "*B"], parts: Sequence[Orbit]) -> list[Int[Tensor, "*B"]]:
    """Return the digits of a number in the mixed base P₁, P₂, …, the first one first."""
    digits = []
    for part in parts:
        digits.append(number % int(part.size))
        number = number // int(part.size)
    return digits


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
