"""Over all ranks every example exactly once, in batches that do not depend on the ranks."""

import io
import json
import subprocess
import sys
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, WeightedRandomSampler

from orbitgp import FileError, InputError
from orbitgp.data.labelled import LabelledData
from orbitgp.data.parquet_stream import ParquetStream
from orbitgp.data.recognise import stream_of
from orbitgp.data.stream import ArrayStream
from orbitgp.data.torch_streams import DatasetStream, LoaderStream
from orbitgp.data.webdataset import WebDatasetStream


def arrays(count):
    return np.arange(2.0 * count).reshape(count, 2), np.arange(count)


def assert_covered(stream, count, world_size, batch_size):
    """Every label once; the batches of all ranks are those of one, number by number."""
    alone = {batch.number: batch for batch in stream.batches()}
    shared = [batch for rank in range(world_size) for batch in stream.batches(rank, world_size)]
    assert sorted(batch.number for batch in shared) == sorted(alone)
    seen = [int(label) for batch in shared for label in batch.y]
    assert sorted(seen) == list(range(count))
    for batch in shared:
        assert 1 <= len(batch.x) <= batch_size
        np.testing.assert_array_equal(batch.y, alone[batch.number].y)
        np.testing.assert_array_equal(batch.x, alone[batch.number].x)
        np.testing.assert_array_equal(batch.x.reshape(len(batch.x), -1)[:, 0], 2 * batch.y)


SIZES = given(st.integers(0, 40), st.integers(1, 45), st.integers(1, 6))
FEW = settings(max_examples=40, deadline=None)


@FEW
@SIZES
def test_arrays_are_covered(count, batch_size, world_size):
    assert_covered(ArrayStream(*arrays(count), batch_size), count, world_size, batch_size)


@FEW
@SIZES
def test_data_sets_and_loaders_are_covered(count, batch_size, world_size):
    dataset = TensorDataset(*map(torch.as_tensor, arrays(count)))
    assert_covered(DatasetStream(dataset, batch_size), count, world_size, batch_size)
    loader = DataLoader(dataset, batch_size)
    assert_covered(LoaderStream(loader), count, world_size, batch_size)


@FEW
@given(st.integers(0, 40), st.integers(1, 45), st.integers(1, 6), st.integers(1, 15))
def test_row_groups_are_covered(tmp_path_factory, count, batch_size, world_size, group):
    path = tmp_path_factory.mktemp("groups") / "t.parquet"
    x, y = arrays(count)
    pq.write_table(pa.table({"a": x[:, 0], "b": x[:, 1], "y": y}), path, row_group_size=group)
    assert_covered(ParquetStream(path, None, batch_size), count, world_size, batch_size)


def write_tar(path, labels, extra=()):
    with tarfile.open(path, "w") as archive:
        for label in labels:
            image = np.full((2, 2), 2 * label, np.uint8)
            picture, values = io.BytesIO(), io.BytesIO()
            Image.fromarray(image).save(picture, "png")
            np.save(values, image)
            files = {"png": picture.getvalue(), "npy": values.getvalue()}
            files |= {"cls": str(label).encode(), "json": json.dumps(float(label)).encode()}
            for key, data in [*files.items(), *extra]:
                member = tarfile.TarInfo(f"part/{label:04}.{key}")
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
    return path


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 7), min_size=1, max_size=5), st.integers(1, 9), st.integers(1, 4))
def test_archives_are_covered(tmp_path_factory, lengths, batch_size, world_size):
    folder, start = tmp_path_factory.mktemp("tars"), 0
    for number, length in enumerate(lengths):
        write_tar(folder / f"s-{number}.tar", range(start, start + length))
        start += length
    pattern = f"{folder}/s-{{0..{len(lengths) - 1}}}.tar"
    for keys in (("png", "cls"), ("npy", "json")):
        stream = WebDatasetStream(pattern, *keys, batch_size)
        assert_covered(stream, start, world_size, batch_size)


def test_damaged_archives_are_refused_not_cut_short(tmp_path):
    whole = write_tar(tmp_path / "s.tar", range(3)).read_bytes()
    labels = [
        label
        for batch in WebDatasetStream(tmp_path / "s.tar", "png", "cls", 2).batches()
        for label in batch.y
    ]
    assert labels == [0, 1, 2]
    header = whole.index(b"part/0001.png")
    spoilt = {
        "header": whole[: header + 3] + b"?" + whole[header + 4 :],
        "cut at a header": whole[:header],
        "cut in a file": whole[: header + 600],
        "nothing": b"",
    }
    for data in spoilt.values():
        (tmp_path / "bad.tar").write_bytes(data)
        with pytest.raises(FileError, match=r"bad\.tar"):
            list(WebDatasetStream(tmp_path / "bad.tar", "png", "cls", 2).batches())


def test_archives_that_lack_something(tmp_path):
    path = write_tar(tmp_path / "s.tar", range(2), extra=[("txt", b" a cat "), ("b.json", b"[1]")])
    batch = next(WebDatasetStream([path], "npy", "txt", 5).batches())
    assert batch.y.tolist() == ["a cat", "a cat"]
    with pytest.raises(FileError, match="part/0000 has no jpg"):
        list(WebDatasetStream(path, "jpg", "cls", 2).batches())
    with pytest.raises(FileError, match=r"part/0000\.b\.json is no label"):
        list(WebDatasetStream(path, "png", "b.json", 2).batches())
    with pytest.raises(InputError, match="inputs are"):
        WebDatasetStream(path, "pickle", "cls", 2)
    with pytest.raises(InputError, match="labels are"):
        WebDatasetStream(path, "png", "pyd", 2)
    with pytest.raises(InputError, match="cannot be found"):
        WebDatasetStream("pipe:cat s.tar", "png", "cls", 2)


