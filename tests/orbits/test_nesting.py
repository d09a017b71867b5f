"""Compositions of compositions are the flat composition of all their parts."""

import itertools
import math
import random

import pytest
import torch

import orbitgp
from orbitgp import (
    Affine,
    Blur,
    Colour,
    Crop,
    CyclicShifts,
    Drift,
    FiniteOrbit,
    FunctionOrbit,
    GaussianNoise,
    Identity,
    Jitter,
    LocalDeformation,
    Magnitude,
    Mirror,
    PermutationGroup,
    PointMirror,
    PointRotation,
    QuarterTurns,
    RandomOrder,
    Rotation,
    SignFlips,
    TimeAffine,
    TimeWarp,
    Translation,
    Window,
    compose,
)
from orbitgp.orbits.compose import Composition, FiniteComposition
from orbitgp.orbits.intensity import Intensity
from tests.conftest import assert_mean, concrete


def louder(x, gain):
    return x * torch.exp(gain)


# kind: (shape of an input, makers of orbits that act on it)
KINDS = {
    "images": (
        (3, 4, 4),
        (
            *(Affine, Rotation, Crop, Intensity, Colour, Blur, Mirror, QuarterTurns, Identity),
            lambda: Mirror(-2),
            lambda: LocalDeformation(num_frequencies=2),
            lambda: GaussianNoise(event_shape=(3, 4, 4)),
        ),
    ),
    "series": (
        (8,),
        (
            *(Magnitude, Drift, Mirror, lambda: TimeAffine(8), lambda: TimeWarp(8)),
            *(lambda: Window(8), lambda: CyclicShifts(8), lambda: CyclicShifts(8, step=4)),
            lambda: FunctionOrbit(louder, -0.1, 0.1),
        ),
    ),
    "points": (
        (4, 4),
        (
            *(PointRotation, Translation, PointMirror, lambda: PointMirror("y")),
            *(lambda: Jitter(num_points=4), lambda: RandomOrder(4)),
            lambda: PermutationGroup((1, 2, 0, 3), dim=0),
        ),
    ),
    "rows": (
        (4,),
        (
            *(Magnitude, lambda: SignFlips(0, 2), lambda: PermutationGroup((1, 2, 0, 3))),
            lambda: GaussianNoise(event_shape=(4,)),
        ),
    ),
}
MAX_POINTS = 32
SEEDS = range(40)


def drawn_parts(seed):
    """Two to five orbits that act on the same kind of inputs, and the shape of these."""
    choose = random.Random(seed)
    shape, makers = KINDS[sorted(KINDS)[seed % len(KINDS)]]
    while True:
        parts = [choose.choice(makers)() for _ in range(choose.randint(2, 5))]
        if num_points(parts) <= MAX_POINTS:
            return shape, parts


def nested(parts, choose):
    """A random tree of compositions with these leaves in this order."""
    if len(parts) == 1:
        return parts[0]
    cuts = sorted(choose.sample(range(1, len(parts)), choose.randint(1, min(2, len(parts) - 1))))
    pieces = [parts[low:high] for low, high in itertools.pairwise([0, *cuts, len(parts)])]
    return compose(*(nested(piece, choose) for piece in pieces))


def num_points(parts):
    return math.prod(int(part.size) for part in groups(parts))


def groups(parts):
    return [part for part in parts if isinstance(part, FiniteOrbit)]


def recorded(monkeypatch, parts):
    """The numbers that each group is asked for from now on, whatever asks for them."""
    numbers = {group: [] for group in groups(parts)}
    for group, seen in numbers.items():

        def act(x, index, group=group, seen=seen, act=group.act):
            seen.append(index)
            return act(x, index)

        monkeypatch.setattr(group, "act", act)
    return numbers


def generator(seed):
    return torch.Generator().manual_seed(seed)


def test_every_orbit_is_nested():
    used = {type(part) for seed in SEEDS for part in drawn_parts(seed)[1]}
    ours = {kind for kind in concrete(orbitgp.Orbit) if kind.__module__.startswith("orbitgp.")}
    assert used == ours - {Composition, FiniteComposition}
    sizes = {len(groups(parts)) == len(parts) for _, parts in map(drawn_parts, SEEDS)}
    assert sizes == {False, True}, "finite and other compositions"


