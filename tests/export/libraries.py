"""The libraries that policies are made for, imported as a test needs it, or else it is skipped."""

import importlib.util
import os

import pytest

from experiments.policies import declare_operators

TARGETS = ("torchvision", "kornia", "albumentations")


def needed(library):
    """The library; its absence is a skip that pytest shows."""
    os.environ["NO_ALBUMENTATIONS_UPDATE"] = "1"  # or it asks the network for its newest version
    if library == "torchvision" and importlib.util.find_spec("torchvision"):
        declare_operators()
    return pytest.importorskip(library)