def test_only_the_slices_asked_for_are_read(tmp_path):
    np.save(tmp_path / "x.npy", arrays(1000)[0])
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    batch = next(ArrayStream(x, np.arange(1000), 10).batches(3, 4))
    assert type(batch.x) is np.ndarray
    assert batch.x.base is None
    assert batch.y.tolist() == list(range(30, 40))


def test_a_row_group_is_not_read_as_a_whole(tmp_path):
    path = tmp_path / "t.parquet"
    values = np.random.default_rng(0).standard_normal((600_000, 4))
    table = pa.table({f"c{n}": column for n, column in enumerate(values.T)})
    pq.write_table(table, path, row_group_size=600_000, use_dictionary=False)
    del values, table
    before = pa.default_memory_pool().bytes_allocated()
    most = 0
    for _ in ParquetStream(path, None, 500).batches():
        most = max(most, pa.default_memory_pool().bytes_allocated() - before)
    assert most < 600_000 * 4 * 8 / 2


def test_parquet_files_must_agree(tmp_path):
    for name, columns in {"a": {"u": [1.0], "y": [0]}, "b": {"v": [1.0], "y": [0]}}.items():
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    with pytest.raises(FileError, match=r"b\.parquet has other columns than"):
        ParquetStream(paths, "y", 2)
    assert [b.number for b in ParquetStream([paths[0]] * 3, "y", 2).batches(1, 2)] == [1]


def loader(**options):
    return DataLoader(TensorDataset(torch.zeros(7, 2), torch.zeros(7)), 3, **options)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: loader(drop_last=True), "set drop_last=False"),
        (lambda: loader(shuffle=True), "RandomSampler shuffles"),
        (lambda: loader(sampler=WeightedRandomSampler(torch.ones(7), 7)), "more than once"),
        (lambda: (batch for batch in [(1, 2)]), "passes repeat; got generator"),
        (lambda: iter([(1, 2)]), "passes repeat; got list_iterator"),
        (lambda: "text", r"expected batches \(x, y\)"),
        (lambda: 3, "iterated over again"),
    ],
    ids=["drop_last", "shuffle", "weights", "generator", "iterator", "text", "number"],
)
def test_loaders_that_cannot_repeat_a_pass(make, reason):
    with pytest.raises(InputError, match=reason):
        LoaderStream(make())


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        ({"x": 1}, r"batch 0: expected \(x, y\); got dict"),
        ((np.zeros((3, 2)), np.zeros(2)), "a label for each input"),
        ((np.array([None]), np.zeros(1)), "numbers or strings"),
        (([[1], [1, 2]], [0, 1]), "cannot be made an array"),
    ],
    ids=["dict", "lengths", "objects", "ragged"],
)
def test_batches_that_are_none(batch, reason):
    with pytest.raises(InputError, match=reason):
        list(LoaderStream([batch]).batches())


def test_a_pass_leaves_the_global_generator_alone():
    before = torch.random.get_rng_state()
    list(LoaderStream(loader()).batches())
    assert torch.equal(before, torch.random.get_rng_state())


def test_pictures_come_channels_first():
    picture = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    batch = next(DatasetStream([(Image.fromarray(picture), 1)], 4).batches())
    np.testing.assert_array_equal(batch.x[0], picture.transpose(2, 0, 1))
    grey = (Image.fromarray(picture[..., 0]), 0)
    with pytest.raises(InputError, match=r"example 1 has shape \[2, 4\] and example 0"):
        list(DatasetStream([(Image.fromarray(picture), 1), grey], 4).batches())


@pytest.mark.parametrize(("rank", "world_size"), [(-1, 2), (2, 2), (0, 0)])
def test_ranks_and_sizes_that_cannot_be(rank, world_size):
    for stream in (ArrayStream(*arrays(3), 2), LoaderStream([])):
        with pytest.raises(InputError, match="0 ≤ rank < world_size"):
            stream.batches(rank, world_size)
    with pytest.raises(InputError, match="at least 1"):
        ArrayStream(*arrays(3), 0)
    with pytest.raises(InputError, match="one row for each example"):
        ArrayStream(np.zeros(3), np.zeros(2), 2)


class Endless(IterableDataset):
    def __iter__(self):
        yield from ()


class Indexed:
    def __len__(self):
        return 1

    def __getitem__(self, index):
        return 0.0, 0


def test_streams_are_recognised(tmp_path):
    x, y = arrays(5)
    pq.write_table(pa.table({"a": y, "y": y}), tmp_path / "t.parquet")
    array = ArrayStream(x, y, 2)
    assert stream_of(array) is array
    assert type(stream_of(LabelledData(x, y))) is ArrayStream
    assert stream_of((x, y), batch_size=3).batch_size == 3
    assert type(stream_of(str(tmp_path / "t.parquet"))) is ParquetStream
    assert type(stream_of(loader())) is LoaderStream
    assert type(stream_of([(x, y)])) is LoaderStream
    assert type(stream_of(loader().dataset)) is DatasetStream
    assert type(stream_of(Indexed())) is DatasetStream
    for source, reason in (
        (Endless(), "gives single examples"),
        (tmp_path / "s.tar", "WebDatasetStream"),
        (iter([]), "passes repeat"),
        (3, "expected a data set with a length"),
    ):
        with pytest.raises(InputError, match=reason):
            stream_of(source)


def test_no_module_of_data_loads_an_extra_by_itself():
    code = (
        "import sys, orbitgp.data.recognise, orbitgp.data.sources, orbitgp.data.webdataset;"
        "print({'PIL', 'pyarrow', 'webdataset', 'datasets'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
