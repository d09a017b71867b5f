"""What a statistics pass costs as data, processes and inducing points grow.

`python -m benchmarks.scale` measures, in one run each, against itself:
- weak scaling: two single-thread processes on twice the data against one;
- a stream of 10⁴, 10⁵ and 10⁶ made-up images: seconds of an example and peak memory;
- the bytes that processes send, for two sizes of data;
- the constants of the cost model in docs/scale.md, and how well it foretells other sizes.
"""

import argparse
import multiprocessing
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

import orbitgp
from benchmarks.timing import RESULTS, machine, write_result
from orbitgp.data.stream import Batch, Stream
from orbitgp.distributed.current import current_group
from orbitgp.distributed.group import ALONE, Group
from orbitgp.inference.passes import Examples, Streamed
from orbitgp.kernels import covariance
from orbitgp.recipes import pass_statistics

SIDE, CLASSES, BATCH = 28, 10, 500
STANDARD = {"num_points": 1000, "num_samples": 8}
OTHERS = ({"num_points": 500, "num_samples": 16}, {"num_points": 3000, "num_samples": 4})


class MadeUp(Stream):
    """Images that are made as they are read: only what the library keeps can grow."""

    def __init__(self, num_data: int) -> None:
        self.num_data = num_data
        self.images = np.random.default_rng(0).random((2 * BATCH, SIDE, SIDE), dtype=np.float32)

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Each batch is another window of the same numbers."""
        labels = np.arange(BATCH) % CLASSES
        for number in range(rank, self.num_data // BATCH, world_size):
            start = number % BATCH
            yield Batch(self.images[start : start + BATCH], labels, number)


def made_up(num_data: int) -> Examples:
    """As a pass takes them."""

    def prepare(x: np.ndarray, y: np.ndarray) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(x), torch.from_numpy(y)

    stream = MadeUp(num_data)
    first = next(stream.batches())
    return Streamed(stream, prepare, num_data, prepare(first.x[:1], first.y[:1]))


def model_of(num_points: int) -> orbitgp.InvariantGP:
    """Affine orbit, RBF, one-hot targets, random inducing points."""
    generator = torch.Generator().manual_seed(0)
    return orbitgp.InvariantGP(
        orbit=orbitgp.Affine(-0.1, 0.1),
        kernel=orbitgp.RBF(1.0, 10.0),
        posterior=orbitgp.InducingPosterior(
            torch.rand(num_points, SIDE * SIDE, generator=generator), CLASSES
        ),
        likelihood=orbitgp.OneHotGaussian(CLASSES),
    )


def timed_pass(
    model: orbitgp.InvariantGP, examples: Examples, num_samples: int, group: Group = ALONE
) -> float:
    """Seconds of one pass."""
    draws = {"num_samples": num_samples, "pairs": orbitgp.mean_pairs, "seed": 0}
    start = time.perf_counter()
    pass_statistics(model, examples, group=group, **draws)
    return time.perf_counter() - start


def weak_worker(rank: int, folder: str, num_data: int, repeats: int, results: Any) -> None:
    """One of two processes: rank 0 alone on n data, then both on 2n, in turns."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    model, group = model_of(STANDARD["num_points"]), current_group()
    once, twice = made_up(num_data), made_up(2 * num_data)
    sent: list[int] = []
    reduce = dist.all_reduce
    dist.all_reduce = lambda message: (sent.append(message.nbytes), reduce(message))[1]  # type: ignore
    alone, together, sizes = [], [], []
    for _ in range(repeats + 1):
        dist.barrier()
        if rank == 0:
            alone.append(timed_pass(model, once, STANDARD["num_samples"]))
        dist.barrier()
        together.append(timed_pass(model, twice, STANDARD["num_samples"], group))
    for examples in (once, twice):
        sent.clear()
        timed_pass(model, examples, STANDARD["num_samples"], group)
        sizes.append(sum(sent))
    message = torch.zeros(STANDARD["num_points"] ** 2, dtype=torch.float64)
    dist.barrier()
    start = time.perf_counter()
    for _ in range(20):
        reduce(message)
    seconds = (time.perf_counter() - start) / 20
    if rank == 0:
        results.put((alone[1:], together[1:], sizes, message.nbytes / seconds))
    dist.destroy_process_group()


