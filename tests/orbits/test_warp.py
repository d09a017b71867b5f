"""The warps against scipy, against pixels moved by hand, and against finite differences."""

import math

import numpy as np
import pytest
import torch
from scipy import ndimage

from orbitgp import Rotation
from orbitgp.orbits.warp import affine_matrix, warp
from tests.conftest import assert_close

pytestmark = pytest.mark.usefixtures("float64")


def warped(images, *parameters):
    matrices = affine_matrix(torch.tensor(parameters).expand(len(images), 1, 6))
    return warp(images, matrices)[:, 0]


@pytest.mark.parametrize("angle", [-35.0, 10.0, 90.0, 160.0])
def test_positive_angles_turn_counter_clockwise_as_scipy_does(angle, generator):
    image = ndimage.gaussian_filter(torch.rand(21, 21, generator=generator).numpy(), 1.5)
    theirs = ndimage.rotate(image, angle, reshape=False, order=1)
    ours = warped(torch.tensor(image)[None], math.radians(angle), 0.0, 0, 0, 0, 0)[0].numpy()
    inside = np.hypot(*np.mgrid[-10:11, -10:11]) < 9
    assert np.abs(ours - theirs)[inside].max() < 1e-6


def test_quarter_turn_is_exact(generator):
    image = torch.rand(2, 3, 8, 8, generator=generator)
    assert_close(warped(image, math.pi / 2, 0.0, 0, 0, 0, 0), image.rot90(1, (-2, -1)))


def test_shift_right_and_down_by_one_pixel(generator):
    image = torch.rand(1, 6, 10, generator=generator)
    right = warped(image, 0.0, 0, 0, 0, 2 / 10, 0)
    assert_close(right[..., 1:], image[..., :-1])
    assert (right[..., 0].abs() < 1e-12).all()
    down = warped(image, 0.0, 0, 0, 0, 0, 2 / 6)
    assert_close(down[:, 1:], image[:, :-1])


def test_scale_and_shear_move_content_as_named():
    y, x = torch.meshgrid(torch.linspace(-1, 1, 41), torch.linspace(-1, 1, 41), indexing="ij")

    def blob(cx, cy):
        return torch.exp(-((x - cx) ** 2 + (y - cy) ** 2) / 0.01)[None]

    def centre(image):
        return (image * x).sum().item() / image.sum().item(), (
            image * y
        ).sum().item() / image.sum().item()

    log2 = math.log(2)
    assert centre(warped(blob(0.3, 0.2), 0.0, log2, 0, 0, 0, 0)) == pytest.approx(
        (0.6, 0.2), abs=0.01
    )
    assert centre(warped(blob(0.3, 0.2), 0.0, 0, log2, 0, 0, 0)) == pytest.approx(
        (0.3, 0.4), abs=0.01
    )
    assert centre(warped(blob(0.3, 0.4), 0.0, 0, 0, 0.5, 0, 0)) == pytest.approx(
        (0.5, 0.4), abs=0.01
    )


def test_circles_stay_circles_on_oblong_images():
    y, x = torch.meshgrid(torch.arange(20.0) - 9.5, torch.arange(40.0) - 19.5, indexing="ij")
    bar = torch.exp(-(x**2) / 40 - y**2 / 4)[None]  # lies along x
    turned = warped(bar, math.pi / 2, 0.0, 0, 0, 0, 0)[0]
    expected = torch.exp(-(y**2) / 40 - x**2 / 4)  # stands along y
    assert_close(turned, expected, tolerance=1e-9)


def test_matrix_is_the_inverse_of_the_movement(generator):
    parameters = 0.3 * torch.randn(6, generator=generator)
    angle, sx, sy, shear, tx, ty = parameters.tolist()
    # y points down, so a counter-clockwise turn by θ is (x, y) ↦ (cos x + sin y, −sin x + cos y)
    turn = torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    movement = (
        turn @ torch.tensor([[1.0, shear], [0, 1]]) @ torch.diag(torch.tensor([sx, sy]).exp())
    )
    matrix = affine_matrix(parameters)
    assert_close(matrix[:, :2] @ movement, torch.eye(2))
    assert_close(matrix[:, 2], torch.tensor([tx, ty]))


@pytest.mark.parametrize("angle", [0.0, 45.0, 90.0])
def test_shifts_do_not_depend_on_the_turn_on_oblong_images(angle):
    y, x = torch.meshgrid(torch.arange(30.0) - 14.5, torch.arange(60.0) - 29.5, indexing="ij")
    blob = torch.exp(-(x**2 + y**2) / 4)[None]
    moved = warped(blob, math.radians(angle), 0.0, 0, 0, 0.2, -0.4)[0]  # 6 pixels right, 6 up
    centre = [(moved * axis).sum().item() / moved.sum().item() for axis in (x, y)]
    assert centre == pytest.approx([6.0, -6.0], abs=1e-3)


def test_float64_images_are_read_in_float64(generator):
    torch.set_default_dtype(torch.float32)
    image = torch.rand(1, 7, 7, generator=generator, dtype=torch.float64)
    still = warp(image, affine_matrix(torch.zeros(1, 1, 6)))
    assert_close(still[:, 0], image)


def test_each_input_and_sample_has_its_own_matrix(generator):
    images = torch.rand(3, 2, 6, 7, generator=generator)
    parameters = 0.2 * torch.randn(3, 4, 6, generator=generator)
    together = warp(images, affine_matrix(parameters))
    for n in range(3):
        for s in range(4):
            assert_close(together[n, s], warped(images[n : n + 1], *parameters[n, s].tolist())[0])


def test_gradcheck(generator):
    images = torch.rand(2, 5, 5, generator=generator)
    parameters = (0.2 * torch.randn(2, 2, 6, generator=generator)).requires_grad_()
    assert torch.autograd.gradcheck(lambda p: warp(images, affine_matrix(p)), parameters)


def test_rotation_stays_within_its_range(generator):
    """A bar turned by Rotation(low, high) lies at angles within the range, and fills it."""
    y, x = torch.meshgrid(torch.arange(41.0) - 20, torch.arange(41.0) - 20, indexing="ij")
    bar = torch.exp(-(x**2) / 200 - y**2 / 8)[None]
    low, high = math.radians(-20), math.radians(50)
    points = Rotation(low, high).sample(bar, 400, generator=generator).points.detach()[0]
    angle = 0.5 * torch.atan2(
        -2 * (points * x * y).sum((1, 2)), (points * (x**2 - y**2)).sum((1, 2))
    )
    assert low - 0.02 < angle.min() < low + 0.05
    assert high - 0.05 < angle.max() < high + 0.02
