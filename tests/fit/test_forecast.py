"""A fit says how long it will take."""

import pytest

from orbitgp import Callback, InvariantGPClassifier
from tests.conftest import QUICK
from tests.test_estimators import bars

pytestmark = pytest.mark.usefixtures("untyped")


class Said(Callback):
    """What was announced."""

    def __init__(self):
        self.lines = []

    def announced(self, message):
        self.lines.append(message)


def lines(orbit, num_data, **options):
    said = Said()
    images, labels = bars(num_data)
    model = InvariantGPClassifier(orbit, random_state=0, callbacks=[said], **options)
    model.fit(images, labels)
    return said.lines


def test_every_step_is_announced_with_its_size():
    found = lines("affine", 60, settings=QUICK)
    assert found[0].startswith("exact inference: 60 inputs × 64 draws of their orbits, about ")
    assert [line[:11] for line in found[1:]] == [f"step {step} of 5" for step in range(1, 6)]
    assert "by the evidence of 40 inputs" in found[2]
    bound = lines("affine", 60, settings=QUICK, num_inducing=20)
    assert "20 inducing variables, about" in bound[0]
