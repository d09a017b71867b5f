"""What the parts of a file are made of, and how a value that cannot be is refused."""

from collections.abc import Mapping
from typing import Any, NoReturn

from torch import Tensor

from orbitgp.errors import FileError

GIVEN = {"kind": "given"}

Config = dict[str, Any]
Tensors = Mapping[str, Tensor]


def integer(value: object) -> int:
    """A whole number of a sane size."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 2**31:
        refuse(f"{value!r:.40}, where a whole number was expected")
    return value


def refuse(what: str) -> NoReturn:
    """Say what the file holds that no model has."""
    raise FileError(f"the file describes {what}; it was damaged, or not written by orbitgp")
