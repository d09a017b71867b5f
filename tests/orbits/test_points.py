"""Transformations of points in space, against known answers."""

import math

import pytest
import torch

from orbitgp import (
    InputError,
    InvariantGPRegressor,
    Jitter,
    PointMirror,
    PointRotation,
    RandomOrder,
    Translation,
    block_permutations,
    check_orbit,
    compose,
)
from tests.conftest import QUICK, assert_close, assert_mean

pytestmark = pytest.mark.usefixtures("float64")

ORBITS = {
    "any axis": PointRotation(0.5),
    "all": PointRotation.full(),
    "about z": PointRotation(0.5, -0.2, axis="z"),
    "mirror": PointMirror("z"),
    "translation": Translation(-0.1, 0.1, mask=3),
    "jitter": Jitter(0.1, num_points=5, mask=3),
    "order": RandomOrder(5),
    "all of them": compose(PointMirror(), PointRotation(), Translation(), RandomOrder(5)),
}


@pytest.mark.parametrize("name", ORBITS)
def test_orbits_pass_their_checks(name, generator):
    x = torch.randn(16, 5, 4, generator=generator)
    found = check_orbit(ORBITS[name], x.numpy())
    assert found.passed, str(found)


@pytest.mark.parametrize("largest", [1e-9, 0.3, math.pi])
@pytest.mark.parametrize("axis", [None, "x", "y", "z"])
def test_rotations_keep_distances_and_hands(axis, largest, generator):
    orbit = PointRotation(largest, axis=axis)
    frame = torch.eye(3)[None]
    turned = orbit.sample(frame, 500, generator=generator).points[0]
    assert_close(turned @ turned.mT, torch.eye(3).expand(500, 3, 3))
    assert_close(torch.linalg.det(turned), torch.ones(500))
    trace = turned.diagonal(dim1=1, dim2=2).sum(1)
    assert torch.acos(((trace - 1) / 2).clamp(-1, 1)).max() <= largest + 1e-7


def test_turns_about_z_go_from_x_to_y():
    orbit = PointRotation(math.pi / 2, axis="z")
    turned = orbit.transform(torch.tensor([[[1.0, 0.0, 5.0, 7.0]]]), torch.ones(1, 1, 1))
    assert_close(turned[0, 0, 0], torch.tensor([0.0, 1.0, 5.0, 7.0]))


def test_all_rotations_are_those_of_the_haar_measure(generator):
    """E R = 0 and E R_ij² = 1/3; angles have the density (1 − cos φ)/π, of mean π/2 + 2/π."""
    turned = PointRotation.full().sample(torch.eye(3)[None], 20_000, generator=generator).points[0]
    for row in range(3):
        for column in range(3):
            assert_mean(turned[:, row, column], torch.tensor(0.0), "mean")
            assert_mean(turned[:, row, column].square(), torch.tensor(1 / 3), "mean")
    trace = turned.diagonal(dim1=1, dim2=2).sum(1)
    angle = torch.acos(((trace - 1) / 2).clamp(-1, 1))
    assert_mean(angle, torch.tensor(math.pi / 2 + 2 / math.pi), "mean")


def test_absent_points_stay_where_they_are(generator):
    x = torch.randn(2, 5, 4, generator=generator)
    x[:, 3:] = 0
    for orbit in (Translation(-1.0, 1.0, mask=3), Jitter(0.5, num_points=5, mask=3)):
        points = orbit.sample(x, 6, generator=generator).points
        assert (points[:, :, 3:] == 0).all()
        assert (points[:, :, :3, :3] != x[:, None, :3, :3]).all()
        assert torch.equal(points[..., 3], x[:, None, :, 3].expand(2, 6, 5))


def test_translations_move_all_points_alike(generator):
    x = torch.randn(1, 5, 3, generator=generator)
    moves = Translation(-1.0, 1.0).sample(x, 9, generator=generator).points - x.unsqueeze(1)
    assert_close(moves, moves[:, :, :1].expand_as(moves))


def test_every_order_is_equally_likely(generator):
    x = torch.arange(1.0, 4).view(1, 3, 1)
    points = RandomOrder(3).sample(x, 12_000, generator=generator).points.flatten(2)[0]
    orders, counts = points.unique(dim=0, return_counts=True)
    assert len(orders) == 6
    for count in counts.tolist():  # binomial
        assert abs(count - 2000) < 4 * math.sqrt(12_000 / 6 * 5 / 6)


