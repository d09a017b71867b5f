"""Checkpoints of a run: none at all, or one file that is always whole."""

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from orbitgp.sealed import read_sealed, remove_leftovers, write_sealed

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

    def __init__(self, path: Path) -> None:
        self.path = path

    def keep(self, run: Resumable) -> None:
        """Write the state, then put it in the place of the one before."""
        config, tensors = run.state()
        write_sealed(self.path, FORM, tensors, config)

    def restore(self, run: Resumable) -> None:
        """Go on from the file, if there is one."""
        remove_leftovers(self.path.parent)
        if self.path.exists():
            _, tensors, config = read_sealed(self.path, FORM)
            run.restore(config, tensors)
