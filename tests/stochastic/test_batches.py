"""Minibatches: every row once in an epoch, the same over any number of processes, flat in N."""

import numpy as np
import pytest
import torch

from orbitgp.data.stream import ArrayStream, Stream
from orbitgp.distributed.group import ALONE, Group
from orbitgp.errors import InputError
from orbitgp.inference.passes import Resident, Streamed
from orbitgp.stochastic.batches import MemoryBatches, StreamBatches, batches_of


class Rank(Group):
    def __init__(self, rank, size):
        self.rank, self.size = rank, size


def numbered(num_data):
    x = torch.arange(float(num_data))[:, None]
    return Resident(x, x[:, 0])


class Counting(Stream):
    """Counts the examples that are read."""

    def __init__(self, num_data, batch_size=50):
        x = np.arange(float(num_data))[:, None]
        self.stream, self.count = ArrayStream(x, x[:, 0], batch_size), 0

    def batches(self, rank=0, world_size=1):
        for batch in self.stream.batches(rank, world_size):
            self.count += len(batch.x)
            yield batch


def streamed(num_data, num_kept=200, batch_size=50):
    stream = Counting(num_data, batch_size)

    def prepare(x, y):
        return torch.from_numpy(x), torch.from_numpy(y)

    kept = np.linspace(0, num_data - 1, num_kept).round()
    examples = Streamed(stream, prepare, num_data, prepare(kept[:, None], kept))
    return examples, stream


def test_an_epoch_has_every_row_once():
    batches = MemoryBatches(numbered(24), 8, 5, ALONE)
    epochs = [torch.cat([batches.take(3 * epoch + k)[1] for k in range(3)]) for epoch in range(2)]
    for epoch in epochs:
        assert sorted(epoch.tolist()) == list(range(24))
    assert not torch.equal(*epochs)


def test_batches_depend_on_their_number_alone():
    one, other = (MemoryBatches(numbered(30), 8, 5, ALONE) for _ in range(2))
    expected = [one.take(number)[1] for number in range(10)]
    for number in (9, 0, 4):
        assert torch.equal(other.take(number)[1], expected[number])


@pytest.mark.parametrize("size", [2, 3])
def test_processes_share_the_rows_of_a_batch(size):
    whole = MemoryBatches(numbered(40), 7, 5, ALONE).take(2)[1]
    parts = [MemoryBatches(numbered(40), 7, 5, Rank(r, size)).take(2)[1] for r in range(size)]
    assert sorted(torch.cat(parts).tolist()) == sorted(whole.tolist())
    assert all(torch.equal(part, whole[r::size]) for r, part in enumerate(parts))


def test_a_batch_is_at_most_all_data():
    assert batches_of(numbered(5), 256, 0, ALONE).size == 5


@pytest.mark.parametrize("num_data", [10**4, 10**6])
def test_a_step_reads_as_many_examples_of_a_stream_as_it_takes(num_data):
    examples, stream = streamed(num_data)
    batches = batches_of(examples, 64, 0, ALONE)
    for number in range(20):
        x, y = batches.take(number)
        assert len(x) == len(y) == 64
        assert torch.equal(x[:, 0], y)
    assert 20 * 64 <= stream.count <= 20 * 64 + 50


def test_a_buffer_of_a_stream_gives_all_of_it_alike():
    """Of two passes over a stream in order, the mean of what is taken is that of the stream."""
    examples, _ = streamed(4000, num_kept=800)
    batches = StreamBatches(examples, 80, 0, ALONE)
    taken = torch.cat([batches.take(number)[1] for number in range(100)])
    # one example of the stream is read for each that is taken: after two passes each twice,
    # but for those that are still in the buffer
    counts = torch.bincount(taken.long(), minlength=4000)
    assert counts.sum() == 8000
    assert (counts > 0).float().mean() > 0.98


def test_a_stream_of_fewer_batches_than_processes_is_refused():
    examples, _ = streamed(100, num_kept=60, batch_size=100)
    with pytest.raises(InputError, match="fewer batches than the 2 processes"):
        StreamBatches(examples, 32, 0, Rank(1, 2)).take(0)
