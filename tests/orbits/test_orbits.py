"""What every orbit promises, and a check that no orbit escapes these tests."""

import math

import pytest
import torch

from orbitgp import (
    RBF,
    Affine,
    Blur,
    Colour,
    Crop,
    CyclicShifts,
    Drift,
    FunctionOrbit,
    Gaussian,
    GaussianNoise,
    Identity,
    InducingPosterior,
    InputError,
    Intensity,
    InvariantGP,
    Jitter,
    LocalDeformation,
    Magnitude,
    Mirror,
    Orbit,
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
    UniformRange,
    Window,
    block_permutations,
    compose,
    coordinate_swap,
)
from orbitgp.orbits.base import FiniteOrbit, distinct_integers
from orbitgp.orbits.compose import Composition, FiniteComposition
from orbitgp.orbits.names import starting_orbit
from tests.conftest import assert_close, assert_mean, concrete
from tests.models import take_best_q

pytestmark = pytest.mark.usefixtures("float64")


def brighten(x, parameters):
    gain, offset = parameters.unbind(1)
    return x * torch.exp(gain)[:, None, None] + offset[:, None, None]


# name: (make with ranges of this width, shape of an input)
DISTRIBUTIONS = {
    "affine": (lambda w: Affine(-w, w), (5, 5)),
    "affine-colour": (lambda w: Affine(-w, w), (3, 5, 6)),
    "rotation": (lambda w: Rotation(-w, w), (5, 5)),
    "noise": (lambda w: GaussianNoise(w, event_shape=(4, 3)), (4, 3)),
    "local": (lambda w: LocalDeformation(w, num_frequencies=3), (6, 5)),
    "local-colour": (lambda w: LocalDeformation(w, num_frequencies=2), (3, 5, 6)),
    "local-tangent": (lambda w: LocalDeformation(w, num_frequencies=2, tangent=True), (5, 5)),
    "intensity": (lambda w: Intensity(-w, w), (4, 3)),
    "crop": (Crop, (5, 6)),
    "colour": (lambda w: Colour(-w, w), (3, 4, 5)),
    "blur": (Blur, (5, 6)),
    "time": (lambda w: TimeAffine(9, -w, w), (9,)),
    "time-channels": (lambda w: TimeAffine(9, -w, w, outside="zero"), (2, 9)),
    "time-cyclic": (lambda w: TimeAffine(9, -w, w, outside="cyclic"), (9,)),
    "warp": (lambda w: TimeWarp(9, w), (2, 9)),
    "window": (lambda w: Window(9, w), (9,)),
    "magnitude": (lambda w: Magnitude(-w, w), (2, 9)),
    "drift": (Drift, (2, 9)),
    "rotation-z": (lambda w: PointRotation(w, axis="z"), (4, 3)),
    "rotation-3d": (PointRotation, (4, 5)),
    "translation": (lambda w: Translation(-w, w, mask=3), (4, 4)),
    "jitter": (lambda w: Jitter(w, num_points=4, mask=3), (4, 4)),
    "function": (lambda w: FunctionOrbit(brighten, UniformRange([-w, -w], w)), (5, 5)),
    "composition": (
        lambda w: compose(Rotation(-w, w), GaussianNoise(w, event_shape=(5, 5))),
        (5, 5),
    ),
    "composition-finite": (lambda w: compose(Mirror(), Affine(-w, w)), (5, 5)),
}

UNLEARNED = {"any order": (RandomOrder(4), (4, 2)), "pairs": (RandomOrder(4, pairs=True), (4, 4))}
"""Distributions without ranges."""

FINITE = {
    "identity": (Identity(), (3,)),
    "swap": (coordinate_swap(0, 1, 3), (3,)),
    "permutations": (PermutationGroup((1, 0, 2, 3), (1, 2, 3, 0)), (4,)),
    "atoms": (PermutationGroup((1, 0, 2, 3), (1, 2, 3, 0), dim=0), (4, 3)),
    "signs": (SignFlips(0, 2), (3,)),
    "turns": (QuarterTurns(), (4, 4)),
    "turns-colour": (QuarterTurns(), (3, 4, 4)),
    "mirror": (Mirror(), (4, 4)),
    "mirror-up": (Mirror(-2), (3, 4, 4)),
    "shifts": (CyclicShifts(6), (6,)),
    "shifts-by-two": (CyclicShifts(6, step=2, dim=0), (6, 2)),
    "point-mirror": (PointMirror("y"), (4, 3)),
    "blocks": (block_permutations((0, 1), (2, 3), num_coordinates=5), (5,)),
    "dihedral": (compose(QuarterTurns(), Mirror()), (4, 4)),
}


