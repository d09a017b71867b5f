"""The libraries that policies are made for, imported as a test needs it, or else it is skipped."""

import importlib.util

import pytest

from experiments.policies import declare_operators

TARGETS = ("torchvision", "kornia")


def needed(library):
    """The library; its absence is a skip that pytest shows."""
    if library == "torchvision" and importlib.util.find_spec("torchvision"):
        declare_operators()
    return pytest.importorskip(library)
