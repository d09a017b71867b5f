"""Pictures that other programs read as they were meant."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from orbitgp import InputError
from orbitgp.reports.pictures import Kind, kind_of, limits, picture, pixels
from orbitgp.reports.png import data_uri, encode_png


@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (3, 200), (7, 5, 3), (1, 1, 3)])
def test_pillow_reads_what_was_encoded(shape):
    image = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    read = Image.open(io.BytesIO(encode_png(image)))
    read.verify()  # checksums of all chunks
    read = Image.open(io.BytesIO(encode_png(image)))
    assert read.mode == ("L" if len(shape) == 2 else "RGB")
    np.testing.assert_array_equal(np.asarray(read), image)
    head, body = data_uri(image).split(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(body) == encode_png(image)


@pytest.mark.parametrize("shape", [(4,), (2, 3, 4), (0, 5), (2, 2, 3, 1)])
def test_what_is_no_picture_is_refused(shape):
    with pytest.raises(InputError, match="uint8"):
        encode_png(np.zeros(shape, np.uint8))
    with pytest.raises(InputError, match="float64"):
        encode_png(np.zeros((2, 2)))


def test_values_become_shades():
    image = np.array([[0.0, 1.0], [0.5, np.nan]])
    np.testing.assert_array_equal(pixels(image, 0, 1), [[0, 255], [128, 0]])
    np.testing.assert_array_equal(pixels(np.full((2, 2), 3.0), 3, 3), np.zeros((2, 2)))
    colour = np.zeros((3, 2, 2))
    colour[1] = 1
    np.testing.assert_array_equal(pixels(colour, 0, 1)[0, 0], [0, 255, 0])
    two = np.stack([np.zeros((2, 2)), np.ones((2, 2))])
    np.testing.assert_array_equal(pixels(two, 0, 1), np.full((2, 2), 128))


def test_large_images_are_shown_small():
    image = np.arange(200 * 300.0).reshape(200, 300)
    small = pixels(image, 0, image.max())
    assert small.shape == (50, 75)
    first = np.rint(255 * image[:4, :4].mean() / image.max())
    assert small[0, 0] == first


def test_kinds_and_limits():
    shapes = {(28, 28): Kind.IMAGE, (3, 32, 32): Kind.IMAGE, (150,): Kind.SERIES}
    shapes |= {(2,): Kind.OTHER, (23, 4): Kind.OTHER, (2, 3, 8, 8): Kind.OTHER}
    assert {shape: kind_of(shape) for shape in shapes} == shapes
    assert limits(np.array([np.nan, 2.0, -1.0, np.inf])) == (-1, 2)
    assert limits(np.array([np.nan])) == (0, 1)
    assert picture(np.arange(30.0), 0, 29).startswith('<svg class="spark"')
