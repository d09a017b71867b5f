"""The processes that share a run: one by itself, or those that a launcher has joined."""

import sys
from collections.abc import Callable
from typing import Any

from torch import Tensor


class Group:
    """One process by itself: nothing to send, everything its own."""

    rank: int = 0
    size: int = 1

    def share(self, count: int) -> slice:
        """The rows of this process, of so many: one after another, as even as can be."""
        return slice(count * self.rank // self.size, count * (self.rank + 1) // self.size)

    def add_(self, *tensors: Tensor) -> None:
        """Sum each tensor over all processes, in place, in one message."""

    def from_first(self, work: Callable[[], Any]) -> Any:
        """What the first process makes, as JSON has it, or its error; the others wait for it."""
        return work()

    def bytes_from(self, rank: int, data: bytes | None) -> bytes | None:
        """What the process of this rank holds: bytes, or nothing."""
        del rank
        return data

    def wait(self) -> None:
        """Until all processes are here."""


ALONE = Group()


def current_group() -> Group:
    """The group that was joined before, by torchrun or any other launcher; else one process."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return ALONE
    from orbitgp.training.distributed import ProcessGroup

    return ProcessGroup()
