"""Memory of a statistics pass at size: RGB 32×32 images, M = 4,000, S = 16, C = 1,000 outputs.

The stream is made up as it is read, so that what grows with N could only be ours:
`python -m benchmarks.size` runs N = 2,000 and N = 20,000, each in a process of its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator

import torch
from torch import Tensor

import orbitgp
from benchmarks.timing import RESULTS, machine, write_result

M, S, C, BATCH = 4_000, 16, 1_000, 500
SHAPE = (3, 32, 32)


def stream(num_data: int, *, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    """Random images and labels, a batch at a time."""
    for _ in range(num_data // BATCH):
        images = torch.rand(BATCH, *SHAPE, generator=generator)
        yield images, torch.randint(C, (BATCH,), generator=generator)


def measure(num_data: int) -> dict[str, float]:
    """One pass over the stream in this process."""
    generator = torch.Generator().manual_seed(0)
    points = torch.rand(M, 3 * 32 * 32, generator=generator)
    model = orbitgp.InvariantGP(
        orbit=orbitgp.Affine(-0.1, 0.1),
        kernel=orbitgp.RBF(1.0, 10.0),
        posterior=orbitgp.InducingPosterior(points, C),
        likelihood=orbitgp.OneHotGaussian(C),
    )
    start = time.perf_counter()
    statistics = orbitgp.stream_statistics(
        model,
        stream(num_data, generator=generator),
        num_samples=S,
        generator=generator,
        pairs=orbitgp.mean_pairs,
    )
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    message = len(statistics.to_bytes()) / 2**20
    return {
        "num_data": statistics.num_data,
        "seconds": round(seconds, 1),
        "peak_memory_mb": round(peak),
        "statistics_mb": round(message, 1),
    }


def main() -> None:
    """Both sizes, each alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--num-data", type=int)
    arguments = parser.parse_args()
    if arguments.num_data:
        print(json.dumps(measure(arguments.num_data)))
        return
    command = [sys.executable, "-m", "benchmarks.size", "--num-data"]
    outputs = [
        subprocess.run([*command, str(n)], check=True, capture_output=True, text=True).stdout
        for n in (2_000, 20_000)
    ]
    runs = [json.loads(output.splitlines()[-1]) for output in outputs]
    result = {
        "benchmark": "size",
        "growth": round(runs[1]["peak_memory_mb"] / runs[0]["peak_memory_mb"], 3),
        "runs": runs,
        "settings": {"M": M, "S": S, "C": C, "shape": SHAPE, "batch": BATCH, "seed": 0},
        "command": "python -m benchmarks.size",
        "machine": machine(),
    }
    write_result(RESULTS / "size.json", result)


if __name__ == "__main__":
    main()
