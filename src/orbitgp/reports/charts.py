"""Charts as inline SVG that keeps its size of type at any width.

The plot itself fills its SVG, in per cent; labels hang over its edges, where the style sheet leaves
a margin. Only curves are stretched, by a view box, and their strokes are not. A drawing is Markup,
which templates do not escape: it holds numbers, and words that were escaped here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from orbitgp.reports.words import number

Point = tuple[float, float]
NAMES_APART = 0.075
"""Of the height of a plot, between the middles of two words."""

TICKS_APART = 0.25
"""Of the width, where numbers of inputs are marked."""


@dataclass(frozen=True)
class Axis:
    """A range of values with marked ones among them."""

    low: float
    high: float
    ticks: tuple[float, ...]
    label: str
    decimals: int
    scale: float = 1.0
    """What a value is multiplied by when it is written."""
    doubles: bool = False
    """Whether values are logarithms to base 2, of which the numbers are written."""

    def place(self, value: float) -> float:
        """Per cent of the way."""
        return 100 * (value - self.low) / (self.high - self.low)

    def text(self, value: float) -> str:
        """A tick in words."""
        return number(2**value if self.doubles else value * self.scale, self.decimals)


def axis_of(
    values: Iterable[float], label: str, *, margin: float = 0.06, count: int = 4
) -> Axis | None:
    """An axis that shows all finite values, with about `count` round ticks; none without any."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return None
    low, high = min(finite), max(finite)
    # a single value, or values that differ by rounding, still need some room
    room = (high - low) * margin
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-30):
        room = max(abs(high) * 0.1, 1e-3)
    low, high = low - room, high + room
    if not math.isfinite(high - low):
        return None
    step = _round_step((high - low) / count)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    decimals += step * 10**decimals % 1 > 1e-6  # steps of 2.5
    return Axis(low, high, tuple(k * step for k in range(first, last + 1)), label, decimals)


def fractions(label: str) -> Axis:
    """From 0 to 1, written as per cent."""
    return Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), label, 0, scale=100)


def sizes_axis(sizes: Sequence[int], label: str) -> Axis:
    """Logarithms of numbers, as many marked as a narrow screen has room for, and the last one."""
    places = [math.log2(size) for size in sorted(set(sizes))]
    low, high = places[0], max(places[-1], places[0] + 0.1)
    ticks = [places[-1]]
    for place in reversed(places):
        if ticks[0] - place >= TICKS_APART * (high - low):
            ticks.insert(0, place)
    return Axis(low, high, tuple(ticks), label, 0, doubles=True)


def steps_axis(steps: Sequence[int], count: int = 4) -> Axis:
    """From the first step to the last."""
    low, high = (min(steps), max(steps)) if steps else (0, 1)
    high = max(high, low + 1)
    step = max(1.0, _round_step((high - low) / count))
    ticks = range(math.ceil(low / step), math.floor(high / step) + 1)
    return Axis(low, high, tuple(k * step for k in ticks), "step", 0)


def plot(
    x: Axis, y: Axis, *, label: str, shape: str = "wide", curves: str = "", marks: str = ""
) -> Markup:
    """Axes with a grid, curves and marks; `shape` is a class of the style sheet."""
    grid = "".join(
        f'<line class="grid" x1="0" x2="100%" y1="{_up(y, t)}" y2="{_up(y, t)}"/>'
        f'<text x="0" y="{_up(y, t)}" dx="-8" dy=".32em" text-anchor="end">{y.text(t)}</text>'
        for t in y.ticks
    )
    below = "".join(
        f'<text x="{_right(x, t)}" y="100%" dy="18" text-anchor="middle">{x.text(t)}</text>'
        for t in x.ticks
    )
    return Markup(
        f'<svg class="plot {shape}" role="img" aria-label="{escape(label)}">'
        f'{grid}{below}<line class="axis" x1="0" x2="100%" y1="100%" y2="100%"/>'
        f'<text class="name" x="0" y="0" dy="-14">{escape(y.label)}</text>'
        f'<text class="name" x="100%" y="100%" dy="34" text-anchor="end">{escape(x.label)}</text>'
        '<svg width="100%" height="100%" viewBox="0 0 100 100" preserveAspectRatio="none" '
        f'overflow="visible">{curves}</svg>{marks}</svg>'
    )


def curve(points: Sequence[Point], x: Axis, y: Axis, *, colour: str = "line") -> Markup:
    """Straight lines from point to point; what is not finite leaves a gap."""
    return _drawn(
        f'<polyline class="{colour}" points="{_path(piece, x, y)}"/>'
        for piece in _runs(points)
        if len(piece) > 1
    )


def band(
    lower: Sequence[Point], upper: Sequence[Point], x: Axis, y: Axis, *, colour: str = "band"
) -> Markup:
    """The area between two curves at the same places."""
    pairs = [(a, b) for a, b in zip(lower, upper, strict=True) if all(map(math.isfinite, (*a, *b)))]
    if len(pairs) < 2:
        return Markup()
    around = [a for a, _ in pairs] + [b for _, b in reversed(pairs)]
    return Markup(f'<polygon class="{colour}" points="{_path(around, x, y)}"/>')


