"""The libraries that policies are made for, imported as a test needs it, or else it is skipped."""

import importlib.util
from pathlib import Path

import pytest
import torch

TARGETS = ("torchvision", "kornia")

OPERATORS = {
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


def needed(library):
    """The library; its absence is a skip that pytest shows."""
    if library == "torchvision" and importlib.util.find_spec("torchvision"):
        declare_operators()
    return pytest.importorskip(library)


def declare_operators():
    """Names that torchvision asks for, if its compiled part was built for another torch.

    A build for CUDA beside a torch for processors cannot load its own operators, of which
    transforms use none.
    """
    (folder,) = importlib.util.find_spec("torchvision").submodule_search_locations
    try:
        for compiled in Path(folder).glob("_C*"):
            torch.ops.load_library(str(compiled))
    except OSError:
        for name, form in OPERATORS.items():
            if not hasattr(torch.ops.torchvision, name):
                torch.library.define(f"torchvision::{name}", form)
