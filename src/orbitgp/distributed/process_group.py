"""Several processes through a `torch.distributed` group that is already there.

Sums and broadcasts are all that is used, so any launcher and any backend will do. All
processes take the same decisions, since they take them from the same sums.
"""

import json
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from orbitgp import errors
from orbitgp.distributed.group import Group


class ProcessGroup(Group):
    """The default group of `torch.distributed`."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        own = dist.get_backend() == "nccl"
        self.device = torch.device("cuda", torch.cuda.current_device()) if own else "cpu"

    def add_(self, *tensors: Tensor) -> None:
        """One all-reduce of all numbers, in float64."""
        flat = [tensor.detach().to(self.device, torch.float64).flatten() for tensor in tensors]
        message = torch.cat(flat)
        dist.all_reduce(message)
        parts = message.split([len(part) for part in flat])
        for tensor, part in zip(tensors, parts, strict=True):
            tensor.detach().copy_(part.view(tensor.shape))

    def from_first(self, work: Callable[[], Any]) -> Any:
        """The result of the first process, or its error, at every process."""
        message = {}
        if self.rank == 0:
            try:
                message = {"result": work()}
            except errors.OrbitGPError as error:
                message = {"error": [type(error).__name__, str(error)]}
            except OSError as error:
                message = {"error": ["FileError", str(error)]}
        message = json.loads(self.bytes_from(0, json.dumps(message).encode()) or b"{}")
        if "error" in message:
            kind, text = message["error"]
            raise getattr(errors, kind)(text)
        return message["result"]

    def bytes_from(self, rank: int, data: bytes | None) -> bytes | None:
        """A broadcast of the length, −1 for nothing, then of the bytes."""
        length = torch.tensor([-1 if data is None else len(data)], device=self.device)
        dist.broadcast(length, rank)
        if length < 0:
            return None
        message = torch.zeros(int(length), dtype=torch.uint8, device=self.device)
        if self.rank == rank and data:
            message.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        if len(message):
            dist.broadcast(message, rank)
        return message.cpu().numpy().tobytes()
