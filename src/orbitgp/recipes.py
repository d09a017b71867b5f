"""The closed-form pass through engines that map and reduce: statistics are plain values that add.

Any engine will do that can run a function on shards and add up what comes back:

    chunk_statistics(model, examples, shard, num_shards, …)   map
    first + second                                            reduce

Here it is for Ray, whose cluster (`ray.init`) is the caller's to start. The draws belong to the
chunks, so the sum is that of one process, but for the order of its terms.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from orbitgp.distributed.group import Group
from orbitgp.errors import InputError
from orbitgp.inference.passes import Chunk, Examples, check_coverage, chunk_generator
from orbitgp.model import InvariantGP, Pairs
from orbitgp.stochastic.bound import statistics, stream_covariances
from orbitgp.stochastic.closed_form import accumulate
from orbitgp.values import SufficientStatistics


@torch.no_grad()
def chunk_statistics(
    model: InvariantGP,
    examples: Examples,
    rank: int,
    world_size: int,
    *,
    num_samples: int,
    pairs: Pairs,
    seed: int,
) -> SufficientStatistics:
    """(c, P, Q, κ, n) of the chunks of one process; zeros if it has none."""
    chunks = examples.chunks(rank, world_size)
    first = next(chunks, None)
    if first is None:
        draws = {"num_samples": num_samples, "generator": chunk_generator(seed, 0)}
        return statistics(model, examples.x[:1], examples.y[:1], pairs=pairs, **draws) * 0.0
    keyed = ((c.x, c.y, chunk_generator(seed, c.number)) for c in _chain(first, chunks))
    return accumulate(stream_covariances(model, keyed, num_samples=num_samples, pairs=pairs))


@torch.no_grad()
def pass_statistics(
    model: InvariantGP,
    examples: Examples,
    *,
    num_samples: int,
    pairs: Pairs,
    seed: int,
    group: Group,
) -> SufficientStatistics:
    """(c, P, Q, κ, n) of all data; each example is counted once, by one of the processes."""
    draws = {"num_samples": num_samples, "pairs": pairs, "seed": seed}
    total = chunk_statistics(model, examples, group.rank, group.size, **draws)
    count = torch.tensor(total.num_data, dtype=torch.float64)
    group.add_(total.constant, total.linear, total.gram, total.variance, count)
    check_coverage(count.item(), examples.num_data)
    return replace(total, num_data=count.item())


def ray_statistics(
    model: InvariantGP,
    examples: Examples,
    *,
    num_shards: int,
    num_samples: int,
    pairs: Pairs,
    seed: int,
) -> SufficientStatistics:
    """`pass_statistics` as Ray tasks: one for each shard, and a tree of sums.

    The model and data in memory are put into Ray's store once; data that are streamed are read
    where the tasks run. Take `mean_pairs` for q(u), and then `solve`.
    """
    ray = _started_ray()
    model_place, examples_place = ray.put(model), ray.put(examples)

    of_shard, add = ray.remote(_of_shard), ray.remote(_add)
    draws = {"num_samples": num_samples, "pairs": pairs, "seed": seed}
    parts = [
        of_shard.remote(model_place, examples_place, shard, num_shards, draws)
        for shard in range(num_shards)
    ]
    while len(parts) > 1:  # neighbours first: no task and no process ever holds more than two
        neighbours = zip(parts[::2], parts[1::2], strict=False)
        parts = [add.remote(*pair) for pair in neighbours] + parts[len(parts) // 2 * 2 :]
    total = ray.get(parts[0])
    check_coverage(total.num_data, examples.num_data)
    return total


def _chain(first: Chunk, rest: Iterator[Chunk]) -> Iterator[Chunk]:
    yield first
    yield from rest


def _of_shard(
    model: InvariantGP, examples: Examples, shard: int, num_shards: int, draws: dict[str, Any]
) -> SufficientStatistics:
    return chunk_statistics(model, examples, shard, num_shards, **draws)


def _add(first: SufficientStatistics, second: SufficientStatistics) -> SufficientStatistics:
    return first + second


def _started_ray() -> Any:
    try:
        import ray  # pyright: ignore[reportMissingImports] - an extra that takes 200 MB
    except ImportError:
        raise InputError('this recipe needs Ray: pip install "orbitgp[ray]"') from None
    if not ray.is_initialized():
        raise InputError("no Ray cluster is connected; call ray.init() first")
    return ray
