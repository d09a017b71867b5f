"""Streams: every example exactly once in each pass, whoever reads it."""

import io
import json
import os
import tarfile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, TensorDataset

from orbitgp import FileError, InputError
from orbitgp.data.adapters import DatasetStream, HuggingFaceStream, LoaderStream, stream_of
from orbitgp.data.files import ParquetStream, WebDatasetStream
from orbitgp.data.stream import ArrayStream


def everything(stream, world_size=1):
    """All examples of all ranks by the number of their batch; numbers are never used twice."""
    batches = [batch for rank in range(world_size) for batch in stream.batches(rank, world_size)]
    numbers = [batch.number for batch in batches]
    assert len(set(numbers)) == len(numbers)
    return {batch.number: (batch.x, batch.y) for batch in batches}


def assert_exact(stream, x, y, world_sizes=(1, 2, 3)):
    """Each pass of each number of processes has the same batches, and these all examples."""
    whole = everything(stream)
    found = [np.concatenate([whole[number][part] for number in sorted(whole)]) for part in (0, 1)]
    np.testing.assert_array_equal(found[0], x)
    np.testing.assert_array_equal(found[1], y)
    for world_size in world_sizes:
        shared = everything(stream, world_size)
        assert shared.keys() == whole.keys()
        for number, (batch_x, batch_y) in whole.items():
            np.testing.assert_array_equal(shared[number][0], batch_x)
            np.testing.assert_array_equal(shared[number][1], batch_y)


def numbered(num_data, shape=(3,)):
    x = np.arange(num_data * int(np.prod(shape)), dtype=np.float64).reshape(num_data, *shape)
    return x, np.arange(num_data)


@given(num_data=st.integers(1, 60), batch_size=st.integers(1, 70), world_size=st.integers(1, 9))
def test_arrays_and_items_are_covered_exactly(num_data, batch_size, world_size):
    x, y = numbered(num_data)
    tensors = TensorDataset(torch.from_numpy(x), torch.from_numpy(y))
    for stream in (
        ArrayStream(x, y, batch_size),
        DatasetStream(tensors, batch_size),
        LoaderStream(DataLoader(tensors, batch_size=batch_size)),
    ):
        assert_exact(stream, x, y, (world_size,))


def test_memory_maps_are_read_batch_by_batch(tmp_path):
    x, y = numbered(100)
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert_exact(ArrayStream(mapped, y, 7), x, y)


class Squares(Dataset):
    """Items that are made when asked for, with text for labels."""

    def __len__(self):
        return 10

    def __getitem__(self, row):
        return torch.full((2, 2), float(row)), "even" if row % 2 == 0 else "odd"


class OneByOne(IterableDataset):
    def __iter__(self):
        return ((torch.zeros(2), 1) for _ in range(5))


def test_what_people_have_is_recognised(tmp_path):
    x, y = numbered(10)
    pair = (torch.from_numpy(x), torch.from_numpy(y))
    assert isinstance(stream_of((x, y)), ArrayStream)
    assert isinstance(stream_of(pair), ArrayStream)
    own = ArrayStream(x, y)
    assert stream_of(own) is own
    assert isinstance(stream_of(Squares()), DatasetStream)
    labels = np.concatenate([batch.y for batch in stream_of(Squares()).batches()])
    assert labels.tolist() == ["even", "odd"] * 5
    assert isinstance(stream_of(DataLoader(Squares(), batch_size=3)), LoaderStream)
    assert_exact(stream_of([(x[:4], y[:4]), (x[4:], y[4:])]), x, y)
    assert len(everything(stream_of(DataLoader(OneByOne(), batch_size=2)))) == 3


class Unequal(Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, row):
        return np.zeros(row + 1), 0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x, y: stream_of(iter([(x, y)])), "gone through once"),
        (lambda x, y: stream_of(DataLoader(Squares(), drop_last=True)), "drop_last=False"),
        (
            lambda x, y: stream_of(
                DataLoader(
                    Squares(),
                    sampler=DistributedSampler(Squares(), num_replicas=2, rank=0),
                )
            ),
            "DistributedSampler",
        ),
        (
            lambda x, y: next(stream_of(DataLoader(Squares(), shuffle=True)).batches(0, 2)),
            "shuffle=False",
        ),
        (lambda x, y: stream_of(OneByOne()), r"DataLoader\(…"),
        (lambda x, y: stream_of({"x": x}), "dict is no stream"),
        (lambda x, y: stream_of("mnist"), "str is no stream"),
        (lambda x, y: stream_of(3), "from int"),
        (lambda x, y: next(stream_of([x, y]).batches()), "expected \\(x, y\\)"),
        (lambda x, y: ArrayStream(x, y[1:]), "pair up; got 10 and 9"),
        (lambda x, y: ArrayStream(x, y, 0), "at least 1"),
        (lambda x, y: ParquetStream([]), "files that are there"),
        (lambda x, y: next(DatasetStream(Unequal()).batches()), "different shapes"),
    ],
    ids=[
        *("generator", "drop-last", "padded", "shuffled", "one-by-one", "dict", "str", "int"),
        *("no-pairs", "unequal", "empty-batch", "no-files", "ragged"),
    ],
)
def test_what_cannot_be_covered_is_refused(make, message):
    with pytest.raises(InputError, match=message):
        make(*numbered(10))


