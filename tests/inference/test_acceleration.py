"""Rounds of a linear map: where they end is known, and how many they take without help."""

import pytest
import torch

from orbitgp.inference.acceleration import MEMORY, Mixing, mixed

pytestmark = pytest.mark.usefixtures("float64")

SLOWEST = 0.98


def rounds(path, rate, end, start, tolerance=1e-6):
    """Rounds ψ → end + rate (ψ − end) until it is near; the last of them, and how many."""
    local = start
    for number in range(1, 3000):
        best = end + rate * (local - end)
        if (best - end).norm() < tolerance:
            return best, number
        local = best if path is None else path.onward(local, best)
    raise AssertionError("the rounds did not end")


@pytest.mark.parametrize("shape", [(40, 1), (20, 3)])
def test_fewer_rounds_end_in_the_same_place(shape, generator):
    end = torch.randn(shape, generator=generator)
    start, rate = torch.zeros(shape), SLOWEST * torch.rand(shape, generator=generator)
    _, plain = rounds(None, rate, end, start)
    _, when_mixed = rounds(Mixing(), rate, end, start)
    print(f"rounds: {plain} plain, {when_mixed} mixed")
    assert when_mixed < 0.25 * plain


def test_as_many_rounds_as_rates_are_enough(generator):
    """MEMORY differences of a linear map with so many rates hold all that it can do."""
    rate = torch.linspace(0.1, SLOWEST, MEMORY).repeat_interleave(7)
    end = torch.randn(len(rate), generator=generator)
    best, number = rounds(Mixing(), rate, end, torch.zeros(len(rate)))
    assert number <= MEMORY + 2
    assert (best - end).abs().max() < 1e-6


def test_rounds_that_say_nothing_new_are_no_error():
    """A first round, a round that repeats the last one, and one that rests."""
    local, best = torch.zeros(4), torch.ones(4)
    path = Mixing()
    assert torch.equal(path.onward(local, best), best)
    assert torch.equal(path.onward(local, best), best)
    assert torch.isfinite(path.onward(best, best)).all()
    nothing = torch.zeros(2, 4)
    assert torch.equal(mixed(nothing, nothing, best), torch.zeros(4))


def test_a_round_that_moves_much_further_starts_anew():
    path, place = Mixing(), torch.tensor([1.0, 0.0])
    path.onward(torch.zeros(2), place)
    path.onward(place, 1.5 * place)
    far = torch.tensor([0.0, 9.0])
    assert torch.equal(path.onward(torch.zeros(2), far), far)
    assert len(path.ends) == len(path.moves) == 1
