"""What the phases of learning report."""

import pytest

from orbitgp import InvariantGPClassifier, InvariantGPRegressor
from orbitgp.fit import learning
from tests.conftest import QUICK
from tests.test_estimators import bars

pytestmark = pytest.mark.usefixtures("untyped")


@pytest.fixture
def climbed(monkeypatch):
    """The evidence of the subset of L-BFGS at each of its steps, and the subset's size."""
    seen, climb = [], learning.climb

    def spy(landscape, *start, max_steps, on_step):
        def step(z, scales):
            seen.append((landscape.at(z).evidence, landscape.size))
            on_step(z, scales)

        return climb(landscape, *start, max_steps=max_steps, on_step=step)

    monkeypatch.setattr(learning, "climb", spy)
    return seen


def test_the_curve_has_the_evidence_of_the_subset_and_its_size(climbed):
    """Not scaled to all 60 inputs."""
    model = InvariantGPClassifier("rotation", settings=QUICK, random_state=0).fit(*bars(60))
    curve = model.evidence_curve_[1:]  # the first is of the scan
    assert len(curve) > 1
    values, sizes = zip(*climbed[: len(curve)], strict=True)
    assert [point.num_data for point in curve] == list(sizes) == [QUICK.climb_size] * len(curve)
    assert [point.evidence for point in curve] == pytest.approx(values, rel=1e-9)
    assert curve[0].name == f"evidence of {QUICK.climb_size} inputs"


def test_the_curve_of_a_regression_is_in_the_unit_of_its_targets():
    """p(y) dy = p(t) dt for t = y / 1000: each input has log 1000 nats less."""
    x, labels = bars(60)
    y = (labels == labels[0]) + 0.5
    small, large = (
        InvariantGPRegressor("rotation", settings=QUICK, random_state=0).fit(x, unit * y)
        for unit in (1.0, 1000.0)
    )
    gaps = [
        a.per_input - b.per_input
        for a, b in zip(small.evidence_curve_, large.evidence_curve_, strict=True)
    ]
    assert gaps == pytest.approx([6.907755] * len(gaps), rel=1e-4)
