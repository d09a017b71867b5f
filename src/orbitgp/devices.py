"""On which device a model is computed, and how fast and large that is."""

import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from orbitgp.errors import InputError
from orbitgp.memory import available_memory

FLOPS = 70e9
"""Operations a second of one thread in products of float32 matrices."""

FLOAT64_FLOPS = 50e9
"""The same in float64, or as much as a factorisation makes of it."""

ENTRIES = 0.5e9
"""Exponentials, with the passes over memory around them, a second of one thread."""

PROBE = 2048
"""Rows of the matrices that a device is timed with."""


@dataclass(frozen=True)
class Rates:
    """What a device does in a second, with all of its threads.

    Products of float32 matrices and of float64 ones in operations, and exponentials, with the
    passes over memory around them, in entries.
    """

    flops: float
    float64_flops: float
    entries: float


def chosen_device(device: str | torch.device) -> torch.device:
    """The device of a name, if it is there; "auto" is a GPU if there is one.

    Of several processes of `torchrun`, each takes the GPU of its local rank.
    """
    if device == "auto":
        if not torch.cuda.is_available():
            return torch.device("cpu")
        rank = int(os.environ.get("LOCAL_RANK", "0"))
        return torch.device("cuda", rank % torch.cuda.device_count())
    try:
        chosen = torch.device(device)
        torch.zeros(1, dtype=torch.float64, device=chosen).item()
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        hint = (
            "it has no float64, which factorisations need, so take device='cpu'"
            if str(device).startswith("mps")
            else "expected 'auto', 'cpu', or a device of this machine such as 'cuda:0'"
        )
        raise InputError(f"device={str(device)!r} cannot be used ({reason}); {hint}") from None
    return chosen


def rates_of(device: torch.device) -> Rates:
    """Known ones of a processor, so that sizes do not depend on its load; measured of others."""
    if device.type == "cpu":
        threads = torch.get_num_threads()
        return Rates(threads * FLOPS, threads * FLOAT64_FLOPS, threads * ENTRIES)
    return _measured(device)


@functools.cache
def _measured(device: torch.device) -> Rates:
    """Once for each device."""
    single = torch.ones(PROBE, PROBE, device=device)
    double = single.double()
    cube = 2.0 * PROBE**3
    flops, float64_flops = (cube / _seconds(matrix.mm, matrix) for matrix in (single, double))
    return Rates(flops, float64_flops, PROBE**2 / _seconds(torch.exp, single))


def _seconds(function: Callable[[Tensor], Tensor], argument: Tensor) -> float:
    """Of one call, after a first one that does not count; the result is waited for."""
    function(argument).sum().item()
    start = time.perf_counter()
    function(argument).sum().item()
    return max(time.perf_counter() - start, 1e-9)


def memory_of(device: torch.device, processes: int = 1) -> float:
    """Return the bytes that are free on a GPU, or those of the machine.

    Processes of the same machine share the latter.
    """
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    here = min(processes, int(os.environ.get("LOCAL_WORLD_SIZE", processes)))
    return available_memory() / max(here, 1)
