"""The processes that share a run: one by itself, or those that a launcher has joined."""

from collections.abc import Callable
from typing import Any

from torch import Tensor


class Group:
    """One process by itself: nothing to send, everything its own."""

    rank: int = 0
    size: int = 1

    def add_(self, *tensors: Tensor) -> None:
        """Sum each tensor over all processes, in place, in one message."""

    def from_first(self, work: Callable[[], Any]) -> Any:
        """What the first process makes, as JSON has it, or its error; the others wait for it."""
        return work()

    def bytes_from(self, rank: int, data: bytes | None) -> bytes | None:
        """What the process of this rank holds: bytes, or nothing."""
        del rank
        return data

    def bytes_of_first(self, read: Callable[[], bytes | None]) -> bytes | None:
        """What the first process reads, or its error, at every process."""
        held: list[bytes | None] = []
        self.from_first(lambda: held.append(read()))
        return self.bytes_from(0, held[0] if held else None)


ALONE = Group()
