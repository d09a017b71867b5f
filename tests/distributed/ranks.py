"""Work that any number of processes share, and what came of it, for tests to compare.

`python -m tests.distributed.ranks FOLDER` runs it in a group that torchrun has launched.
"""

import sys
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from safetensors.torch import load_file, save_file

from orbitgp import (
    RBF,
    Affine,
    InducingPosterior,
    InvariantGP,
    InvariantGPClassifier,
    OneHotGaussian,
    StochasticSettings,
    TrainingSettings,
    mean_pairs,
    solve,
    unbiased_pairs,
)
from orbitgp.callbacks.base import Callback
from orbitgp.data.stream import ArrayStream
from orbitgp.distributed.current import current_group
from orbitgp.estimators.survey import survey
from orbitgp.fit.checkpoint import Checkpoint, FileCheckpoint
from orbitgp.inference.inducing import bound_of, inducing_statistics
from orbitgp.inference.passes import Resident
from orbitgp.posterior.inducing import averaged
from orbitgp.recipes import pass_statistics
from orbitgp.stochastic.natural import NaturalParameters
from orbitgp.stochastic.passes import best_q, bound_of_all
from orbitgp.stochastic.training import Training
from tests.files.crash import bars
from tests.processes import FORKS

NUM_DATA = 1100
"""Three chunks, the last one short: uneven for two and for three processes."""

NUM_FITTED = 600
"""Two chunks are enough for an estimator, which does everything else as well."""


def model_and_data():
    """In float64, so that only the order of sums can make a difference."""
    images, labels = bars(NUM_DATA)
    x, y = torch.from_numpy(images), torch.from_numpy(labels)
    generator = torch.Generator().manual_seed(0)
    # a batch of 50 rows is uneven for three, and 1,100 rows are more than the chosen 500
    model = InvariantGP(
        orbit=Affine(-0.1, 0.1).double(),
        kernel=RBF(0.2, 3.0).double(),
        posterior=InducingPosterior(x.flatten(1)[:40], 3),
        likelihood=OneHotGaussian(3, noise=0.05).double(),
    )
    return model, x, y, generator


def results(folder):
    """Everything that must not depend on the number of processes, as tensors."""
    group = current_group()
    model, x, y, generator = model_and_data()
    everything, found = Resident(x, y), {}
    for name, pairs in {"mean": mean_pairs, "unbiased": unbiased_pairs(2)}.items():
        statistics = pass_statistics(
            model, everything, num_samples=4, pairs=pairs, seed=5, group=group
        )
        for part in ("constant", "linear", "gram", "variance"):
            found[f"statistics.{name}.{part}"] = getattr(statistics, part)
        found[f"statistics.{name}.num_data"] = torch.tensor(statistics.num_data)
        if name == "mean":
            prior = model.posterior.prior_covariance(model.kernel).detach()
            model.posterior.assign(solve(statistics, prior))
    prediction = model.predict(x[:20], num_samples=8, generator=generator)
    found |= {"solved.mean": prediction.mean, "solved.variance": prediction.variance}
    points = averaged(model.posterior.points).detach()
    noise = model.orbit.shared_noise(4, generator=generator)
    shared = inducing_statistics(model, everything, points, x[:100], NUM_DATA, noise, group)
    for part in ("gram", "linear", "unexplained"):
        found[f"statistics.shared.{part}"] = getattr(shared, part)
    value, error = bound_of(model, everything, x[:100], noise, group)
    found["evidence"] = torch.tensor([value, error], dtype=torch.float64)

    found |= trained(group)
    found |= fitted(folder / f"run-{group.size}") | sampled() | exact()
    return {name: value.detach().double().contiguous() for name, value in found.items()}


def trained(group):
    """All parameters after 200 steps of stochastic training, and the bound."""
    model, x, y, _ = model_and_data()
    prior = NaturalParameters.optimum(
        torch.zeros_like(model.posterior.scale), torch.zeros_like(model.posterior.mean)
    )
    settings = StochasticSettings(num_steps=200, batch_size=31, num_draws=4, group_size=2)
    run = Training(model, prior, Resident(x, y), settings, seed=2, group=group)
    run.finish(Callback(), Checkpoint())
    found = {f"trained.{name}": value for name, value in model.named_parameters()}
    q = best_q(model, Resident(x, y), num_draws=4, seed=3, group=group).gaussian()
    sizes = {"num_draws": 4, "group_size": 2, "seed": 4, "group": group}
    value = bound_of_all(model, q, Resident(x, y), **sizes)
    return {**found, "trained.bound": torch.tensor(value, dtype=torch.float64)}


def fitted(folder):
    """An estimator's run, which leaves the checkpoint of a run that was stopped on its way."""
    images, labels = bars(NUM_FITTED)
    settings = TrainingSettings(max_steps=4, climb_size=60, climb_draws=8, search_size=200)
    parameters = {"settings": settings, "num_inducing": 50, "random_state": 1}
    keep, calls, fresh = FileCheckpoint.keep, [], not folder.exists()

    def keep_at_first(checkpoint, run):
        calls.append(run.phase)
        if len(calls) <= 2:  # the scan and the first climb
            keep(checkpoint, run)

    with mock.patch.object(FileCheckpoint, "keep", keep_at_first):
        run = InvariantGPClassifier("rotation", run=folder, **parameters).fit(images, labels)
    assert len(calls) > 2 or not fresh or current_group().rank > 0  # the first process learns
    return {
        "fitted.probabilities": torch.from_numpy(run.predict_proba(images[:50])),
        "fitted.evidence": torch.tensor([run.evidence_, run.evidence_error_]),
    }


def sampled():
    """The sample of a stream, of which each process reads a part."""
    stream = ArrayStream(*bars(NUM_DATA), 64)
    with mock.patch("orbitgp.estimators.survey.SAMPLE_SIZE", 100):
        seed = InvariantGPClassifier(random_state=7)._begun()[1]
        found = survey(stream, current_group(), classify=True, seed=seed)
    return {"sample.inputs": torch.from_numpy(found.x), "sample.labels": torch.tensor(found.y)}


def exact():
    """A fit of few data, which is exact in every process."""
    images, labels = bars(60)
    settings = TrainingSettings(max_steps=2, scan_size=40, climb_size=40, climb_draws=4)
    model = InvariantGPClassifier("rotation", settings=settings, random_state=1)
    model.fit(images, labels)
    assert model.sizes_["num_inducing"] == 0
    probabilities = torch.from_numpy(model.predict_proba(images))
    return {"exact.probabilities": probabilities, "exact.evidence": torch.tensor(model.evidence_)}


def work(rank, world_size, folder):
    """One process of a group that finds itself by a file."""
    torch.set_num_threads(1)
    meeting = (Path(folder) / f"meeting-{world_size}").as_uri()
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=world_size)
    save_file(results(Path(folder)), Path(folder) / f"{world_size}-{rank}.safetensors")
    dist.destroy_process_group()


def of_ranks(world_size, folder):
    """The results of every process of a group of this size."""
    fork = FORKS.get_start_method()
    multiprocessing.start_processes(work, (world_size, str(folder)), world_size, start_method=fork)
    return [load_file(folder / f"{world_size}-{rank}.safetensors") for rank in range(world_size)]


if __name__ == "__main__":
    dist.init_process_group("gloo")
    group = current_group()
    place = Path(sys.argv[1]) / f"{group.size}-{group.rank}.safetensors"
    save_file(results(Path(sys.argv[1])), place)
    dist.destroy_process_group()
