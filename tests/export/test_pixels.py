"""Exported transforms make the images that the orbit makes, with draws of the same distribution."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest
from sklearn.datasets import load_sample_image

from orbitgp import export_policy
from orbitgp.orbits.base import FiniteOrbit
from orbitgp.orbits.compose import parts_of
from tests.export.draws import many_draws, noise_of, run, transformed
from tests.export.libraries import TARGETS, needed
from tests.export.orbits import ORBITS

pytestmark = pytest.mark.usefixtures("untyped")

NUM_IMAGES = 200
LARGEST = 2 / 255
NUM_DRAWS = 2000


@pytest.fixture(scope="module")
def photograph():
    return torch.from_numpy(load_sample_image("china.jpg").copy()).permute(2, 0, 1).float() / 255


def crops(photograph, shape, count=NUM_IMAGES):
    """Parts of a photograph, at random places."""
    generator = torch.Generator().manual_seed(0)
    height, width = shape[1:]
    rows = torch.randint(photograph.shape[1] - height, (count,), generator=generator).tolist()
    columns = torch.randint(photograph.shape[2] - width, (count,), generator=generator).tolist()
    places = zip(rows, columns, strict=True)
    return torch.stack([photograph[:, r : r + height, c : c + width] for r, c in places])


@pytest.mark.parametrize("library", TARGETS)
@pytest.mark.parametrize("name", ORBITS)
def test_images_are_those_of_the_orbit(library, name, photograph):
    needed(library)
    torch.manual_seed(0)
    orbit, shape = ORBITS[name]
    images = crops(photograph, shape)
    points, draws = transformed(run(orbit, library), library, images)
    expected = images
    if orbit.size > 1:
        noise = noise_of(orbit, draws)
        expected = orbit.transform(images, noise.unsqueeze(1)).squeeze(1).detach()
        assert (expected - images).abs().amax(1).gt(0.02).float().mean() > 0.1  # something moved
    difference = (points - expected).abs().max().item()
    print(f"{library}, {name}: largest difference {255 * difference:.4f}/255")
    assert difference <= LARGEST


@pytest.mark.parametrize("library", TARGETS)
def test_draws_have_the_distribution_of_the_orbit(library):
    """Every random number is uniform where the orbit's noise is: 23 tests for each, p > 1e-4."""
    needed(library)
    torch.manual_seed(1)
    orbit, _ = ORBITS["everything"]
    noise = noise_of(orbit, many_draws(run(orbit, library), NUM_DRAWS)).numpy()
    first = 0
    for part in parts_of(orbit):
        size = min(part.noise_size, 6)
        for column in noise[:, first : first + size].T:
            if isinstance(part, FiniteOrbit):
                counts = np.bincount(column.astype(int), minlength=int(part.size))
                assert len(counts) == part.size
                assert chisquare(counts).pvalue > 1e-4, part
            else:
                assert kstest(column, "uniform").pvalue > 1e-4, part
        first += part.noise_size if part.noise_size < 1000 else 16  # noise of a smaller image
    assert first == noise.shape[1]
    correlation = np.corrcoef(noise.T) - np.eye(first)
    assert np.abs(correlation).max() < 6 / NUM_DRAWS**0.5


def test_what_is_wrong_is_found(photograph):
    """The tests above can fail: by the other sign of a rotation, and by a wider range."""
    needed("kornia")
    orbit, shape = ORBITS["affine with free ends"]
    source = export_policy(orbit, "kornia").source.replace("deg2rad(own", "deg2rad(-own")
    images, names = crops(photograph, shape), {"__name__": "policy"}
    exec(source, names)
    points, draws = transformed(names, "kornia", images)
    expected = orbit.transform(images, noise_of(orbit, draws).unsqueeze(1)).squeeze(1)
    assert (points - expected).abs().max() > 10 * LARGEST
    draws = many_draws(run(orbit, "kornia"), NUM_DRAWS)
    noise = noise_of(orbit, {**draws, "0_rotation": 1.1 * draws["0_rotation"]})
    assert kstest(noise[:, 0].numpy(), "uniform").pvalue < 1e-4