def straight(start: Point, stop: Point, x: Axis, y: Axis, *, colour: str = "guide") -> Markup:
    """One line, if both of its ends are finite."""
    if not all(map(math.isfinite, (*start, *stop))):
        return Markup()
    return Markup(
        f'<line class="{colour}" x1="{_right(x, start[0])}" y1="{_up(y, start[1])}" '
        f'x2="{_right(x, stop[0])}" y2="{_up(y, stop[1])}"/>'
    )


def dots(
    points: Sequence[Point], x: Axis, y: Axis, *, radius: float = 3, colour: str = "dot"
) -> Markup:
    """A disc at each point that is finite."""
    return _drawn(
        f'<circle class="{colour}" cx="{_right(x, a)}" cy="{_up(y, b)}" r="{radius:g}"/>'
        for a, b in points
        if math.isfinite(a) and math.isfinite(b)
    )


def bars(heights: Sequence[float], y: Axis) -> Markup:
    """A histogram with bins of equal width over the whole width."""
    width = 100 / max(len(heights), 1)
    return _drawn(
        f'<rect class="bar" x="{place * width + 0.4:.2f}%" y="{_up(y, height)}" '
        f'width="{width - 0.8:.2f}%" height="{y.place(height):.2f}%"/>'
        for place, height in enumerate(heights)
        if height > 0
    )


def level(value: float, error: float, x: Axis) -> Markup:
    """A bar that lies, from 0 to a value, with an error bar; the words beside it say the rest."""
    start, stop, none = (x.place(v) for v in (min(value, 0.0), max(value, 0.0), 0.0))
    bar = f'<rect class="bar" x="{start:.2f}%" y="20%" width="{stop - start:.2f}%" height="60%"/>'
    ends = [x.place(value - error), x.place(value + error)]
    line = f'<line class="error" x1="{ends[0]:.2f}%" x2="{ends[1]:.2f}%" y1="50%" y2="50%"/>'
    return _drawn(
        [
            '<svg class="level" aria-hidden="true">',
            bar if math.isfinite(value) else "",
            line if all(map(math.isfinite, ends)) else "",
            f'<line class="axis" x1="{none:.2f}%" x2="{none:.2f}%" y1="0" y2="100%"/></svg>',
        ]
    )


def note(text: str, at: Point, x: Axis, y: Axis, *, dx: int = 8, dy: int = 0) -> Markup:
    """A word beside a point."""
    anchor = "start" if dx >= 0 else "end"
    return Markup(
        f'<text class="note" x="{_right(x, at[0])}" y="{_up(y, at[1])}" dx="{dx}" '
        f'dy="{dy + 4}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def names_beside(points: Sequence[tuple[str, float]], x: Axis, y: Axis) -> Markup:
    """A word right of the plot for each height, moved so far that none is on another."""
    finite = sorted((value, name) for name, value in points if math.isfinite(value))
    gap = NAMES_APART * (y.high - y.low)
    heights: list[float] = []
    for value, _ in finite:  # up from the axis
        heights.append(max(value, heights[-1] + gap if heights else y.low))
    ceiling = y.high
    for place in reversed(range(len(heights))):  # down from the top
        heights[place] = min(heights[place], ceiling)
        ceiling = heights[place] - gap
    pairs = zip(finite, heights, strict=True)
    return Markup().join(note(name, (x.high, height), x, y) for (_, name), height in pairs)


def sparkline(values: Sequence[float], low: float, high: float) -> Markup:
    """A series without axes, between two values; at most some hundred points of it."""
    spread = high - low if high > low else 1.0
    every = max(1, len(values) // 200)
    shown = [value for value in values[::every] if math.isfinite(value)]
    across = 100 / max(len(shown) - 1, 1)
    points = " ".join(
        f"{place * across:.1f},{2 + 36 * (high - value) / spread:.1f}"
        for place, value in enumerate(shown)
    )
    return Markup(
        '<svg class="spark" viewBox="0 0 100 40" preserveAspectRatio="none" aria-hidden="true">'
        f'<polyline class="line" points="{points}"/></svg>'
    )


def _drawn(marks: Iterable[str]) -> Markup:
    return Markup("".join(marks))


def _right(x: Axis, value: float) -> str:
    return f"{x.place(value):.2f}%"


def _up(y: Axis, value: float) -> str:
    return f"{100 - y.place(value):.2f}%"


def _path(points: Sequence[Point], x: Axis, y: Axis) -> str:
    return " ".join(f"{x.place(a):.2f},{100 - y.place(b):.2f}" for a, b in points)


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """The stretches of finite points."""
    runs: list[list[Point]] = [[]]
    for point in points:
        if math.isfinite(point[0]) and math.isfinite(point[1]):
            runs[-1].append(point)
        elif runs[-1]:
            runs.append([])
    return runs


def _round_step(step: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(k * power for k in (1, 2, 2.5, 5, 10) if k * power >= step * (1 - 1e-9))
