"""Transformations of colour images, and those that smooth and crop, against known answers."""

import math

import pytest
import torch
from scipy.ndimage import gaussian_filter

from orbitgp import Blur, Colour, Crop, InputError, Intensity, check_orbit, compose
from tests.conftest import assert_close

pytestmark = pytest.mark.usefixtures("float64")

LUMINANCE = torch.tensor([0.299, 0.587, 0.114], dtype=torch.float64)
ORBITS = {
    "colour": Colour(-0.1, 0.1),
    "crop": Crop(0.2),
    "blur": Blur(0.8),
    "all of them": compose(Crop(), Blur(), Intensity(), Colour()),
}


@pytest.mark.parametrize("name", ORBITS)
def test_orbits_pass_their_checks(name, generator):
    found = check_orbit(ORBITS[name], torch.rand(16, 3, 9, 8, generator=generator).numpy())
    assert found.passed, str(found)


def test_luminance_and_grey_stay(generator):
    orbit = Colour([-1.0, -math.pi], [1.0, math.pi])
    x = torch.rand(2, 3, 4, 5, generator=generator)
    points = orbit.sample(x, 6, generator=generator).points
    before = torch.einsum("c,nchw->nhw", LUMINANCE, x).unsqueeze(1)
    after = torch.einsum("c,nschw->nshw", LUMINANCE, points)
    assert_close(after, before.expand_as(after), tolerance=1e-3)
    grey = torch.full((1, 3, 2, 2), 0.4)
    points = orbit.sample(grey, 6, generator=generator).points
    assert_close(points, torch.full_like(points, 0.4), tolerance=1e-3)


def test_no_saturation_is_grey_and_half_a_turn_is_the_other_colour():
    x = torch.tensor([0.8, 0.3, 0.2]).view(1, 3, 1, 1)
    luminance = (LUMINANCE * x.flatten()).sum()
    faint = Colour([-1.3, -0.1], [0.1, 0.1]).transform(x, torch.tensor([[[0.0, 0.5]]]))
    expected = luminance + math.exp(-1.3) * (x.flatten() - luminance)
    assert_close(faint.flatten(), expected, tolerance=1e-3)
    other = Colour([-0.1, -math.pi], [0.1, math.pi]).transform(x, torch.tensor([[[0.5, 1.0]]]))
    assert_close(other.flatten(), 2 * luminance - x.flatten(), tolerance=1e-3)


@pytest.mark.parametrize("width", [0.8, 2.0])
def test_blur_is_that_of_scipy(width, generator):
    x = torch.rand(1, 20, 17, generator=generator)
    ours = Blur(width).transform(x, torch.ones(1, 1, 1))[0, 0]
    theirs = torch.from_numpy(gaussian_filter(x[0].numpy(), width, mode="reflect", truncate=8))
    assert_close(ours, theirs, tolerance=0.02 if width < 1 else 1e-6)
    assert_close(ours.mean(), x.mean())


def test_crops_hold_no_pixels_from_outside(generator):
    x = torch.full((2, 6, 7), 0.7)
    points = Crop(1.0).sample(x, 20, generator=generator).points
    assert_close(points, torch.full_like(points, 0.7))


def test_a_crop_of_a_corner():
    y = torch.arange(8.0).view(1, 8, 1).expand(1, 8, 8)
    noise = torch.tensor([[[1.0, 0.5, 1.0]]])  # twice as large, moved down: the upper half
    rows = Crop(math.log(2)).transform(y, noise)[0, 0, :, 0]
    expected = torch.arange(8) * 0.5 - 0.25
    assert_close(rows, expected.clamp(min=0))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Colour().check(torch.rand(2, 1, 4, 4)), "red, green and blue"),
        (lambda: Blur().check(torch.rand(2, 4)), "blur is of images"),
        (lambda: Crop().transform(torch.rand(2, 4), torch.rand(2, 1, 3)), "images"),
        (lambda: Crop(2.0), "within"),
    ],
)
def test_bad_arguments_say_what_to_do(make, message):
    with pytest.raises(InputError, match=message):
        make()
