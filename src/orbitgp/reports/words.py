"""Numbers and ranges as people write them."""

import math
from collections.abc import Sequence
from dataclasses import replace

from orbitgp.orbits.ranged import symbol
from orbitgp.orbits.ranges import Range

Ends = tuple[float, float]
PERCENT = "\u00a0%"
"""With a space that does not break."""


def number(value: float, decimals: int = 0, *, sign: bool = False) -> str:
    """With thousands apart and a true minus: −12,345.6."""
    if math.isnan(value):
        return "not a number"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:{'+' if sign else ''},.{decimals}f}"
    if not any(digit in text for digit in "123456789"):
        text = text.lstrip("+-")
    return text.replace("-", "−")


def short(value: float, digits: int = 3) -> str:
    """Only the digits that matter."""
    if value == 0 or not math.isfinite(value):
        return number(value)
    if not 1e-4 <= abs(value) < 1e7:
        return f"{value:.{digits - 1}e}".replace("-", "−")
    return number(value, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


def percent(fraction: float, decimals: int = 1) -> str:
    """A fraction as 4.2 %."""
    return number(100 * fraction, decimals) + PERCENT


def plus_minus(error: float) -> str:
    """An error, if there is one: that of an orbit that is enumerated has none."""
    return f"± {number(error, 1)}" if error else ""


def kind_in_words(kind: str) -> str:
    """Of evidence."""
    return "exact" if kind == "exact" else "a lower bound"


def duration(seconds: float) -> str:
    """In the largest units that say enough."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def size(num_bytes: int) -> str:
    """Of a file."""
    if num_bytes < 1000:
        return f"{num_bytes} B"
    for unit, factor in (("kB", 1e3), ("MB", 1e6)):
        if num_bytes < 1000 * factor:
            return f"{num_bytes / factor:.1f} {unit}"
    return f"{num_bytes / 1e9:.1f} GB"


def end(of: Range, value: float) -> str:
    """One end of a range with its unit, as a label."""
    if of.logarithmic:
        return "×" + number(value, 2)
    match symbol(of.unit):
        case "°":
            return number(value, 1, sign=True) + "°"
        case "%":
            return number(value, 1, sign=True) + PERCENT
    return ("+" if value > 0 else "") + short(value, 2)


def phrase(found: Range) -> str:
    """What is done to an input, and how far, as the rest of "when it is …"."""
    return _change(found) + (f" (part {found.part})" if found.part else "")


def _change(found: Range) -> str:
    low, high = found.low, found.high
    near, far = number(abs(low), 1), number(abs(high), 1)
    match found.name, found.unit:
        case "rotation", "°" if low < -175 and high > 175:
            return "turned by any angle"
        case "rotation", "°":
            return f"turned by up to {_both(near, far, '°', 'clockwise', 'counter-clockwise')}"
        case "x-scale", "×":
            return f"scaled to {number(low, 2)} … {number(high, 2)} times its width"
        case "y-scale", "×":
            return f"scaled to {number(low, 2)} … {number(high, 2)} times its height"
        case "shear", "":
            return f"sheared by {end(found, low)} … {end(found, high)}"
        case "x-shift", "% of width":
            words = _both(near, far, f"{PERCENT} of its width", "left", "right")
            return f"shifted by up to {words}"
        case "y-shift", "% of height":
            words = _both(near, far, f"{PERCENT} of its height", "up", "down")
            return f"shifted by up to {words}"
        case "scale of noise", "" if low == high:
            return f"perturbed by noise with standard deviation {short(low)}"
        case "scale of noise", "":
            return f"perturbed by noise with standard deviations {short(low)} … {short(high)}"
    title = replace(found, part=0).title
    return f"changed in {title} by {end(found, low)} … {end(found, high)}"


def _both(near: str, far: str, unit: str, back: str, forth: str) -> str:
    """How far in each of two directions; once, if it is the same."""
    if near == far:
        return f"{near}{unit} either way"
    return f"{near}{unit} {back} and {far}{unit} {forth}"


def phrases(ranges: Sequence[Range]) -> str:
    """All that may be done to an input, as one clause."""
    return listed(list(map(phrase, ranges)), "; ")


def listed(parts: Sequence[str], between: str = ", ") -> str:
    """a, b and c."""
    if len(parts) < 2:
        return "".join(parts)
    comma = between.rstrip() if between != ", " else ""
    return between.join(parts[:-1]) + f"{comma} and {parts[-1]}"