def test_no_orbit_goes_untested():
    tested = {type(make(0.1)) for make, _ in DISTRIBUTIONS.values()}
    tested |= {type(orbit) for orbit, _ in (FINITE | UNLEARNED).values()}
    assert {cls for cls in concrete(Orbit) if cls.__module__.startswith("orbitgp.")} == tested


def inputs(shape, generator, num_inputs=3):
    return torch.randn(num_inputs, *shape, generator=generator)


@pytest.fixture(params=DISTRIBUTIONS)
def distribution(request):
    return DISTRIBUTIONS[request.param]


@pytest.fixture(params=FINITE)
def finite(request):
    return FINITE[request.param]


def every_orbit():
    for make, shape in DISTRIBUTIONS.values():
        yield make(0.3), shape
    yield from (FINITE | UNLEARNED).values()


@pytest.mark.parametrize(("orbit", "shape"), list(every_orbit()))
def test_noise_of_one_row_makes_the_same_draws_for_all_inputs(orbit, shape, generator):
    x = inputs(shape, generator)
    noise = orbit.shared_noise(int(min(orbit.size, 4)), generator=generator)
    expected = orbit.transform(x, noise.expand(len(x), -1, -1))
    assert_close(orbit.at(x, noise).points, expected)


@pytest.mark.parametrize(("orbit", "shape"), list(every_orbit()))
def test_shapes_words_and_determinism(orbit, shape, generator):
    x = inputs(shape, generator)
    num_samples = int(min(orbit.size, 4))
    sample = orbit.sample(x, num_samples, generator=torch.Generator().manual_seed(1))
    again = orbit.sample(x, num_samples, generator=torch.Generator().manual_seed(1))
    assert sample.points.shape == (3, num_samples, *shape)
    assert sample.orbit_size == orbit.size
    assert torch.equal(sample.points, again.points)
    assert orbit.describe() == orbit.describe().strip() != ""


def test_identity_at_zero_range(distribution, generator):
    make, shape = distribution
    orbit, x = make(1e-12), inputs(shape, generator)
    noise = orbit.noise(3, 4, generator=generator)
    points = orbit.transform(x, noise)
    if isinstance(orbit, Composition) and isinstance(orbit.orbits[0], FiniteOrbit):
        x = orbit.orbits[0].transform(x, noise[..., :1])  # the finite part moves as it must
        assert_close(points, x, tolerance=1e-9)
    else:
        assert_close(points, x.unsqueeze(1).expand_as(points), tolerance=1e-9)


def test_exactly_zero_when_frozen(generator):
    x = inputs((5, 5), generator)
    for orbit in (
        Affine(0.0, 0.0, learn_low=False, learn_high=False),
        Rotation(0.0, 0.0, learn_low=False, learn_high=False),
        GaussianNoise(0.0, event_shape=(5, 5), learnable=False),
    ):
        points = orbit.sample(x, 3, generator=generator).points
        assert_close(points, x.unsqueeze(1).expand_as(points))


def test_draws_differ_between_inputs_and_samples(distribution, generator):
    make, shape = distribution
    x = inputs(shape, generator, 1).expand(3, *shape)  # three times the same input
    points = make(0.3).sample(x, 2, generator=generator).points.flatten(2)
    distances = torch.cdist(points.flatten(0, 1), points.flatten(0, 1))
    assert (distances + torch.eye(6) > 1e-3).all()


def test_finite_draws_differ_between_inputs(generator):
    x = inputs((6,), generator, 1).expand(50, 6)
    index = CyclicShifts(6).noise(50, 2, generator=generator)
    assert len(index.unique(dim=0)) > 10
    points = CyclicShifts(6).sample(x, 2, generator=generator).points
    assert len(points.flatten(1).unique(dim=0)) > 10


def test_gradient_reaches_every_range(distribution, generator):
    """Against finite differences of the estimate with common random numbers."""
    make, shape = distribution
    orbit, x = make(0.3), inputs(shape, generator)
    noise = orbit.noise(3, 5, generator=generator)
    direction = torch.randn(3, 5, *shape, generator=generator)

    def objective():
        return (direction * torch.sin(orbit.transform(x, noise))).sum()

    parameters = [p for p in orbit.parameters() if p.requires_grad]
    assert parameters
    frozen = {id(r.raw): ~r.learned for r in orbit.modules() if isinstance(r, UniformRange)}
    gradients = torch.autograd.grad(objective(), parameters)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        still = frozen.get(id(parameter), torch.zeros_like(gradient, dtype=torch.bool))
        assert (gradient.masked_fill(still, 1) != 0).all()
        for i in range(parameter.numel()):
            flat, step = parameter.data.view(-1), 1e-6
            value = flat[i].item()
            flat[i] = value + step
            up = objective()
            flat[i] = value - step
            down = objective()
            flat[i] = value
            assert_close(gradient.view(-1)[i], (up - down) / (2 * step), tolerance=1e-5)


