"""Maps between orbit and kernel."""

import math

import pytest
import torch

from orbitgp import InputError, OrientedEnergy, features
from orbitgp.features import Projection, Standardize, gaussian_windows
from tests.conftest import assert_close


def test_features_are_standard_and_constants_stay(generator):
    x = torch.randn(50, 3, 2, generator=generator, dtype=torch.float64) * 5 + 1e3
    x[:, 0, 0] = 7.0
    features = Standardize.of(x)(x)
    assert features.shape == (50, 6)
    assert_close(features.mean(0), torch.zeros(6).double(), tolerance=1e-9)
    assert_close(features.std(0, correction=0)[1:], torch.ones(5).double())
    assert (features[:, 0] == 0).all()


def wave(angle, side=16):
    """Brightness that grows in one direction."""
    axis = torch.arange(side, dtype=torch.float64)
    return (math.cos(angle) * axis + math.sin(angle) * axis[:, None])[None]


@pytest.mark.parametrize("direction", range(8))
def test_energy_is_where_the_gradient_points(direction):
    found = OrientedEnergy(8, cells=(4,), overlap=0.1)(wave(direction * math.pi / 4))[0]
    assert_close(found.square().sum(), torch.ones(()).double())
    inner = found.unflatten(0, (8, 4, 4))[:, 1:3, 1:3]  # the border is an edge itself
    assert (inner.argmax(0) == direction).all()


def test_contrast_is_taken_out_of_the_whole_and_of_each_cell():
    x = wave(0.7, 28) / 4
    faint = torch.where(torch.arange(28) < 14, x, 0.2 * x)  # a right half of a fifth the contrast
    plain, local = (OrientedEnergy(cells=(9,), contrast=c) for c in (1e9, 1e-4))
    assert_close(plain(0.5 * x), plain(x), tolerance=0.02)
    lengths = [f(faint).unflatten(1, (8, 9, 9)).norm(dim=1)[0, 4] for f in (plain, local)]
    ratios = [(row[6] / row[2]).item() for row in lengths]
    print(f"right over left: {ratios[0]:.2f}, and {ratios[1]:.2f} with each cell on its own")
    assert ratios[0] < 0.6
    assert ratios[1] > 0.9


def test_a_second_layer_sees_where_a_line_ends():
    """A line from the top to the middle: along y, its edges change at the end alone."""
    x = torch.zeros(1, 28, 28, dtype=torch.float64)
    x[:, :16, 13:15] = 1.0
    found = OrientedEnergy(8, (14, 7), contrast=0.01)(x).unflatten(1, (8, 8, 7, 7))[0, :, :, :, 3]
    upwards, across = found[:, 6].norm(dim=0), found[:, 0].norm(dim=0)
    print("by rows of cells, up:", upwards, "across:", across)
    assert upwards.argmax() in (3, 4)
    assert upwards[2] < 0.2 * upwards.max()  # the line goes on there
    assert across[2] > 0.5 * across.max()


def test_pooling_by_one_matrix_is_pooling_by_two(generator, monkeypatch):
    x = torch.rand(3, 20, 12, generator=generator, dtype=torch.float64)
    energy = OrientedEnergy(cells=(9, 4))
    once = energy(x)
    monkeypatch.setattr(features, "MAX_ENTRIES", 0)
    assert_close(once, energy(x))


def test_windows_are_averages_that_overlap():
    windows = gaussian_windows(28, 7, overlap=0.5)
    assert_close(windows.sum(0), torch.ones(7).double(), tolerance=1e-5)
    assert windows[:, 3].argmax() in (13, 14)
    assert windows[12, 2] > 0.01


def test_colours_are_treated_alike_and_sizes_add_up(generator):
    x = torch.rand(4, 3, 28, 28, generator=generator)
    two = OrientedEnergy()
    assert two(x).shape == (4, 3 * two.num_features) == (4, 3 * 64 * 25)
    assert OrientedEnergy(cells=(9,))(x).shape == (4, 3 * 8 * 81)
    assert OrientedEnergy(4, cells=(5,))(x[:, 0]).shape == (4, 100)


def test_gradients_reach_the_image(generator):
    x = torch.rand(2, 9, 9, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(OrientedEnergy(5, cells=(3, 2)), (x,), atol=1e-4)


@pytest.mark.parametrize(
    "arguments",
    [
        {"num_directions": 1},
        {"cells": ()},
        {"cells": (0,)},
        {"cells": (7, 5, 3)},
        {"sharpness": 0.5},
        {"overlap": 0},
        {"contrast": -1},
    ],
)
def test_bad_constants_are_refused(arguments):
    with pytest.raises(InputError, match="oriented energy"):
        OrientedEnergy(**arguments)


def test_a_projection_keeps_distances_but_for_the_variance_that_it_may_leave_out(generator):
    scales = torch.linspace(0.01, 1, 200) ** 4
    x = torch.randn(5000, 200, generator=generator) * scales + 3.0
    left_out = 0.01 * scales.square().sum().item()
    projection = Projection.principal(x, left_out=0.01, most=200)
    few = projection(x)
    assert 20 < few.shape[1] < 200
    assert Projection.principal(x, left_out=0.01, most=20)(x).shape[1] == 20
    full, kept = torch.pdist(x[:300]).square(), torch.pdist(few[:300]).square()
    assert (kept <= full + 1e-3).all()
    assert 0 < (full - kept).mean() < 2.2 * left_out  # E|x − x'|² is twice the variance
    assert_close(few.mean(0), torch.zeros(few.shape[1]), tolerance=1e-3)
    assert Projection.principal(x[:, 100:], left_out=0.0, most=200) is None
