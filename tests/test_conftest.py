"""What tests switch on or off is back as it was, also after a failure."""

import jaxtyping
import pytest

from tests.conftest import without_checks_of_shapes


@without_checks_of_shapes()
def fail():
    assert jaxtyping.config.jaxtyping_disable
    raise RuntimeError("inside")


def test_a_failure_switches_checks_of_shapes_on_again():
    before = jaxtyping.config.jaxtyping_disable
    with pytest.raises(RuntimeError, match="inside"):
        fail()
    assert jaxtyping.config.jaxtyping_disable == before
