"""The group of processes that this one belongs to."""

import sys

from orbitgp.distributed.group import ALONE, Group


def current_group() -> Group:
    """The group that was joined before, by torchrun or any other launcher; else one process."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return ALONE
    from orbitgp.distributed.process_group import ProcessGroup

    return ProcessGroup()