def test_finite_orbits_are_groups(finite, generator):
    """The orbit of a moved point is the orbit of the point, so a mean over it is invariant."""
    orbit, shape = finite
    x = inputs(shape, generator)
    whole = orbit.enumerate(x)
    assert whole.is_whole
    assert_close(whole.points[:, 0], x)
    for p in range(int(orbit.size)):
        moved = orbit.enumerate(whole.points[:, p]).points
        for n in range(3):
            ours, theirs = (sorted(q[n].flatten(1).tolist()) for q in (moved, whole.points))
            assert_close(torch.tensor(ours), torch.tensor(theirs))


def test_finite_samples_are_points_of_the_orbit(finite, generator):
    orbit, shape = finite
    x = inputs(shape, generator)
    whole = orbit.enumerate(x).points.flatten(2)
    sample = orbit.sample(x, math.ceil(orbit.size / 2), generator=generator).points.flatten(2)
    for n in range(3):
        distances = torch.cdist(sample[n], whole[n])
        assert distances.min(1).values.max() < 1e-9
        assert len(distances.argmin(1).unique()) == len(sample[n])  # without replacement


def test_strict_groups_make_predictions_invariant(finite, generator):
    orbit, shape = finite
    x = inputs(shape, generator, 8)
    y = torch.randn(8, generator=generator)
    points = x.flatten(1)[:5]
    model = InvariantGP(
        orbit=orbit,
        kernel=RBF(lengthscale=2.0),
        posterior=InducingPosterior(points, 1),
        likelihood=Gaussian(0.1),
    )
    take_best_q(model, x, y)
    here = model.predict(x)
    for p in range(int(orbit.size)):
        there = model.predict(orbit.enumerate(x).points[:, p])
        assert_close(there.mean, here.mean, tolerance=1e-6)
        assert_close(there.variance, here.variance, tolerance=1e-6)
    assert here.mean.std() > 1e-3
    assert (here.mean_error == 0).all()


def test_distinct_integers_are_uniform_in_every_position(generator):
    index = distinct_integers(20_000, 3, 5, generator=generator)
    assert all(len(set(row)) == 3 for row in index[:500].tolist())
    pairs = (index[:, None, :] * 5 + index[:, :, None])[
        :, [0, 0, 1], [1, 2, 2]
    ]  # (s, t) = 01 02 12
    counts = torch.stack([(pairs == value).double() for value in range(25)], 2)
    different = [value for value in range(25) if value // 5 != value % 5]
    assert_mean(counts[:, :, different], torch.full((3, 20), 1 / 20), "ordered pairs")


def test_compose_is_finite_only_if_all_parts_are():
    assert isinstance(compose(QuarterTurns(), Mirror()), FiniteComposition)
    assert isinstance(compose(QuarterTurns(), Rotation()), Composition)
    assert compose(QuarterTurns(), Mirror()).size == 8
    assert compose(QuarterTurns(), Rotation()).size == math.inf
    large = CyclicShifts(300)
    assert isinstance(compose(large, large, large), Composition)  # 300³ points: drawn, not listed
    with pytest.raises(InputError, match="at least two"):
        compose(Mirror())


def test_a_finite_size_alone_does_not_make_a_finite_orbit(generator):
    """An orbit of a user's own that is no FiniteOrbit is drawn from, never left out."""

    class Coin(Orbit):
        size = 2

        def transform(self, x, noise):
            return x.unsqueeze(1) * torch.where(noise > 0.5, 1.0, -1.0)

        def describe(self):
            return "coin"

    orbit = compose(Coin(), Mirror())
    assert isinstance(orbit, Composition)
    assert orbit.describe() == "coin, then mirror along axis −1"


def test_point_numbers_survive_half_precision(generator):
    orbit, x = CyclicShifts(784), torch.arange(784.0)[None]
    points = orbit.sample(x.bfloat16(), 784, generator=generator).points
    assert len(points[0, :, 0].unique()) == len(x.bfloat16().unique())
    assert_close(points.double().sum(2), x.bfloat16().double().sum().expand(1, 784))


def test_user_functions_may_work_in_place(generator):
    x = torch.ones(3, 4)
    orbit = FunctionOrbit(lambda x, p: x.mul_(2) + p, UniformRange(-0.1, 0.1))
    orbit.sample(x, 1, generator=generator)
    assert (x == 1).all()


def test_composition_applies_the_first_first(generator):
    x = inputs((4,), generator)
    shift, flip = CyclicShifts(4), SignFlips(0)
    points = compose(shift, flip).enumerate(x).points
    shifted = shift.enumerate(x).points
    assert_close(points[:, :4], shifted)
    assert_close(points[:, 4:], shifted * torch.tensor([-1.0, 1, 1, 1]))


def test_shared_draws_take_all_points_of_groups(generator):
    """So an average over them is invariant to the groups, whatever the other draws are."""
    orbit, x = compose(QuarterTurns(), Mirror(), Rotation(-0.5, 0.5)), inputs((6, 6), generator)
    assert orbit.num_shared(35) == 32
    assert orbit.num_shared(31) == 31  # fewer than 4 draws for each point
    noise = orbit.shared_noise(32, generator=generator)
    counts = noise[0, :, :2].unique(dim=0, return_counts=True)[1]
    assert counts.tolist() == [4] * 8
    assert len(noise[0, :, 2].unique()) == 4
    means = [orbit.at(moved, noise).points.mean(1) for moved in (x, x.rot90(1, (1, 2)), x.flip(2))]
    assert_close(means[0], means[1])
    assert_close(means[0], means[2])


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FunctionOrbit(0.1, -0.1, 0.1), "must be callable"),
        (lambda: PermutationGroup([(1, 0), (0, 1)]), "an argument of its own"),
        (lambda: PermutationGroup(3), "an argument of its own"),
    ],
)
def test_arguments_of_the_wrong_type_say_what_to_do(make, message):
    with pytest.raises(InputError, match=message):
        make()


