"""The memory that this process may use, by the standard library alone."""

import ctypes
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path("/")
"""Where the files of control groups are looked for."""


def available_memory() -> float:
    """Return the bytes of the machine, or of the control group if these are fewer.

    Where no system says, they are infinite: nothing is refused by guess.
    """
    return min(_machine_memory(), *_group_limits(), math.inf)


def _machine_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return _windows_memory()


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX: its own length, the load in per cent, and bytes."""

    _fields_ = (
        *(("length", ctypes.c_uint32), ("load", ctypes.c_uint32), ("total", ctypes.c_uint64)),
        ("others", ctypes.c_uint64 * 6),
    )


def _windows_memory() -> float:
    windows: Any = getattr(ctypes, "windll", None)
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    if windows is None or not windows.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)):
        return math.inf
    return float(status.total)


def _group_limits() -> Iterator[float]:
    """Limits of the control groups, version 1 or 2, of this process and of those around it."""
    try:
        lines = (ROOT / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            top, name = ROOT / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            top, name = ROOT / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        # in a container its own group is the top, whatever the path says
        own = top / path.lstrip("/")
        for folder in {top, own, *(parent for parent in own.parents if top in parent.parents)}:
            yield _limit_of(folder / name)


def _limit_of(path: Path) -> float:
    """Return the bytes in a file; infinity for "max", or if there is none."""
    try:
        return float(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return math.inf
