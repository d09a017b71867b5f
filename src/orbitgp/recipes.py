"""The closed-form pass through engines that map and reduce: statistics are plain values that add.

Any engine will do that can run a function on shards and add up what comes back:

    chunk_statistics(model, examples, shard, num_shards, …)   map
    first + second                                            reduce

Here it is for Ray, whose cluster (`ray.init`) is the caller's to start. The draws belong to the
chunks, so the sum is that of one process, but for the order of its terms.
"""

from typing import Any

from orbitgp.errors import InputError
from orbitgp.model import InvariantGP, Weigh
from orbitgp.training.passes import Examples, check_coverage, chunk_statistics
from orbitgp.values import SufficientStatistics


def ray_statistics(
    model: InvariantGP,
    examples: Examples,
    *,
    num_shards: int,
    num_samples: int,
    weigh: Weigh,
    seed: int,
) -> SufficientStatistics:
    """`pass_statistics` as Ray tasks: one for each shard, and a tree of sums.

    The model and data in memory are put into Ray's store once; data that are streamed are read
    where the tasks run. Take `mean_pairs` for q(u), and then `solve`.
    """
    ray = _started_ray()
    model_place, examples_place = ray.put(model), ray.put(examples)

    of_shard, add = ray.remote(_of_shard), ray.remote(_add)
    draws = {"num_samples": num_samples, "weigh": weigh, "seed": seed}
    parts = [
        of_shard.remote(model_place, examples_place, shard, num_shards, draws)
        for shard in range(num_shards)
    ]
    while len(parts) > 1:  # neighbours first: no task and no process ever holds more than two
        pairs = zip(parts[::2], parts[1::2], strict=False)
        parts = [add.remote(*pair) for pair in pairs] + parts[len(parts) // 2 * 2 :]
    total = ray.get(parts[0])
    check_coverage(total.num_data, examples.num_data)
    return total


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