def checked(function):
    """A fit would try the function on some inputs first."""
    compose(Mirror(), FunctionOrbit(function, -0.1, 0.1)).check(torch.rand(4, 3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda g: PermutationGroup((0, 0, 1)), "not a permutation"),
        (lambda g: PermutationGroup(), "at least one generator"),
        (lambda g: PermutationGroup([1, 0, *range(2, 10)], [*range(1, 10), 0]), "too many to list"),
        (lambda g: CyclicShifts(7, step=2), "divides"),
        (lambda g: SignFlips(1, 1), "different"),
        (lambda g: QuarterTurns().enumerate(torch.zeros(1, 3, 4)), "square"),
        (lambda g: CyclicShifts(5).enumerate(torch.zeros(1, 6)), "has 6"),
        (lambda g: coordinate_swap(0, 1, 2).enumerate(torch.zeros(1, 3)), "has 3"),
        (lambda g: CyclicShifts(3).sample(torch.zeros(1, 3), 4, generator=g), "at most 3"),
        (lambda g: Affine().sample(torch.zeros(2, 5), 2, generator=g), "images"),
        (
            lambda g: GaussianNoise(0.1, event_shape=(2,)).sample(
                torch.zeros(1, 3), 2, generator=g
            ),
            "event_shape",
        ),
        (lambda g: Affine([-0.1] * 5), "6 parameters"),
        (lambda g: Rotation(-30, 30), "radians"),
        (lambda g: Mirror(-2).enumerate(torch.zeros(1, 3)), "no axis"),
        (lambda g: CyclicShifts(3, dim=4).enumerate(torch.zeros(1, 3)), "no axis"),
        (lambda g: SignFlips(9).enumerate(torch.zeros(1, 3)), "that have them"),
        (lambda g: SignFlips(0).enumerate(torch.zeros(1, 3, 3)), "that have them"),
        (lambda g: coordinate_swap(0, 5, 2), "two different coordinates"),
        (lambda g: coordinate_swap(1, 1, 2), "two different coordinates"),
        (lambda g: Rotation().sample(torch.zeros(2, 5, 5).long(), 2, generator=g), "floating"),
        (lambda g: Mirror().enumerate(torch.zeros(3)), r"x\[:, None\]"),
        (lambda g: Mirror().enumerate(torch.full((2, 3), math.nan)), "6 values that are NaN"),
        (lambda g: Rotation().sample(torch.zeros(2, 5, 5), 0, generator=g), "at least 1"),
        (lambda g: FunctionOrbit(brighten, Mirror()), "or a UniformRange"),
        (lambda g: FunctionOrbit(brighten, -0.1), "the two ends of its range"),
        (lambda g: FunctionOrbit(brighten, UniformRange(-1, 1), 0.1), "the two ends of its range"),
        (lambda g: checked(lambda x, p: x * p), "changes inputs where all its parameters are 0"),
        (lambda g: checked(lambda x, p: x), "does not depend on its parameter φ1"),
        (lambda g: checked(lambda x, p: x @ torch.ones(2, 2)), "failed for inputs"),
        (lambda g: checked(lambda x, p: x[0]), "keep the shape"),
        (lambda g: FunctionOrbit(brighten, UniformRange(-1, 1), names="gain"), "list"),
        (
            lambda g: FunctionOrbit(lambda x, p: x + p.detach(), UniformRange(-1, 1)).sample(
                torch.zeros(1, 3), 2, generator=g
            ),
            "differentiate",
        ),
        (lambda g: GaussianNoise(0.0, event_shape=(2,)), "learnable=False"),
        (lambda g: GaussianNoise(-1.0, event_shape=(2,)), "≥ 0"),
        (lambda g: FunctionOrbit(brighten, UniformRange(-1, 1), names=["a", "b"]), "one for each"),
        (
            lambda g: FunctionOrbit(lambda x, p: x[:, :1], UniformRange(-1, 1)).sample(
                torch.zeros(1, 3), 2, generator=g
            ),
            "keep the shape",
        ),
    ],
)
def test_bad_arguments_say_what_to_do(make, message, generator):
    with pytest.raises(InputError, match=message):
        make(generator)


