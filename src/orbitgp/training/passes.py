"""Passes over all data in numbered chunks, which any number of processes share.

The draws of a chunk come from a generator of its own, made of the seed of the pass and the number
of the chunk. So a pass has the same result, but for the order of its sums, whoever takes a chunk.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from orbitgp.data.stream import Stream
from orbitgp.errors import InputError
from orbitgp.model import InvariantGP, Weigh, unbiased_pairs
from orbitgp.objective import bounds_of, statistics, stream_covariances
from orbitgp.posterior.algebra import solve_rows
from orbitgp.posterior.closed_form import accumulate
from orbitgp.training.group import Group
from orbitgp.ustatistics import pair_mean_of_inner
from orbitgp.values import SufficientStatistics

CHUNK = 512
"""Rows of a chunk of data in memory."""


def portion(total: int, count: int, ends: tuple[int, int]) -> int:
    """What each of so many gets of the total, within these ends."""
    fewest, most = ends
    return min(max(total // count, fewest), most)


@dataclass(frozen=True)
class Chunk:
    """Some of the data, with a number that no other chunk of the pass has."""

    number: int
    x: Tensor
    y: Tensor


class Examples(ABC):
    """Labelled data that can be passed over again and again."""

    num_data: int
    """N."""

    x: Tensor
    y: Tensor
    """Those in memory: all of them, or a sample."""

    @abstractmethod
    def chunks(self, rank: int, world_size: int) -> Iterator[Chunk]:
        """The chunks of one process; those of all processes hold every example once."""


class Resident(Examples):
    """Data in memory, all of them in every process."""

    def __init__(self, x: Tensor, y: Tensor) -> None:
        self.x, self.y, self.num_data = x, y, len(x)

    def chunks(self, rank: int, world_size: int) -> Iterator[Chunk]:
        """Chunk r, r + W, r + 2W, … of `CHUNK` rows each, for rank r of W."""
        for number in range(rank, -(-self.num_data // CHUNK), world_size):
            rows = slice(number * CHUNK, (number + 1) * CHUNK)
            yield Chunk(number, self.x[rows], self.y[rows])


class Streamed(Examples):
    """Data that are read anew in every pass, each process reading its own batches."""

    def __init__(
        self,
        stream: Stream,
        prepare: Callable[[np.ndarray, np.ndarray], tuple[Tensor, Tensor]],
        num_data: int,
        sample: tuple[Tensor, Tensor],
    ) -> None:
        self.stream, self.prepare, self.num_data = stream, prepare, num_data
        self.x, self.y = sample

    def chunks(self, rank: int, world_size: int) -> Iterator[Chunk]:
        """Batch by batch, as tensors."""
        for batch in self.stream.batches(rank, world_size):
            x, y = self.prepare(np.asarray(batch.x), np.asarray(batch.y))
            if x.shape[1:] != self.x.shape[1:]:
                raise InputError(
                    f"batch {batch.number} has inputs of shape {list(x.shape[1:])}; those before "
                    f"it had {list(self.x.shape[1:])}"
                )
            yield Chunk(batch.number, x, y)


def chunk_generator(seed: int, number: int) -> torch.Generator:
    """The generator of one chunk of a pass.

    Torch's generators have 2³² seeds, so of many chunks some pair may share its noise, by chance.
    """
    (state,) = np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state) >> 1)


def pass_seed(generator: torch.Generator) -> int:
    """A seed for one pass."""
    return int(torch.randint(2**62, (1,), generator=generator, device=generator.device))


@torch.no_grad()
def chunk_statistics(
    model: InvariantGP,
    examples: Examples,
    rank: int,
    world_size: int,
    *,
    num_samples: int,
    weigh: Weigh,
    seed: int,
) -> SufficientStatistics:
    """(c, P, Q, κ, n) of the chunks of one process; zeros if it has none."""
    chunks = examples.chunks(rank, world_size)
    first = next(chunks, None)
    if first is None:
        draws = {"num_samples": num_samples, "generator": chunk_generator(seed, 0)}
        return statistics(model, examples.x[:1], examples.y[:1], weigh=weigh, **draws) * 0.0
    keyed = ((c.x, c.y, chunk_generator(seed, c.number)) for c in _chain(first, chunks))
    return accumulate(stream_covariances(model, keyed, num_samples=num_samples, weigh=weigh))


@torch.no_grad()
def pass_statistics(
    model: InvariantGP,
    examples: Examples,
    *,
    num_samples: int,
    weigh: Weigh,
    seed: int,
    group: Group,
) -> SufficientStatistics:
    """(c, P, Q, κ, n) of all data; each example is counted once, by one of the processes."""
    draws = {"num_samples": num_samples, "weigh": weigh, "seed": seed}
    total = chunk_statistics(model, examples, group.rank, group.size, **draws)
    count = torch.tensor(total.num_data, dtype=torch.float64)
    group.add_(total.constant, total.linear, total.gram, total.variance, count)
    check_coverage(count.item(), examples.num_data)
    return replace(total, num_data=count.item())


@torch.no_grad()
def pass_bounds(
    model: InvariantGP,
    examples: Resident,
    *,
    num_samples: int,
    weigh: Weigh,
    seed: int,
    group: Group,
) -> Float[Tensor, "N"]:
    """The bound at each example, an unbiased estimate; N numbers to send."""
    factor = model.posterior.prior_factor(model.kernel)
    values = torch.zeros(examples.num_data, dtype=torch.float64)
    for chunk in examples.chunks(group.rank, group.size):
        start = chunk.number * CHUNK
        bounds = _bounds(model, chunk, factor, num_samples, weigh, seed)
        values[start : start + len(bounds)] = bounds
    group.add_(values)
    return values


@torch.no_grad()
def mean_unexplained(
    model: InvariantGP,
    x: Tensor,
    y: Tensor,
    prior_factor: Float[Tensor, "M M"],
    *,
    num_samples: int,
    seed: int,
) -> float:
    """mean λ_n d_n for the variances d_n that u leaves unexplained: an unbiased estimate."""
    weigh, total = unbiased_pairs(max(1, num_samples // 2)), 0.0
    keyed = [(x, y, chunk_generator(seed, 0))]
    for part, bound in stream_covariances(model, keyed, num_samples=num_samples, weigh=weigh):
        whitened = solve_rows(prior_factor, part.groups.flatten(0, 1))
        explained = whitened.unflatten(0, part.groups.shape[:2])
        unexplained = part.variance - pair_mean_of_inner(explained, part.weights)
        total += (bound.precision.double().mean(1) * unexplained).sum().item()
    return total / len(x)


def check_coverage(counted: float, expected: int) -> None:
    """Every example once in every pass, or the bound would be that of other data."""
    if counted != expected:
        raise InputError(
            f"a pass gave {counted:.0f} examples where there are {expected}: the source must give "
            "every example once in each pass (look for drop_last, padding, or files that changed), "
            "and all processes must have the same data"
        )


def _chain(first: Chunk, rest: Iterator[Chunk]) -> Iterator[Chunk]:
    yield first
    yield from rest


def _bounds(
    model: InvariantGP,
    chunk: Chunk,
    factor: Float[Tensor, "M M"],
    num_samples: int,
    weigh: Weigh,
    seed: int,
) -> Float[Tensor, "N"]:
    keyed = [(chunk.x, chunk.y, chunk_generator(seed, chunk.number))]
    stream = stream_covariances(model, keyed, num_samples=num_samples, weigh=weigh)
    return bounds_of(stream, model.posterior.q, factor)
