"""Uphill on a grid, to the place that no neighbour is higher than."""

import functools
import itertools
from collections.abc import Callable


def highest(
    score: Callable[[tuple[int, ...]], float], start: tuple[int, ...], sizes: tuple[int, ...]
) -> tuple[int, ...]:
    """The place on a grid that no neighbour is higher than, uphill from the start."""
    score, place, before = functools.cache(score), start, None
    ways = list(itertools.product((0, 1, -1), repeat=len(sizes)))
    while place != before:
        before = place
        for way in ways:
            other = _moved(place, way)
            while _within(other, sizes) and score(other) > score(place):
                place, other = other, _moved(other, way)
    return place


def _moved(place: tuple[int, ...], way: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip(place, way, strict=True))


def _within(place: tuple[int, ...], sizes: tuple[int, ...]) -> bool:
    return all(0 <= at < size for at, size in zip(place, sizes, strict=True))
