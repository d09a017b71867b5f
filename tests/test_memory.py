"""How much memory there is: on all systems, and in a control group."""

import ctypes
import math
import os
from types import SimpleNamespace

import pytest

import orbitgp.memory as memory
from orbitgp.memory import available_memory


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A machine of 64 GB without control groups."""
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 2**24}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__, raising=False)
    return tmp_path


def limited(root, line, path, text):
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text(line)
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return available_memory()


def test_this_machine_has_some():
    assert 1e8 < available_memory() < 1e15


def test_all_of_a_machine_without_limits(root):
    assert available_memory() == 2**36


@pytest.mark.parametrize("folder", ["", "user/job", "user"])
def test_a_control_group_has_less(root, folder):
    """Its own limit, or that of a group around it; in a container it is at the top itself."""
    place = f"sys/fs/cgroup/{folder}/memory.max"
    assert limited(root, "0::/user/job\n", place, "2000000000\n") == 2e9
    assert limited(root, "0::/user/job\n", place, "max\n") == 2**36
    assert limited(root, "0::/user/job\n", place, f"{2**40}\n") == 2**36


def test_a_control_group_of_version_1_has_less(root):
    place = "sys/fs/cgroup/memory/job/memory.limit_in_bytes"
    lines = "5:cpu:/job\n4:cpuset,memory:/job\n"
    assert limited(root, lines, place, "3000000000\n") == 3e9
    assert limited(root, "4:cpuset:/job\n", place, "3000000000\n") == 2**36


def windows(succeeds):
    def status(pointer):
        pointer._obj.total = 8 * 2**30
        assert pointer._obj.length == ctypes.sizeof(pointer._obj) == 64  # of MEMORYSTATUSEX
        return succeeds

    return SimpleNamespace(kernel32=SimpleNamespace(GlobalMemoryStatusEx=status))


@pytest.mark.parametrize(("succeeds", "expected"), [(1, 2.0**33), (0, math.inf)])
def test_windows_is_asked_where_there_is_no_sysconf(root, monkeypatch, succeeds, expected):
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.setattr(ctypes, "windll", windows(succeeds), raising=False)
    assert available_memory() == expected


def test_nothing_is_refused_where_no_system_says(root, monkeypatch):
    monkeypatch.delattr(os, "sysconf")
    monkeypatch.delattr(ctypes, "windll", raising=False)
    assert available_memory() == math.inf
