"""How many orbit samples a gradient is worth: its noise, and what it costs, by S.

python -m experiments.gradient_noise --seed 0

The gradient of the bound to the ends of the affine ranges is taken several times for each of some
batches of MNIST. It varies between the draws of one batch (orbit noise) and between batches
(noise of data, which no S lessens). What counts for learning in a given time is the variance of a
step times its seconds: the best S is where that is least.
"""

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from experiments.record import RESULTS, record
from experiments.starts import beginning, digits
from orbitgp import Callback, InvariantGP, TrainingSettings
from orbitgp.orbits.names import starting_orbits
from orbitgp.orbits.ranges import UniformRange
from orbitgp.training.loop import Training, train
from orbitgp.training.updates import GradientUpdate

SAMPLES = (2, 4, 8, 16, 32)
NUM_BATCHES, NUM_DRAWS = 12, 4
LEARNED_STEPS = 40
"""Steps after which the ranges are near where they stay."""


def gradient(
    model: InvariantGP, update: GradientUpdate, x: Tensor, y: Tensor
) -> tuple[Tensor, float]:
    """d bound / d ends of the ranges, a datum, and its seconds; the model stays what it is."""
    start = time.perf_counter()
    update.step(x, y)
    seconds = time.perf_counter() - start
    ranges = [part for part in model.orbit.modules() if isinstance(part, UniformRange)]
    own = [p.grad.flatten() for part in ranges for p in part.parameters() if p.grad is not None]
    return torch.cat(own).double(), seconds


def noise(gradients: Tensor) -> dict[str, float]:
    """Variances [batch, draw, parameter] → between draws and between batches, summed."""
    within = gradients.var(1).mean(0).sum().item()
    # a batch's mean over D draws varies by what batches do, and 1/D of what draws do
    between = gradients.mean(1).var(0).sum().item() - within / gradients.shape[1]
    return {"orbit_variance": within, "batch_variance": between}


def measure(training: Training, num_samples: int, seed: int) -> dict[str, Any]:
    """Noise and seconds of a gradient with so many samples."""
    model, size = training.model, training.settings.batch_size
    still = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)
    batches, orbits = (torch.Generator().manual_seed(seed + k) for k in (1, 2))
    update = GradientUpdate(
        model,
        still,
        num_data=training.num_data,
        num_samples=num_samples,
        generator=orbits,
        group_size=num_samples // 2,
    )
    found, seconds = [], []
    for _ in range(NUM_BATCHES):
        chosen = torch.randperm(len(training.x), generator=batches)[:size]
        x, y = training.x[chosen], training.y[chosen]
        trials = [gradient(model, update, x, y) for _ in range(NUM_DRAWS)]
        found.append(torch.stack([value for value, _ in trials]))
        seconds += [spent for _, spent in trials]
    values = noise(torch.stack(found))
    typical = statistics.median(seconds)
    total = sum(values.values())
    return {
        "num_samples": num_samples,
        **values,
        "orbit_part": round(values["orbit_variance"] / total, 3),
        "seconds": round(typical, 4),
        "variance_times_seconds": total * typical,
    }


def main() -> None:
    """All numbers of samples, at the same model and the same batches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--features", choices=("pixels", "oriented"), default="pixels")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    (features, x, y), seed = digits(arguments.features), arguments.seed
    generator = torch.Generator().manual_seed(seed)
    model = beginning(starting_orbits("affine")[0], features, x, y, generator)
    settings = TrainingSettings(max_steps=LEARNED_STEPS)
    training = Training(model, x, y, settings=settings, generator=generator)
    train(training, Callback())
    rows = [measure(training, count, seed) for count in SAMPLES]
    least = min(row["variance_times_seconds"] for row in rows)
    for row in rows:
        row["times_the_least"] = round(row.pop("variance_times_seconds") / least, 3)
        print(row, flush=True)
    values = {"features": arguments.features, "num_data": len(x), "rows": rows}
    command = f"python -m experiments.gradient_noise --features {arguments.features}"
    record(arguments.out, f"mnist-gradient-noise-{arguments.features}", command, seed, values)


if __name__ == "__main__":
    main()
