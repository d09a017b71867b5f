"""Local deformations: the fields they draw, and warp against tangent."""

import math

import pytest
import torch

from orbitgp import InputError, LocalDeformation
from orbitgp.orbits.deformation import _cosines, _gradient
from tests.conftest import assert_close, assert_mean

pytestmark = pytest.mark.usefixtures("float64")

SIDE = 12


def digit(side=SIDE):
    """A smooth ring, off the centre."""
    axis = torch.linspace(-1, 1, side)
    radius = ((axis[:, None] - 0.1).square() + (axis + 0.2).square()).sqrt()
    return torch.exp(-((radius - 0.5) / 0.2).square())[None]


def test_fields_have_their_amplitude_and_are_independent(generator):
    amplitude = [0.1, 0.2, 0.3, 0.4, 0.5]
    orbit = LocalDeformation(amplitude, 0.5, num_frequencies=4)
    noise = orbit.noise(4000, 1, generator=generator)
    fields = orbit._fields(torch.zeros(1, SIDE, SIDE), noise)[:, 0].flatten(2)
    assert_mean(fields.square().mean(2), torch.tensor(amplitude).square(), "variances")
    assert_mean(fields[:, :4].mul(fields[:, 1:]).mean(2), torch.zeros(4), "covariances")


@pytest.mark.parametrize("width", [0.3, 0.8])
def test_fields_are_white_noise_smoothed_by_a_gaussian(width, generator):
    """Their covariance is that of a convolution, worked out on a fine grid with mirrored ends."""
    orbit = LocalDeformation(1.0, width, num_frequencies=10)
    noise = orbit.noise(6000, 1, generator=generator)
    rows = orbit._fields(torch.zeros(1, SIDE, SIDE), noise)[:, 0, 0, 5]  # along x, in the sixth row
    num_fine = 1200
    fine = (torch.arange(num_fine) * 2 + 1) / num_fine - 1
    coarse = (torch.arange(SIDE) * 2 + 1) / SIDE - 1
    mirrored = torch.cat([-2 - fine, fine, 2 - fine])
    smooth = torch.exp(-0.5 * ((coarse[:, None] - mirrored) / width).square())
    smooth = smooth.unflatten(1, (3, num_fine)).sum(1)  # what each noise adds, straight or mirrored
    expected = smooth @ smooth.T
    expected = expected / expected.diagonal().mean()
    expected = expected * expected[5, 5]  # the two axes multiply
    covariances = rows[:, :, None] * rows[:, None, :]
    assert_mean(covariances[:, 0], expected[0], "covariance with the first pixel")
    assert_mean(covariances[:, 5], expected[5], "covariance with the sixth pixel")


def test_cosines_are_orthogonal():
    squares, basis = _cosines(4, SIDE, SIDE)
    gram = basis @ basis.T
    assert_close(gram, torch.diag(gram.diagonal()), tolerance=1e-9)
    assert squares[0] == 0
    assert (squares.diff() >= 0).all()


@pytest.mark.parametrize(("amplitude", "allowed"), [(0.002, 0.2), (0.02, 0.3), (0.3, 10.0)])
def test_small_deformations_agree_with_their_tangent(amplitude, allowed):
    """x(p + d) ≈ x + d·∇x for displacements below a pixel, and not at all for large ones."""
    x, amplitudes = digit(48), [amplitude] * 4 + [amplitude / 10]
    warp, tangent = (LocalDeformation(amplitudes, 0.6, tangent=flag) for flag in (False, True))
    noise = warp.noise(1, 50, generator=torch.Generator().manual_seed(0))
    inner = (..., slice(2, -2), slice(2, -2))
    warped, moved = (orbit.transform(x, noise)[inner] for orbit in (warp, tangent))
    change = (warped - x[inner]).square().mean().sqrt()
    gap = (warped - moved).square().mean().sqrt()
    print(f"amplitude {amplitude}: {gap / change:.3f} of the change")
    assert gap < allowed * change
    assert amplitude < 0.1 or gap > 0.3 * change


def test_gradients_of_images_are_those_of_their_function():
    axis = (torch.arange(SIDE) * 2 + 1) / SIDE - 1
    plane = (3 * axis + 2 * axis[:, None])[None, None]
    gradient = _gradient(plane)[0, 0, :, 1:-1, 1:-1]
    assert_close(gradient[0], torch.full_like(gradient[0], 3.0))
    assert_close(gradient[1], torch.full_like(gradient[1], 2.0))


def test_thickness_moves_the_outline(generator):
    x = digit()
    orbit = LocalDeformation([1e-9] * 4 + [0.1], 5.0)  # so smooth that it is one number
    noise = orbit.noise(1, 200, generator=generator)
    thickness = orbit._fields(torch.zeros(1, SIDE, SIDE), noise)[0, :, 4].mean((1, 2))
    mass = orbit.transform(x, noise).sum((2, 3))[0] - x.sum()
    assert torch.corrcoef(torch.stack([thickness, mass]))[0, 1] > 0.99


def test_words_and_frozen_parts():
    orbit = LocalDeformation(
        [0.1, 0.0, 0.2, 0.3, 0.0], learn_amplitude=[True, False, True, True, False]
    )
    words = orbit.describe()
    assert words.startswith("x-displacement ±5.0%, y-displacement ±0.0%, local rotation ±11.5°")
    assert words.endswith("smooth over 20%")
    *_, scaling, thickness, smooth = orbit.learned_ranges()
    assert (scaling.title, scaling.high) == ("local scaling (%)", pytest.approx(30))
    assert scaling.low == -scaling.high
    assert thickness.title == "thickness (% of width)"
    assert (smooth.title, smooth.low) == ("smoothness (% of width)", pytest.approx(20))
    assert smooth.low == smooth.high
    frozen = LocalDeformation(learn_width=False)
    assert not frozen.raw_width.requires_grad
    assert math.isclose(frozen.width.item(), 0.4, rel_tol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("end", [0.0, 1 - 2.0**-24])
def test_the_ends_of_the_noise_are_finite(dtype, end):
    orbit = LocalDeformation().to(dtype)
    points = orbit.transform(digit().to(dtype), torch.full((1, 2, orbit.noise_size), end).float())
    assert torch.isfinite(points).all()


@pytest.mark.parametrize(
    "arguments", [{"width": 0.0}, {"num_frequencies": 0}, {"num_frequencies": 65}]
)
def test_bad_sizes_are_refused(arguments):
    with pytest.raises(InputError, match="width above 0 and 1 to 64 frequencies"):
        LocalDeformation(**arguments)


def test_only_images_are_deformed(generator):
    with pytest.raises(InputError, match="act on images"):
        LocalDeformation().sample(torch.zeros(2, 5), 2, generator=generator)
