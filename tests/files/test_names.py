"""Every orbit that an estimator takes by its name, and every two of them, come back from a file."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from orbitgp import (
    Callback,
    InputError,
    InvariantGPClassifier,
    InvariantGPRegressor,
    TrainingSettings,
    load,
    save,
)
from orbitgp.orbits.names import IMAGES, NAMES, POINTS, SERIES
from tests.conftest import without_checks_of_shapes

pytestmark = pytest.mark.filterwarnings("ignore:nothing was learned")

SHAPES = {"images": (3, 4, 4), "series": (8,), "points": (4, 3), "any": (4,)}
KINDS = {
    "none": "any",
    **dict.fromkeys(IMAGES, "images"),
    **dict.fromkeys(SERIES, "series"),
    **dict.fromkeys(POINTS, "points"),
}
PAIRS = list(itertools.product(NAMES, NAMES))
SENSIBLE = [pair for pair in PAIRS if "none" not in pair and len({KINDS[n] for n in pair}) == 1]
LONGEST = "+".join(IMAGES)
ORBITS = [*NAMES, *map("+".join, SENSIBLE), LONGEST]

PREDICT = """
import sys
import numpy as np
import orbitgp
X, found = np.load("X.npz"), {}
for line in sys.stdin.read().split():
    place, kind = line.split(",")
    found[place] = orbitgp.load(f"{place}.safetensors").predict(X[kind])
np.savez("predictions.npz", **found)
"""


class Stop(Callback):
    """Ends learning where it begins, so that a fit takes a tenth of a second."""

    def started(self, max_steps):
        raise KeyboardInterrupt


def inputs(kind, num_inputs=6):
    """Every other one is larger."""
    x = np.random.default_rng(0).normal(size=(num_inputs, *SHAPES[kind]))
    x[1::2] += 3
    return x


def fitted(orbit, **options):
    x = inputs(KINDS[orbit.split("+")[0]])
    sizes = {"max_steps": 1, "scan_size": 6, "climb_size": 6, "search_size": 6}
    quick = {"settings": TrainingSettings(**sizes), "budget_seconds": 1e-6, "callbacks": [Stop()]}
    model = InvariantGPRegressor(orbit, feature_map=None, random_state=0, **quick, **options)
    return model.fit(x, x.flatten()[:: x[0].size])


@without_checks_of_shapes()
def test_every_name_and_pair_of_names_is_read_by_another_process(tmp_path):
    assert set(KINDS) == set(NAMES)
    assert len(SENSIBLE) == len(IMAGES) ** 2 + len(SERIES) ** 2 + len(POINTS) ** 2
    given, lines = {kind: inputs(kind) for kind in SHAPES}, []
    np.savez(tmp_path / "X.npz", **given)
    expected = []
    for place, orbit in enumerate(ORBITS):
        model, kind = fitted(orbit), KINDS[orbit.split("+")[0]]
        save(model, tmp_path / f"{place}.safetensors")
        expected.append(model.predict(given[kind]))
        lines.append(f"{place},{kind}")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PREDICT]
    subprocess.run(
        command, input="\n".join(lines), text=True, cwd=tmp_path, env=environment, check=True
    )
    with np.load(tmp_path / "predictions.npz") as found:
        for place, orbit in enumerate(ORBITS):
            np.testing.assert_allclose(found[str(place)], expected[place], atol=1e-6, err_msg=orbit)


@pytest.mark.usefixtures("untyped")
@pytest.mark.parametrize("orbit", ["dihedral+affine", "time-shift+time-warp", LONGEST])
def test_a_run_is_read_back(orbit, tmp_path):
    first = fitted(orbit, run=tmp_path)
    again = fitted(orbit, run=tmp_path)
    assert again.orbit_.describe() == first.orbit_.describe() == load(tmp_path).orbit_.describe()
    assert again.evidence_ == first.evidence_


@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair not in SENSIBLE], ids="+".join)
def test_pairs_without_sense_are_refused_before_a_fit(pair, tmp_path):
    first, second = pair
    with pytest.raises(InputError) as caught:
        fitted("+".join(pair), run=tmp_path / "run")
    message = str(caught.value)
    if "none" in pair:
        assert message == f"none is no part of a composition; got '{first}+{second}'"
    else:
        assert message.startswith(
            f"'{first}' acts on {KINDS[first]} and '{second}' on {KINDS[second]}; an orbit acts "
            "on one kind of inputs: "
        )
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", SERIES)
@pytest.mark.parametrize("shape", [(8, 8), (3, 8, 8), (12, 20)])
def test_series_that_look_like_images_are_refused(name, shape):
    with pytest.raises(InputError, match=f"'{name}' acts on series .*which look like images"):
        InvariantGPClassifier(name).fit(np.ones((4, *shape)), [0, 1, 0, 1])


@pytest.mark.parametrize("name", IMAGES)
def test_images_that_are_rows_are_refused(name):
    with pytest.raises(InputError, match=r"acts on images, .*pass image_shape=\(4, 4\)"):
        InvariantGPClassifier(name).fit(np.ones((4, 16)), [0, 1, 0, 1])


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("shape", [(16,), (4, 2), (3, 4, 4)])
def test_what_is_no_set_of_points_is_refused(name, shape):
    with pytest.raises(InputError, match=f"'{name}' acts on points"):
        InvariantGPClassifier(name).fit(np.ones((4, *shape)), [0, 1, 0, 1])


@pytest.mark.parametrize("shape", [(8,), (3, 30), (6, 13)])
def test_series_with_and_without_channels_are_taken(shape):
    x = np.random.default_rng(0).normal(size=(8, *shape))
    InvariantGPClassifier("time-shift").starting_from(x)
