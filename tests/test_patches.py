"""Features that are learned from patches of the images."""

import functools
import statistics

import pytest
import torch

from benchmarks.timing import interleaved
from orbitgp import InputError, OrientedEnergy, PatchFeatures
from tests.conftest import assert_close


def images(generator, *shape):
    """Smooth noise, whose neighbours are alike."""
    plain = torch.rand(*shape, generator=generator, dtype=torch.float64)
    return (plain + plain.roll(1, -1) + plain.roll(1, -2)) / 3


@pytest.fixture
def features(generator):
    return PatchFeatures.of(
        images(generator, 30, 3, 12, 14), num_filters=8, size=3, generator=generator
    )


def test_they_are_what_the_formula_says(features, generator):
    """Place by place, without matrix products."""
    x = images(generator, 1, 3, 12, 14)
    rows, columns = (windows(length - 2, 3) for length in (12, 14))
    expected = torch.zeros(9, 16, dtype=torch.float64)
    for top in range(10):
        for left in range(12):
            patch = x[0, :, top : top + 3, left : left + 3]
            contrast = patch.var(correction=0) + features.contrast
            found = (features.filters * patch).sum((1, 2, 3)) / contrast.sqrt()
            beyond = torch.cat([found - 0.5, -found - 0.5]).clamp(min=0)
            expected += torch.outer(torch.outer(rows[top], columns[left]).flatten(), beyond)
    assert features.num_features == 144
    assert_close(features(x)[0], expected.flatten() / expected.norm(), tolerance=1e-9)


def windows(length, size):
    """Gaussian weights of places in cells, each of which sums to 1."""
    places = (torch.arange(length) + 0.5).double() * size / length
    cells = torch.arange(size) + 0.5
    weights = (-0.5 * ((places[:, None] - cells) / 0.55) ** 2).exp()
    return weights / weights.sum(0)


def test_brightness_is_left_out_and_most_of_contrast(features, generator):
    x = images(generator, 4, 3, 12, 14)
    assert_close(features(x + 0.3), features(x), tolerance=1e-9)
    assert_close(features(3 * x), features(x), tolerance=0.05)
    other = images(generator, 4, 3, 12, 14)
    assert (features(other) - features(x)).norm(dim=1).min() > 0.3


def test_filters_are_of_one_scale(generator):
    """What each of them finds in typical patches has mean square 1, whatever it looks for."""
    x = images(generator, 200, 16, 16)
    features = PatchFeatures.of(x, num_filters=64, size=3, generator=generator)
    patches = x.unfold(1, 3, 1).unfold(2, 3, 1).reshape(-1, 9)
    patches = patches - patches.mean(1, keepdim=True)
    patches = patches / (patches.square().mean(1, keepdim=True) + features.contrast).sqrt()
    found = patches @ features.filters.flatten(1).mT
    assert_close(found.square().mean(0).sqrt(), torch.ones(64).double(), tolerance=0.05)
    assert (features.filters.sum((1, 2, 3)).abs() < 1e-6).all()


def test_gradients(features, generator):
    x = images(generator, 2, 3, 12, 14).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: features(x).square().cumsum(1)[:, ::20], x)


def test_second_gradients(generator):
    features = PatchFeatures.of(
        images(generator, 9, 1, 6, 6), num_filters=2, size=3, generator=generator
    )
    x = images(generator, 1, 1, 6, 6).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: features(x).square()[:, ::3], x)


def test_for_a_gradient_only_inputs_are_kept(features, generator):
    """Saved tensors, in entries: what filters find has 24 × 8 × 10 of them for each image."""
    x, kept = images(generator, 4, 3, 12, 14).requires_grad_(), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (kept.append(t), t)[1], lambda t: t):
        features(x)
    print(sum(t.numel() for t in kept), "entries are kept")
    assert sum(t.numel() for t in kept) == x.numel()


def test_blocks_make_no_difference(features, generator, monkeypatch):
    x = images(generator, 7, 3, 12, 14)
    whole = features(x)
    monkeypatch.setattr("orbitgp.patches.ENTRIES", 1)
    assert_close(features(x), whole, tolerance=1e-12)


def test_nothing_in_an_image_is_nothing_in_its_features(features):
    assert (features(torch.full((2, 3, 12, 14), 0.4)) == 0).all()
    constant = PatchFeatures.of(torch.ones(5, 8, 8), generator=torch.Generator().manual_seed(0))
    assert (constant(torch.ones(2, 8, 8)) == 0).all()


@pytest.mark.usefixtures("untyped")
def test_what_cannot_be_used_is_refused(features, generator):
    filters = torch.zeros(4, 1, 3, 3)
    for call, words in (
        (lambda: PatchFeatures(torch.zeros(4, 1, 3, 5), 0.1), r"\[4, 1, 3, 5\]"),
        (lambda: PatchFeatures(filters, 0.1, series=True), "of series; got"),
        (lambda: PatchFeatures(filters, 0.1, cells=0), "got 0, 1 and 1"),
        (lambda: PatchFeatures(filters, -0.1), "got -0.1 and 0.5"),
        (lambda: PatchFeatures(filters, 0.1, threshold=float("nan")), "both finite"),
        (lambda: features(torch.zeros(2, 12, 14)), "3 channels"),
        (lambda: features(torch.zeros(2, 3, 2, 2)), "at least 3 × 3"),
        (lambda: features(torch.zeros(2, 9)), "images"),
        (
            lambda: PatchFeatures.of(torch.zeros(2, 4, 4), generator=generator),
            "patches of 5 entries, 1 apart, do not fit",
        ),
    ):
        with pytest.raises(InputError, match=words):
            call()


def test_patches_of_series(generator):
    """Every second sample of three channels, place by place."""
    x = torch.randn(20, 3, 30, generator=generator, dtype=torch.float64)
    features = PatchFeatures.of(
        x, num_filters=4, size=5, cells=2, dilation=2, series=True, generator=generator
    )
    found, rows = features(x), x.float()[:1]
    expected = torch.zeros(2, 8)
    for start, weights in enumerate(windows(22, 2).float()):
        patch = rows[0, :, start : start + 9 : 2]
        contrast = patch.var(correction=0) + features.contrast
        products = (features.filters[:, :, 0] * patch).sum((1, 2)) / contrast.sqrt()
        beyond = torch.cat([products - 0.5, -products - 0.5]).clamp(min=0)
        expected += torch.outer(weights, beyond)
    assert features.num_features == 16
    assert_close(found[0], expected.flatten() / expected.norm(), tolerance=1e-5)
    one = PatchFeatures.of(x[:, 0], num_filters=4, cells=1, series=True, generator=generator)
    assert one(x[:, 0]).shape == (20, 8)


@pytest.mark.slow
def test_they_cost_a_few_times_as_much_as_edges(generator):
    """A ratio within one run."""
    x = torch.rand(256, 28, 28, generator=generator)
    maps = {"edges": OrientedEnergy(), "patches": PatchFeatures.of(x, generator=generator)}
    calls = {name: functools.partial(feature_map, x) for name, feature_map in maps.items()}
    seconds = interleaved(calls, 5)
    edges, patches = (statistics.median(seconds[name]) for name in maps)
    print(f"patches take {patches / edges:.1f} times as long as oriented edges")
    assert patches < 6 * edges
