"""The processes of a command that a launcher, such as torchrun, started."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from orbitgp.cli.output import Output

SEPARATE_STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"


@dataclass(frozen=True)
class Place:
    """Which of how many processes this is."""

    rank: int = 0
    size: int = 1


@contextmanager
def launched(output: Output) -> Iterator[Place]:
    """Join the group that the launcher describes, if there is one, while a command runs."""
    alone = os.environ.get("WORLD_SIZE", "1") == "1"
    if alone or not {"RANK", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys():
        yield Place()
        return
    import torch.distributed as dist

    # gloo is on every system; `ProcessGroup` sends all sums by way of the CPU, also those of GPUs
    dist.init_process_group("gloo")
    place = Place(dist.get_rank(), dist.get_world_size())
    restarts = int(os.environ.get("TORCHELASTIC_MAX_RESTARTS", "0"))
    if place.rank == 0 and restarts and os.environ.get(SEPARATE_STORE) != "1":
        output.note(f"set {SEPARATE_STORE}=1 for torchrun, or a restart may hang")
    try:
        yield place
    finally:
        dist.destroy_process_group()
