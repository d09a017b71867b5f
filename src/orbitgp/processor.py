"""How fast this machine multiplies: what turns a time budget into a size."""

import functools
import platform
from collections.abc import Mapping
from typing import Any

import torch

FLOPS = 70e9
"""Operations a second of one thread in products of float32 matrices."""

FLOAT64_FLOPS = 50e9
"""The same in float64, or as much as a factorisation makes of it."""

ENTRIES = 0.5e9
"""Exponentials, with the passes over memory around them, a second of one thread."""


@functools.cache
def multiplies_bfloat16() -> bool:
    """Whether the processor has units for products of bfloat16 matrices (AMX).

    Without them such products are slower than those of float32 (see
    docs/decisions/precision-and-speed.md). Versions of PyTorch that do not say are taken to have
    none.
    """
    return bool(_capabilities().get("amx_bf16", False))


def processor_name() -> str:
    """As its maker calls it, if PyTorch knows, or its architecture."""
    return str(_capabilities().get("cpu_name") or platform.machine())


def _capabilities() -> Mapping[str, Any]:
    return getattr(torch.cpu, "get_capabilities", dict)()
