"""What all tests share: one tolerance, one z-test, one generator."""

import math
from contextlib import contextmanager

import jaxtyping
import numpy as np
import pytest
import torch

from orbitgp import TrainingSettings

QUICK = TrainingSettings(
    max_steps=4, scan_size=40, scan_draws=4, climb_size=40, climb_draws=4, search_size=60
)
"""Learning that takes a second, where a test is about something else."""

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def assert_close(actual, expected, *, tolerance=None):
    """Equal up to the tolerance of the dtype; a looser one is a reviewed act."""
    if tolerance is None:
        tolerance = TOLERANCE[actual.dtype]
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def assert_same_to_rounding(actual, expected):
    """Predictions of two copies of a model: products may depend on where in memory a copy is."""
    np.testing.assert_allclose(actual, expected, rtol=1e-11, atol=1e-13)


def assert_mean(draws, expected, name):
    """|z| < 4 for the mean of independent draws [R, ...] against an exact value; shows errors."""
    draws = draws.flatten(1) if draws.ndim > 1 else draws.unsqueeze(1)
    expected = expected.reshape(-1)
    error = draws.std(0) / math.sqrt(len(draws))
    difference = draws.mean(0) - expected
    assert (error > 0).any(), f"{name}: the draws do not vary, so nothing was tested"
    exact = error == 0
    assert_close(difference[exact], torch.zeros_like(difference[exact]), tolerance=1e-9)
    z = (difference / error)[~exact]
    print(
        f"{name}: {z.numel()} values, largest |z| {z.abs().max():.2f}, "
        f"standard errors {error[~exact].min():.2g} … {error.max():.2g}"
    )
    assert z.abs().max() < 4, f"{name}: z = {z.tolist()}, standard errors {error.tolist()}"


def concrete(cls):
    """Every subclass that can be made."""
    for sub in cls.__subclasses__():
        if not sub.__abstractmethods__:
            yield sub
        yield from concrete(sub)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(20181)


@pytest.fixture
def float64():
    """Parameters and draws in float64 for the length of a test."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def without_checks_of_shapes():
    """As users have it, and twice as fast: for long work whose functions other tests check.

    A decorator, too, for fixtures that tests share.
    """
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)


@pytest.fixture
def untyped():
    """No shapes checked at run time for the length of a test."""
    with without_checks_of_shapes():
        yield