def test_orders_by_norm(generator):
    x = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [0.0, 3.0], [2.0, 0.0]]])
    sorted_ = RandomOrder(4, spread=0.0).sample(x, 1, generator=generator).points[0, 0]
    assert sorted_.norm(dim=1).tolist() == [3, 2, 1, 0]
    near = RandomOrder(4, spread=0.5).sample(x, 500, generator=generator).points[0].norm(dim=2)
    assert (near[:, 3] == 0).all()  # absent, so always last
    share = (near[:, 0] == 3).double()
    assert 0.8 < share.mean() < 1


def test_pairs_are_sorted_on_both_sides(generator):
    x = torch.randn(2, 4, 4, generator=generator)
    x = x + x.mT
    points = RandomOrder(4, pairs=True).sample(x, 5, generator=generator).points
    assert_close(points, points.mT)
    spectrum = torch.linalg.eigvalsh(x)[:, None].expand(2, 5, 4)
    assert_close(torch.linalg.eigvalsh(points), spectrum)


def test_blocks_are_permuted_within():
    orbit = block_permutations((0, 2), (1, 3, 4), num_coordinates=6)
    points = orbit.enumerate(torch.arange(6.0)[None]).points[0]
    assert len(points.unique(dim=0)) == orbit.size == 12
    assert (points[:, 5] == 5).all()
    assert (points[:, [0, 2]].sort(1)[0] == torch.tensor([0.0, 2.0])).all()


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PointRotation(axis="w"), "x, y or z"),
        (lambda: PointRotation(0.1, -0.1), "leave low out"),
        (lambda: PointRotation(90.0), "math.radians"),
        (lambda: PointMirror("w"), "x, y or z"),
        (lambda: PointRotation().check(torch.rand(2, 4, 2)), "positions first"),
        (lambda: Translation(mask=1).check(torch.rand(2, 4, 4)), "behind the three"),
        (lambda: Jitter(num_points=3).check(torch.rand(2, 4, 3)), "make it with num_points=4"),
        (lambda: Jitter(num_points=0), "at least 1"),
        (lambda: RandomOrder(1), "at least 2 rows"),
        (lambda: RandomOrder(3, spread=-1.0), "spread from 0 on"),
        (lambda: RandomOrder(3, pairs=True).check(torch.rand(2, 3, 4)), r"\[N, 3, 3\]"),
        (lambda: block_permutations((0, 1), (1, 2), num_coordinates=3), "different coordinates"),
        (lambda: block_permutations((0,), num_coordinates=3), "two or more"),
    ],
)
def test_bad_arguments_say_what_to_do(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize("order", [compose, lambda *orbits: compose(*reversed(orbits))])
def test_lengths_are_those_of_the_inputs(order, generator):
    """Estimators divide inputs by their largest value; half an ångström stays half an ångström."""
    moved = Translation(-0.5, 0.5, mask=3, learn_low=False, learn_high=False)
    orbit = order(moved, PointMirror("x"))
    before, words = orbit.learned_ranges(), orbit.describe()
    orbit.measured_in(16.0)
    assert orbit.learned_ranges() == before
    assert orbit.describe() == words
    x = torch.randn(3, 5, 4, generator=generator) / 16
    moves = 16 * (orbit.sample(x, 40, generator=generator).points - x.unsqueeze(1))[..., 1:3]
    assert 0.4 < moves.abs().max() <= 0.5 + 1e-6


@pytest.mark.usefixtures("untyped")
def test_estimators_know_the_unit(generator):
    x = torch.randn(40, 3, 4, generator=generator).numpy()
    x[..., 3] = 16
    frozen = {"learn_low": False, "learn_high": False}
    orbit = Translation(-0.5, 0.5, **frozen)
    model = InvariantGPRegressor(orbit, settings=QUICK, random_state=0).fit(x, x[:, 0, 0])
    assert model.scale_ == 16
    assert {(r.low, r.high) for r in model.orbit_.learned_ranges()} == {(-0.5, 0.5)}
    inputs = model.as_inputs(x[:4])
    moves = model.orbit_.sample(inputs, 40, generator=generator).points - inputs.unsqueeze(1)
    assert 0.4 < 16 * moves.abs().max() <= 0.5 + 1e-6
    assert orbit.unit == 1