def ends_by_title(ranges):
    return {found.title: (found.low, found.high) for found in ranges}


def test_learned_ranges_are_those_in_the_words():
    scale, degrees = math.log(2), math.radians(10)
    low = [-degrees, -scale, -0.1, -0.2, -0.3, -0.4]
    ranges = Affine(low, [degrees, scale, 0.1, 0.2, 0.3, 0.5]).learned_ranges()
    assert ends_by_title(ranges) == {
        "rotation (°)": pytest.approx((-10, 10)),
        "x-scale (×)": pytest.approx((0.5, 2)),
        "y-scale (×)": pytest.approx((math.exp(-0.1), math.exp(0.1))),
        "shear": pytest.approx((-0.2, 0.2)),
        "x-shift (% of width)": pytest.approx((-15, 15)),
        "y-shift (% of height)": pytest.approx((-20, 25)),
    }
    noise = GaussianNoise(torch.tensor([0.1, 0.3]), event_shape=(2,))
    assert ends_by_title(noise.learned_ranges()) == {"scale of noise": pytest.approx((0.1, 0.3))}
    function = FunctionOrbit(brighten, UniformRange([-1, -2], [3, 4]), names=["gain", "offset"])
    assert ends_by_title(function.learned_ranges()) == {
        "gain": pytest.approx((-1, 3)),
        "offset": pytest.approx((-2, 4)),
    }


def test_learned_ranges_of_parts_keep_apart():
    turns = [Rotation(-math.radians(degrees), 0.5) for degrees in (10, 20)]
    for parts in ((*turns, Mirror()), (Mirror(), *turns)):
        ranges = compose(*parts).learned_ranges()
        assert [found.low for found in ranges] == pytest.approx([-10, -20])
        assert [found.part for found in ranges] == [1 + parts.index(turn) for turn in turns]
    assert compose(Mirror(), QuarterTurns()).learned_ranges() == ()
    assert [found.part for found in compose(Mirror(), turns[0]).learned_ranges()] == [0]


def test_a_repeated_name_says_of_which_part():
    orbit = compose(Rotation(-0.1, 0.1), Mirror(), Affine(-0.1, 0.1))
    first, second, third, *_ = orbit.learned_ranges()
    assert (first.name, second.name, third.name) == ("rotation", "rotation", "x-scale")
    assert first.title == "rotation of part 1 (°)"
    assert second.words == "rotation of part 3"
    assert third.title == "x-scale (×)"
    assert orbit.describe().startswith(
        "part 1: rotation −6° … +6°, then mirror along axis −1, then part 3: rotation −6° … +6°, x"
    )
    again = starting_orbit("affine+rotation", (8, 8)).learned_ranges()
    assert [found.key for found in again if found.part] == [("rotation", 1), ("rotation", 2)]


def test_names_are_composed_in_their_order():
    orbit = starting_orbit("mirror+affine", (8, 8))
    assert [type(part) for part in orbit.orbits] == [Mirror, Affine]
    assert starting_orbit("quarter-turns+mirror", (8, 8)).size == 8
    assert isinstance(starting_orbit("affine+local", (8, 8)).orbits[1], LocalDeformation)
    with pytest.raises(InputError, match="no orbit is called 'spiral'"):
        starting_orbit("mirror+spiral", (8, 8))
    with pytest.raises(InputError, match=r"no part of a composition; got 'none\+mirror'"):
        starting_orbit("none+mirror", (8, 8))
