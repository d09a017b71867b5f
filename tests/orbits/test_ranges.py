import json
import math
from dataclasses import asdict

import pytest
import torch
from torch.distributions import Exponential, HalfNormal

from orbitgp import (
    Affine,
    InputError,
    Intensity,
    LocalDeformation,
    Mirror,
    PermutationGroup,
    Rotation,
    UniformRange,
    compose,
    coordinate_swap,
)
from orbitgp.orbits.ranges import ranges_from
from tests.conftest import assert_close, assert_mean

pytestmark = pytest.mark.usefixtures("float64")


def test_ends_are_ordered_around_the_identity(generator):
    ranges = UniformRange([-0.1, -2.0], [0.3, 0.01])
    assert_close(ranges.low, torch.tensor([-0.1, -2.0]))
    assert_close(ranges.high, torch.tensor([0.3, 0.01]))
    for _ in range(20):  # wherever an optimiser goes
        ranges.raw.data = 30 * torch.randn(2, 2, generator=generator)
        assert (ranges.low <= 0).all()
        assert (ranges.high >= 0).all()


def test_draws_are_uniform(generator):
    ranges = UniformRange([-0.1, -2.0], [0.3, 0.01])
    draws = ranges.rsample(torch.rand(50_000, 2, generator=generator)).detach()
    low, high = ranges.low.detach(), ranges.high.detach()
    assert_mean(draws, (low + high) / 2, "mean")
    assert_mean((draws - (low + high) / 2) ** 2, (high - low) ** 2 / 12, "variance")
    assert (draws >= low).all()
    assert (draws <= high).all()


def test_gradients(generator):
    ranges = UniformRange([-0.1, -2.0], [0.3, 0.01])
    uniform = torch.rand(5, 2, generator=generator)

    def draw(raw):
        return torch.func.functional_call(_Draw(ranges), {"ranges.raw": raw}, uniform)

    assert torch.autograd.gradcheck(draw, ranges.raw)


class _Draw(torch.nn.Module):
    def __init__(self, ranges):
        super().__init__()
        self.ranges = ranges

    def forward(self, uniform):
        return self.ranges.rsample(uniform)


def test_single_ends_freeze(generator):
    ranges = UniformRange(
        [0.0, -1.0], [0.3, 1.0], learn_low=[False, True], learn_high=[True, False]
    )
    ranges.rsample(torch.rand(7, 2, generator=generator)).sum().backward()
    assert torch.equal(ranges.raw.grad != 0, torch.tensor([[False, True], [True, False]]))
    assert torch.isfinite(ranges.raw.grad).all()
    assert ranges.low[0] == 0


def test_no_optimiser_moves_a_frozen_end():
    orbit = Rotation(-0.5, 0.3, learn_low=False)
    full = Rotation.full()
    assert not any(parameter.requires_grad for parameter in full.parameters())
    optimizer = torch.optim.AdamW([*orbit.parameters(), *full.parameters()], 0.1, weight_decay=0.1)
    before = orbit.ranges.high.item()
    for _ in range(20):
        optimizer.zero_grad()
        (orbit.ranges.high.sum() + orbit.ranges.low.sum()).backward()
        optimizer.step()
    assert orbit.ranges.low.item() == -0.5
    assert orbit.ranges.high.item() != before
    assert full.describe() == "rotation by any angle"


def test_symmetric_ends_are_tied():
    ranges = UniformRange(-0.2, 0.2, symmetric=True)
    ranges.raw.data += 1
    assert_close(ranges.low, -ranges.high)
    assert ranges.high > 0.2


def test_prior_is_that_of_the_learned_widths():
    orbit = Rotation(-0.5, 0.25, learn_low=False, prior=HalfNormal(torch.tensor(0.1)))
    expected = HalfNormal(torch.tensor(0.1)).log_prob(torch.tensor(0.25))
    assert_close(orbit.log_prior(), expected)
    assert Rotation().log_prior() == 0
    frozen = Rotation(
        0.0, 0.25, learn_low=False, prior=torch.distributions.LogNormal(0.0, torch.tensor(1.0))
    )
    assert torch.isfinite(frozen.log_prior())
    six = Affine(-0.1, 0.2, prior=Exponential(torch.tensor(3.0)))
    assert_close(six.log_prior(), torch.tensor(12 * math.log(3) - 3 * 6 * 0.3))


def test_words():
    assert Rotation(math.radians(-12), math.radians(31)).describe() == "rotation −12° … +31°"
    words = Affine([-0.1, -0.2, -0.1, -0.3, -0.1, -0.2], 0.1).describe()
    assert words == (
        "rotation −6° … +6°, x-scale ×0.82 … ×1.11, y-scale ×0.90 … ×1.11, shear −0.30 … +0.10, "
        "x-shift −5.0% … +5.0%, y-shift −10.0% … +5.0%"
    )
    assert coordinate_swap(0, 2, 3).describe() == "swap of positions 0 and 2"
    assert PermutationGroup((1, 2, 0)).describe() == "3 permutations of 3 positions"
    assert Rotation.full().describe() == "rotation by any angle"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"low": 0.1, "high": 0.2}, "contain the identity"),
        ({"low": -0.1, "high": math.nan}, "finite"),
        ({"low": 0.0, "high": 0.2}, "learn_low=False"),
        ({"low": -0.1, "high": 0.2, "symmetric": True}, "low = −high"),
        ({"low": [-0.1, -0.2], "high": [0.1, 0.2, 0.3]}, "as many lower as upper"),
        ({"low": [-0.1, -0.2], "high": 0.1, "learn_low": [True] * 3}, "give 1 or 2"),
    ],
)
def test_bad_ranges_say_what_to_do(arguments, message):
    with pytest.raises(InputError, match=message):
        UniformRange(**arguments)


def test_what_is_not_identified_is_named():
    affine, light = Affine(-0.1, 0.1), Intensity(-0.1, 0.1)
    affine.ranges.identified[2] = False
    light.ranges.identified[1] = False
    both = compose(affine, LocalDeformation(0.02), light, Affine(-0.1, 0.1))
    both.orbits[3].ranges.identified[0] = False
    assert unidentified(affine) == ["y-scale (×)"]
    assert light.describe() == "contrast ×0.90 … ×1.11, brightness −0.10 … +0.10 (not identified)"
    assert unidentified(both) == ["y-scale of part 1 (×)", "brightness", "rotation of part 4 (°)"]
    assert unidentified(Mirror()) == []


def unidentified(orbit):
    return [found.title for found in orbit.learned_ranges() if not found.identified]


def test_ranges_are_values():
    """Of JSON, too, which must hold nothing else."""
    ranges = compose(Affine(-0.1, 0.1), Rotation(-0.2, 0.2)).learned_ranges()
    records = json.loads(json.dumps(list(map(asdict, ranges))))
    assert ranges_from(records) == ranges
    assert records[-1] == {
        **{"name": "rotation", "unit": "°", "part": 2, "identified": True, "logarithmic": False},
        **{"low": ranges[-1].low, "high": ranges[-1].high},
    }
    assert [found.neutral for found in ranges] == [0, 1, 1, 0, 0, 0, 0]
    wrong = {"name": 1, "unit": None, "part": "1", "low": "0", "high": [1], "identified": 1}
    for change in ({name: value} for name, value in {**wrong, "other": 1}.items()):
        with pytest.raises(TypeError):
            ranges_from([records[0] | change])
    with pytest.raises(TypeError):
        ranges_from([{"name": "rotation"}])