def weak_scaling(num_data: int, repeats: int) -> dict[str, Any]:
    """Time of one process on n data over that of two on 2n, and what they sent."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        arguments = (folder, num_data, repeats, results)
        workers = [context.Process(target=weak_worker, args=(r, *arguments)) for r in range(2)]
        for worker in workers:
            worker.start()
        alone, together, sizes, rate = results.get()
        for worker in workers:
            worker.join()
    return {
        "efficiency": round(statistics.median(alone) / statistics.median(together), 3),
        "seconds_alone": [round(value, 3) for value in alone],
        "seconds_together": [round(value, 3) for value in together],
        "num_data": [num_data, 2 * num_data],
        "message_bytes": sizes,
        "all_reduce_bytes_per_second": round(rate),
    }


class Paused(Stream):
    """A stream that stops ten times on its way to let something else be measured."""

    def __init__(self, stream: MadeUp, measure: Callable[[], float]) -> None:
        self.stream, self.measure = stream, measure
        self.found: list[float] = []
        self.paused = 0.0

    def batches(self, rank: int = 0, world_size: int = 1) -> Iterator[Batch]:
        """Those of the stream; the time of the pauses is kept to be left out."""
        every = max(1, self.stream.num_data // BATCH // 10)
        for batch in self.stream.batches(rank, world_size):
            if batch.number % every == 0:
                start = time.perf_counter()
                self.found.append(self.measure())
                self.paused += time.perf_counter() - start
            yield batch


def streaming(sizes: tuple[int, ...]) -> dict[str, Any]:
    """Microseconds of an example and peak memory, size after size, in one process.

    A shared machine drifts over minutes, so the smallest size is measured again and again on the
    way through a larger one.
    """
    model, num_samples = model_of(STANDARD["num_points"]), STANDARD["num_samples"]
    smallest, runs = made_up(sizes[0]), []
    timed_pass(model, smallest, num_samples)
    for size in sizes:
        examples = made_up(size)
        assert isinstance(examples, Streamed)
        assert isinstance(examples.stream, MadeUp)
        paused = Paused(examples.stream, lambda: timed_pass(model, smallest, num_samples))
        examples.stream = paused
        seconds = timed_pass(model, examples, num_samples) - paused.paused
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        reference = statistics.mean(paused.found) / sizes[0]
        runs.append(
            {
                "num_data": size,
                "microseconds_per_example": round(1e6 * seconds / size, 2),
                "ratio_to_smallest": round(seconds / size / reference, 3),
                "peak_memory_mb": round(peak, 1),
            }
        )
    peaks = [run["peak_memory_mb"] for run in runs]
    return {
        "runs": runs,
        "time_ratio": runs[-1]["ratio_to_smallest"],
        "memory_ratio": round(peaks[-1] / peaks[0], 3),
    }


def rate(work: float, run: Callable[[], object], repeats: int = 7) -> float:
    """Work a second, by the median of some repeats."""
    run()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return work / statistics.median(seconds)


def constants() -> dict[str, float]:
    """Rates of the four kinds of work in a pass, each by itself, and of a solve."""
    generator = torch.Generator().manual_seed(0)
    rows, points, features = BATCH * 4, 1000, SIDE * SIDE
    left = torch.rand(rows, features, generator=generator)
    right = torch.rand(points, features, generator=generator)
    values, mean = torch.empty(rows, points), torch.rand(BATCH, points, generator=generator)
    gram, images = torch.zeros(points, points, dtype=torch.float64), left.view(rows, SIDE, SIDE)
    mean, orbit, kernel = mean.double(), orbitgp.Affine(-0.1, 0.1), orbitgp.RBF(1.0, 10.0)
    narrow = (left[:, :1].contiguous(), right[:, :1].contiguous())
    spd = torch.eye(points, dtype=torch.float64) + mean.T @ mean
    noise = orbit.noise(rows, 4, generator=generator, group_size=4)
    with torch.no_grad():
        return {
            "warped_pixels": rate(rows * 4 * features, lambda: orbit.transform(images, noise)),
            "float32_flops": rate(
                2 * rows * points * features, lambda: torch.matmul(left, right.T, out=values)
            ),
            # a product with one feature costs nothing: what is left are the passes over entries
            "entries": rate(rows * points, lambda: covariance(kernel, *narrow).double().sum()),
            "float64_flops": rate(2 * BATCH * points**2, lambda: gram.addmm_(mean.T, mean)),
            "solve_flops": rate(points**3 / 3, lambda: torch.linalg.cholesky(spd)),
        }


def foretold(rates: dict[str, float], num_points: int, num_samples: int) -> float:
    """Seconds of an example by the cost model of docs/scale.md."""
    entries = num_points * num_samples
    return (
        num_samples * SIDE**2 / rates["warped_pixels"]
        + 2 * entries * SIDE**2 / rates["float32_flops"]
        + entries / rates["entries"]
        + 2 * num_points**2 / rates["float64_flops"]
    )


def cost_model() -> dict[str, Any]:
    """Constants, and what they foretell against what was measured."""
    rates, checks = constants(), []
    for sizes in (STANDARD, *OTHERS):
        model, examples = model_of(sizes["num_points"]), made_up(4 * BATCH)
        run = partial(timed_pass, model, examples, sizes["num_samples"])
        measured = 1 / rate(4 * BATCH, run, 3)
        expected = foretold(rates, **sizes)
        checks.append(
            {
                **sizes,
                "microseconds_foretold": round(1e6 * expected, 1),
                "microseconds_measured": round(1e6 * measured, 1),
                "measured_over_foretold": round(measured / expected, 2),
            }
        )
    return {
        "rates": {name: float(f"{value:.3g}") for name, value in rates.items()},
        "checks": checks,
    }


def main() -> None:
    """Everything, recorded in results/scale.json; smaller for a test."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, default=RESULTS / "scale.json")
    arguments = parser.parse_args()
    sizes = tuple(n for n in (10_000, 100_000, 1_000_000) if n <= arguments.largest)
    result = {
        "benchmark": "scale",
        "weak_scaling": weak_scaling(5_000, repeats=7),
        "streaming": streaming(sizes),
        "cost_model": cost_model(),
        "settings": {**STANDARD, "side": SIDE, "classes": CLASSES, "batch": BATCH, "seed": 0},
        "command": "python -m benchmarks.scale",
        "machine": machine(),
    }
    write_result(arguments.out, result)


if __name__ == "__main__":
    main()