@pytest.mark.parametrize("seed", SEEDS)
def test_nestings_are_flat(seed):
    """The same parts in the same order, so the same noise, and the same points of it."""
    shape, parts = drawn_parts(seed)
    x = torch.rand(3, *shape, generator=generator(seed))
    flat, deep = compose(*parts), nested(parts, random.Random(seed))
    assert type(deep) is type(flat)
    assert list(deep.orbits) == parts
    count = min(4, flat.size)
    noise = deep.noise(3, count, generator=generator(seed))
    assert torch.equal(noise, flat.noise(3, count, generator=generator(seed)))
    assert torch.equal(deep.transform(x, noise), flat.transform(x, noise))
    shared = deep.shared_noise(count, generator=generator(seed))
    assert torch.equal(shared, flat.shared_noise(count, generator=generator(seed)))
    assert torch.equal(deep.at(x, shared).points, flat.at(x, shared).points)
    torch.testing.assert_close(deep.at(x, shared).points, one_by_one(parts, x, shared))


def one_by_one(parts, x, noise):
    """x_a of each input and draw by itself, one part after the other."""
    if len(groups(parts)) == len(parts):
        noise = torch.stack(digits(noise.squeeze(-1).long(), parts), -1).float()
    rows = []
    for one in x:
        draws = []
        for draw in noise[0]:
            point, rest = one, draw
            for part in parts:
                own, rest = rest.tensor_split([part.noise_size])
                point = part.transform(point[None], own[None, None])[0, 0]
            draws.append(point)
        rows.append(torch.stack(draws))
    return torch.stack(rows)


def digits(number, parts):
    found = []
    for part in parts:
        found.append(number % int(part.size))
        number = number // int(part.size)
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_shared_draws_take_every_element_equally_often(seed, monkeypatch):
    shape, parts = drawn_parts(seed)
    x, orbit = torch.rand(1, *shape), nested(parts, random.Random(seed))
    numbers, points = recorded(monkeypatch, parts), num_points(parts)
    for count in (points,) if orbit.size < math.inf else (points, 2 * points, 4 * points):
        for seen in numbers.values():
            seen.clear()
        orbit.transform(x, orbit.shared_noise(count, generator=generator(seed)))
        drawn = [torch.cat(seen).flatten() for seen in numbers.values()]
        for group, seen in zip(numbers, drawn, strict=True):
            assert seen.bincount(minlength=int(group.size)).unique().tolist() == [
                count // group.size
            ]
        if drawn:  # and every product of elements
            both = torch.stack(drawn, 1).unique(dim=0, return_counts=True)[1]
            assert both.tolist() == [count // points] * points


@pytest.mark.parametrize("count", [4, 12, 20])
def test_too_few_shared_draws_balance_each_group_by_itself(count, monkeypatch):
    """Of 8 products, which these draws are no multiple of, but of the elements of each group."""
    parts = [QuarterTurns(), Affine(), Mirror()]
    numbers, orbit = recorded(monkeypatch, parts), compose(parts[0], compose(*parts[1:]))
    orbit.transform(torch.rand(1, 4, 4), orbit.shared_noise(count, generator=generator(count)))
    for group, (seen,) in numbers.items():
        assert seen.flatten().bincount().tolist() == [count // group.size] * int(group.size)


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_of_each_input_take_every_element_with_equal_probability(seed, monkeypatch):
    shape, parts = drawn_parts(seed)
    orbit, numbers = nested(parts, random.Random(seed)), recorded(monkeypatch, parts)
    num_samples = 1 if orbit.size < math.inf else 4
    x = torch.rand(1, *shape).expand(1600 // num_samples, *shape)
    orbit.transform(x, orbit.noise(len(x), num_samples, generator=generator(seed)))
    for group, seen in numbers.items():
        size = int(group.size)
        if size > 1:
            hits = torch.nn.functional.one_hot(torch.cat(seen).flatten(), size).double()
            assert_mean(hits, torch.full((size,), 1 / size, dtype=torch.float64), group.describe())


def test_a_group_inside_of_a_composition_acts():
    """A mirror that is composed twice was never drawn by an estimator."""
    shift = {"learn_low": False, "learn_high": False}
    still, turn = Affine(0.0, 0.0, **shift), Rotation(0.0, 0.0, **shift)
    orbit, x = compose(still, compose(Mirror(), turn)), torch.arange(9.0).view(1, 3, 3)
    points = orbit.at(x, orbit.shared_noise(16, generator=generator(0))).points[0]
    mirrored = (points - x.flip(2)).abs().amax((1, 2)) < 1e-4
    assert mirrored.sum() == 8


@pytest.mark.parametrize("kind", [Composition, FiniteComposition])
def test_no_composition_holds_another(kind):
    parts = [QuarterTurns(), Mirror(), Mirror(-2)]
    orbit = kind([FiniteComposition(parts[:2]), parts[2]])
    assert list(orbit.orbits) == parts
    assert list(kind([orbit, Mirror()]).orbits)[:3] == parts