def test_parquet_files_are_streamed(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    x, y = numbered(50)
    rows = np.array_split(np.arange(50), [7, 30])
    for number, few in enumerate(rows):
        columns = {f"c{k}": x[few, k] for k in range(3)} | {"label": y[few]}
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet", row_group_size=5)
    files = sorted(tmp_path.glob("*.parquet"))
    stream = ParquetStream(files, target="label", batch_size=4)
    assert_exact(stream, x, y, (1, 2, 3, 5))
    assert max(len(batch.x) for batch in stream.batches()) <= 4
    files[1].write_bytes(files[1].read_bytes()[:-20])
    with pytest.raises(FileError, match=r"1\.parquet"):
        everything(stream)


def write_tar(path, examples):
    with tarfile.open(path, "w") as tar:
        for name, data in examples:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_tars_of_webdataset_are_streamed(tmp_path):
    pytest.importorskip("webdataset")
    x, y = numbered(11, (4, 4))
    for shard, few in enumerate(np.array_split(np.arange(11), [2, 8])):
        members = [
            member
            for row in few
            for member in ((f"{row:03}.npy", npy(x[row])), (f"{row:03}.cls", b"%d" % y[row]))
        ]
        write_tar(tmp_path / f"digits-{shard}.tar", members)
    stream = WebDatasetStream(f"{tmp_path}/digits-{{0..2}}.tar", x="npy", batch_size=4)
    assert len(stream.paths) == 3
    assert_exact(stream, x, y, (1, 2, 4))


def test_images_and_other_labels_in_tars(tmp_path):
    pytest.importorskip("webdataset")
    image = pytest.importorskip("PIL.Image")
    pixels = np.arange(64, dtype=np.uint8).reshape(8, 8)
    file = io.BytesIO()
    image.fromarray(pixels).save(file, "png")
    write_tar(
        tmp_path / "a.tar",
        [("a.png", file.getvalue()), ("a.txt", b"cat\n"), ("a.json", json.dumps(2.5).encode())],
    )
    for extension, label in {"txt": "cat", "json": 2.5}.items():
        (batch,) = WebDatasetStream([tmp_path / "a.tar"], y=extension).batches()
        np.testing.assert_array_equal(batch.x[0], pixels)
        assert batch.y[0] == label
    for wrong, message in {
        ("a.png", b"no image"): r"example 'a'.*",
        ("a.cls", b"four"): "cls is not a label",
    }.items():
        members = {"a.png": file.getvalue(), "a.cls": b"1"}
        members[wrong[0]] = wrong[1]
        write_tar(tmp_path / "b.tar", list(members.items()))
        with pytest.raises(FileError, match=message):
            list(WebDatasetStream([tmp_path / "b.tar"]).batches())
    with pytest.raises(FileError, match="has no json"):
        list(WebDatasetStream([tmp_path / "b.tar"], y="json").batches())
    whole = (tmp_path / "a.tar").read_bytes()
    (tmp_path / "c.tar").write_bytes(whole[:700])
    with pytest.raises(FileError, match=r"c\.tar"):
        list(WebDatasetStream([tmp_path / "c.tar"], y="txt").batches())


@pytest.mark.slow  # importing `datasets` takes seconds
@pytest.mark.filterwarnings("ignore")
def test_hugging_face_data_sets_are_streamed(monkeypatch):
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    x, y = numbered(23, (4, 4))
    images = np.arange(23 * 16, dtype=np.uint8).reshape(23, 4, 4)
    features = datasets.Features(
        {
            "x": datasets.Array2D((4, 4), "float64"),
            "image": datasets.Image(),
            "label": datasets.Value("int64"),
        }
    )
    rows = {"x": list(x), "image": list(images), "label": y}
    dataset = datasets.Dataset.from_dict(rows, features=features)
    assert_exact(HuggingFaceStream(dataset, x="x", batch_size=5), x, y)
    assert_exact(stream_of(dataset), images, y)
    with pytest.raises(InputError, match="no column picture"):
        HuggingFaceStream(dataset, x="picture")
