"""The first pass over a stream: how many examples, how large, which targets, and an even sample.

Every example gets a random number; those with the smallest are the sample, in the order of their
numbers. So surveys of parts can be merged, and the result does not depend on who read what.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from orbitgp.data.stream import Batch, Stream
from orbitgp.distributed.group import Group
from orbitgp.errors import InputError
from orbitgp.inference.passes import chunk_generator

SAMPLE_SIZE = 20_000
"""Examples that are kept in memory, to learn scales and ranges from."""


@dataclass(frozen=True)
class Survey:
    """What is known of some batches of a stream.

    `labels` are the different ones of a classification; `mean` and `squares` (Σ (y − mean)²) are of
    each target of a regression. `keys` are the random numbers of the sampled examples `x`, `y`.
    """

    num_data: int
    largest: float
    labels: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    keys: np.ndarray
    x: np.ndarray
    y: np.ndarray

    def below(self, key: float) -> "Survey":
        """With those examples alone that have smaller keys."""
        few = self.keys < key
        return replace(self, keys=self.keys[few], x=self.x[few], y=self.y[few])

    def to_bytes(self) -> bytes:
        """As plain arrays."""
        file = io.BytesIO()
        np.savez(file, allow_pickle=False, **vars(self))
        return file.getvalue()

    @staticmethod
    def from_bytes(data: bytes) -> "Survey":
        """What `to_bytes` wrote."""
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            found: dict[str, Any] = dict(arrays)
        found |= {"num_data": int(found["num_data"]), "largest": float(found["largest"])}
        return Survey(**found)


def survey(stream: Stream, group: Group, *, classify: bool, seed: int) -> Survey:
    """Of the whole stream, each process having read its part; all must be given the same seed."""
    own = survey_batches(stream.batches(group.rank, group.size), classify=classify, seed=seed)
    data = None if own is None else own.to_bytes()
    parts = [group.bytes_from(rank, data) for rank in range(group.size)]
    surveys = [Survey.from_bytes(part) for part in parts if part is not None]
    if not surveys:
        raise InputError("the stream gave no examples; give it at least two")
    return merge(surveys)


def survey_batches(batches: Iterable[Batch], *, classify: bool, seed: int) -> Survey | None:
    """Of some batches; nothing of none. In memory, little more than the sample and a batch."""
    total: list[Survey] = []
    waiting: list[Survey] = []
    for batch in batches:
        part = survey_batch(batch, classify=classify, seed=seed)
        full = bool(total) and len(total[0].keys) == SAMPLE_SIZE
        waiting.append(part.below(total[0].keys[-1]) if full else part)
        if sum(len(part.keys) for part in waiting) > SAMPLE_SIZE // 4 or len(waiting) > 500:
            total, waiting = [merge([*total, *waiting])], []
    parts = [*total, *waiting]
    return merge(parts) if parts else None


def survey_batch(batch: Batch, *, classify: bool, seed: int) -> Survey:
    """Of one batch, all of it sampled."""
    x, y = np.asarray(batch.x), flat_labels(batch.y) if classify else np.asarray(batch.y)
    if len(x) != len(y) or not len(x):
        raise InputError(f"batch {batch.number} has {len(x)} inputs and {len(y)} targets")
    if x.dtype.kind not in "biuf":
        raise InputError(f"batch {batch.number} has inputs of type {x.dtype}; give numbers")
    generator = chunk_generator(seed, batch.number)
    if not np.isfinite(x).all() or (y.dtype.kind == "f" and not np.isfinite(y).all()):
        raise InputError(f"batch {batch.number} has values that are not finite; leave them out")
    targets = np.zeros((len(y), 0)) if classify else y.astype(np.float64).reshape(len(y), -1)
    mean = targets.mean(0)
    return Survey(
        num_data=len(x),
        largest=float(np.abs(x).max()),
        labels=np.unique(y) if classify else np.zeros(0),
        mean=mean,
        squares=np.square(targets - mean).sum(0),
        keys=torch.rand(len(x), generator=generator, dtype=torch.float64).numpy(),
        x=x,
        y=y,
    )


def flat_labels(y: np.ndarray) -> np.ndarray:
    """Labels [n], also of a column [n, 1]."""
    labels = np.asarray(y)
    return labels.reshape(len(labels)) if labels.ndim == 2 and labels.shape[1] == 1 else labels


def merge(parts: Sequence[Survey]) -> Survey:
    """The survey of all parts together."""
    counts = np.array([part.num_data for part in parts])[:, None]
    means = np.stack([part.mean for part in parts])
    mean = (counts * means).sum(0) / counts.sum()
    keys = np.concatenate([part.keys for part in parts])
    order = np.argsort(keys, kind="stable")[:SAMPLE_SIZE]
    return Survey(
        num_data=int(counts.sum()),
        largest=max(part.largest for part in parts),
        labels=np.unique(np.concatenate([part.labels for part in parts])),
        mean=mean,
        # Σ (y − mean)² of all = Σ over parts of their own + n (their mean − mean)²
        squares=sum(part.squares for part in parts) + (counts * np.square(means - mean)).sum(0),
        keys=keys[order],
        x=np.concatenate([part.x for part in parts])[order],
        y=np.concatenate([part.y for part in parts])[order],
    )
