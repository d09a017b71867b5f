"""Checkpoints of a run: none at all, or one file that is always whole."""

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from orbitgp.distributed.group import ALONE, Group
from orbitgp.sealed import read_bytes, unseal, write_sealed

FORM = "orbitgp checkpoint"


@runtime_checkable
class Resumable(Protocol):
    """What can be stopped and taken up again."""

    def state(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """All of it, as plain values and tensors."""
        ...

    def restore(self, config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        """Go on where `state` was taken."""
        ...


class Checkpoint:
    """Keeps nothing: for runs without a folder."""

    def keep(self, run: Resumable) -> None:
        """Remember where the run stands."""

    def restore(self, run: Resumable) -> None:
        """Bring the run to where it stood, if anything was kept."""


class FileCheckpoint(Checkpoint):
    """Keeps the newest state in one file, replaced as a whole."""

    def __init__(self, path: Path, group: Group = ALONE) -> None:
        self.path, self.group = path, group

    def keep(self, run: Resumable) -> None:
        """Write the state, then put it in the place of the one before; the first process does."""
        if self.group.rank == 0:
            config, tensors = run.state()
            write_sealed(self.path, FORM, tensors, config)

    def restore(self, run: Resumable) -> None:
        """Go on from the file of the first process, if there is one."""
        data = self.group.bytes_of_first(self._read)
        if data is not None:
            _, tensors, config = unseal(data, self.path, FORM)
            run.restore(config, tensors)

    def _read(self) -> bytes | None:
        return read_bytes(self.path) if self.path.exists() else None
