"""Transformations of series, against known answers."""

import math

import pytest
import torch

from orbitgp import Drift, InputError, Magnitude, TimeAffine, TimeWarp, Window, check_orbit
from orbitgp.orbits.curves import cosine_curves
from orbitgp.orbits.resample import resample
from orbitgp.orbits.time_affine import time_shift
from tests.conftest import assert_close, assert_mean

pytestmark = pytest.mark.usefixtures("float64")

LENGTH = 40
TIMES = torch.arange(LENGTH, dtype=torch.float64)
BUMP = torch.exp(-0.5 * ((TIMES - 20) / 3) ** 2)
ORBITS = {
    "time": TimeAffine(LENGTH),
    "zero": TimeAffine(LENGTH, outside="zero"),
    "cyclic": TimeAffine(LENGTH, outside="cyclic"),
    "shift": time_shift(LENGTH, 2.0),
    "warp": TimeWarp(LENGTH),
    "window": Window(LENGTH),
    "magnitude": Magnitude(),
    "drift": Drift(),
}


@pytest.mark.parametrize("shape", [(LENGTH,), (2, LENGTH)])
@pytest.mark.parametrize("name", ORBITS)
def test_orbits_pass_their_checks(name, shape, generator):
    x = torch.randn(16, *shape, generator=generator).cumsum(-1)
    found = check_orbit(ORBITS[name], x.numpy())
    assert found.passed, str(found)


def moved(orbit, values):
    """A bump by the draw at the upper ends of its ranges."""
    noise = torch.tensor(values).view(1, 1, -1)
    return orbit.transform(BUMP[None], noise)[0, 0]


@pytest.mark.parametrize("outside", ["zero", "edge", "cyclic"])
def test_positive_shifts_come_later(outside):
    ends = [-5.0, 5.0] if outside == "cyclic" else [[-5.0, -0.1], [5.0, 0.1]]
    orbit = TimeAffine(LENGTH, *ends, outside=outside)
    noise = [1.0] if outside == "cyclic" else [1.0, 0.5]
    assert_close(moved(orbit, noise)[5:], BUMP[:-5])
    earlier = moved(orbit, [0.0, *noise[1:]])
    assert_close(earlier[:-5], BUMP[5:])


def test_stretch_is_about_the_middle():
    orbit = TimeAffine(LENGTH, [-1.0, -math.log(2)], [1.0, math.log(2)])
    x = ((TIMES - 19.5) / 19.5)[None]
    assert_close(orbit.transform(x, torch.tensor([[[0.5, 1.0]]]))[0, 0], 0.5 * x[0])


def test_what_lies_outside():
    x, times = torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[[-0.5, 2.5, 3.0]]])
    assert resample(x, times, "zero").tolist() == [[[0.5, 2.0, 0.0]]]
    assert resample(x, times, "edge").tolist() == [[[1.0, 4.0, 4.0]]]
    assert resample(x, times, "cyclic").tolist() == [[[2.5, 2.5, 1.0]]]


def test_channels_move_together(generator):
    orbit, x = TimeAffine(LENGTH), torch.randn(3, 2, LENGTH, generator=generator)
    noise = orbit.noise(3, 4, generator=generator)
    whole = orbit.transform(x, noise)
    for channel in range(2):
        assert_close(whole[:, :, channel], orbit.transform(x[:, channel], noise))


def test_all_cyclic_shifts_make_a_mean_that_does_not_depend_on_the_start(generator):
    orbit = TimeAffine(LENGTH, -20.0, 20.0, outside="cyclic")
    noise = (torch.arange(LENGTH) / LENGTH).view(1, -1, 1)
    x = torch.randn(1, LENGTH, generator=generator)
    points = [orbit.transform(other, noise)[0] for other in (x, x.roll(7, 1))]
    ours, theirs = (sorted(p.round(decimals=9).tolist()) for p in points)
    assert_close(torch.tensor(ours), torch.tensor(theirs))
    assert orbit.describe() == "any cyclic shift"


def test_time_never_runs_backwards(generator):
    orbit = TimeWarp(LENGTH, 1.0)
    noise = orbit.noise(1, 200, generator=generator)
    times = orbit.transform(TIMES[None], noise)[0]
    assert (times.diff(dim=-1) > 0).all()
    assert_close(times[:, 0], torch.zeros(200))
    assert_close(times[:, -1], torch.full((200,), LENGTH - 1.0))
    assert times.std(0)[1:-1].min() > 0.1


def test_windows_are_parts_of_the_series():
    orbit = Window(LENGTH, 0.5)
    for place in (0.0, 0.5, 1.0):
        times = orbit.transform(TIMES[None], torch.tensor([[[1.0, place]]]))[0, 0]
        start = 0.5 * place * (LENGTH - 1)
        assert_close(times, torch.linspace(start, start + 0.5 * (LENGTH - 1), LENGTH))


def test_curves_have_a_variance_of_one(generator):
    curves = cosine_curves(torch.rand(4000, 4, generator=generator), LENGTH)
    assert_mean(curves.square().mean(1), torch.tensor(1.0), "mean")
    assert_mean(curves[:, 3], torch.tensor(0.0), "mean")
    assert_close(curves.mean(1), torch.zeros(4000))


def test_drift_is_the_same_for_all_channels(generator):
    orbit, x = Drift(0.2), torch.zeros(1, 3, LENGTH)
    points = orbit.sample(x, 2000, generator=generator).points[0]
    assert_close(points[:, 0], points[:, 2])
    assert_mean(points[:, 0].square().mean(1), torch.tensor(0.04), "mean")


def test_units():
    shift, stretch = TimeAffine(100, sampling_rate=50.0).learned_ranges()
    assert (shift.title, shift.low, shift.high) == ("shift (ms)", *map(pytest.approx, (-40, 40)))
    assert stretch.title == "stretch (×)"
    ends = math.exp(-0.05), math.exp(0.05)
    assert (stretch.low, stretch.high) == pytest.approx(ends)
    _, offset = Magnitude(-0.1, 0.1).learned_ranges()
    assert (offset.title, offset.low, offset.high) == ("offset (%)", *map(pytest.approx, (-10, 10)))
    assert time_shift(100, 3.0).describe() == "shift −3.0 … +3.0 samples"
    assert [found.title for found in TimeWarp(9, 0.3).learned_ranges()] == ["speed (%)"]


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TimeAffine(1), "length of at least 2"),
        (lambda: TimeAffine(9, sampling_rate=0.0), "sampling_rate"),
        (lambda: TimeAffine(9, outside="mirror"), "one of zero, edge, cyclic"),
        (lambda: TimeAffine(9, -6.0, 6.0), "within"),
        (lambda: TimeAffine(9, -0.1, 0.1).check(torch.rand(2, 8)), "make it with length=8"),
        (lambda: TimeWarp(9).check(torch.rand(2, 3, 3, 9)), "series"),
        (lambda: TimeAffine(9, [-0.1] * 3), "2 parameters, shift, stretch; got 3 values"),
        (lambda: TimeWarp(9, num_frequencies=10), "frequencies"),
        (lambda: Window(1), "at least 2"),
        (lambda: Drift(num_frequencies=0), "at least 1 frequency"),
    ],
)
def test_bad_arguments_say_what_to_do(make, message):
    with pytest.raises(InputError, match=message):
        make()
