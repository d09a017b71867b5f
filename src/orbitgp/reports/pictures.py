"""Inputs as pictures: images as PNG, series as lines."""

from enum import Enum

import numpy as np
from markupsafe import Markup

from orbitgp.reports.charts import sparkline
from orbitgp.reports.png import data_uri

LARGEST = 96
"""Pixels along a side; larger images are shown smaller."""

SHORTEST_IMAGE, SHORTEST_SERIES = 6, 24


class Kind(Enum):
    """What an input can be shown as."""

    IMAGE = "image"
    SERIES = "series"
    OTHER = "input"


def kind_of(shape: tuple[int, ...]) -> Kind:
    """By its shape alone: short vectors and flat tables are no pictures."""
    if len(shape) in (2, 3) and min(shape[-2:]) >= SHORTEST_IMAGE:
        return Kind.IMAGE
    if len(shape) == 1 and shape[0] >= SHORTEST_SERIES:
        return Kind.SERIES
    return Kind.OTHER


def picture(values: np.ndarray, low: float, high: float, words: str = "") -> Markup:
    """One input, from `low`, black, to `high`, white."""
    if values.ndim == 1:
        return sparkline(values.tolist(), low, high)
    grey_or_rgb = pixels(values, low, high)
    height, width = grey_or_rgb.shape[:2]
    image = Markup('<img class="px" src="{}" alt="{}" width="{}" height="{}">')
    return image.format(data_uri(grey_or_rgb), words, width, height)


def pixels(image: np.ndarray, low: float, high: float) -> np.ndarray:
    """8 bits, [H, W] or [H, W, 3]; channels that are no colours are averaged."""
    channels = image if image.ndim == 3 else image[None]
    if len(channels) != 3:
        channels = channels.mean(0, keepdims=True)
    small = shrunk(channels)
    spread = high - low if high > low else 1.0
    scaled = np.nan_to_num((small - low) / spread).clip(0, 1)
    whole = np.rint(255 * scaled).astype(np.uint8)
    return whole[0] if len(whole) == 1 else whole.transpose(1, 2, 0)


def shrunk(channels: np.ndarray) -> np.ndarray:
    """Means over square blocks, so that no side is longer than the largest."""
    block = -(-max(channels.shape[1:]) // LARGEST)
    height, width = (max(1, length // block) for length in channels.shape[1:])
    cut = channels[:, : height * block, : width * block].astype(np.float64)
    if block == 1 or min(channels.shape[1:]) < block:
        return channels
    return cut.reshape(len(channels), height, block, width, block).mean((2, 4))


def limits(values: np.ndarray) -> tuple[float, float]:
    """The least and the greatest value that is finite."""
    finite = values[np.isfinite(values)]
    return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
