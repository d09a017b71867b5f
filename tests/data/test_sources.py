"""One door for all sources."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from orbitgp import FileError, InputError
from orbitgp.data.sources import read_data, read_inputs
from tests.data.test_data import idx_bytes
from tests.data.test_images import grey_set, pixels, save

X, Y = np.arange(12.0).reshape(4, 3), np.array(["a", "b", "a", "b"])


def npz(folder, **arrays):
    np.savez(folder / "set.npz", **arrays)
    return folder / "set.npz"


def idx_set(folder):
    images, labels = pixels(0, 3, 4, 4), np.array([1, 0, 2], np.uint8)
    for part in ("train", "t10k"):
        name = folder / f"{part}-images-idx3-ubyte.gz"
        name.write_bytes(gzip.compress(idx_bytes(images + (part == "t10k"), 8)))
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(idx_bytes(labels, 8))
    return images, labels


def test_what_is_neither_name_nor_path(tmp_path):
    with pytest.raises(InputError, match=r"called digit; possible are `digits`"):
        read_data("digit")
    with pytest.raises(InputError, match="no file or folder called digits"):
        read_data(Path("digits"))  # a path is never a name
    with pytest.raises(InputError, match=r"no file or folder called .*nothing\.csv; possible"):
        read_inputs(tmp_path / "nothing.csv")
    with pytest.raises(InputError, match=r"possible are|cannot be opened"):
        read_data("\0")
    with pytest.raises(InputError, match="cannot be opened"):
        read_data("x" * 5000)
    (tmp_path / "file.xlsx").write_bytes(b"")
    with pytest.raises(InputError, match="of no kind that can be read"):
        read_data(tmp_path / "file.xlsx")


def test_npz_of_both_kinds(tmp_path):
    data = read_data(npz(tmp_path, x=X, y=Y))
    np.testing.assert_array_equal(data.x, X)
    np.testing.assert_array_equal(data.y, Y)
    assert data.x_test is None
    np.testing.assert_array_equal(read_inputs(tmp_path / "set.npz"), X)
    path = npz(tmp_path, x_train=X, y_train=Y, x_test=X[:1] + 1, y_test=Y[:1])
    data = read_data(str(path))
    np.testing.assert_array_equal(data.x_test, X[:1] + 1)
    assert data.y_test.tolist() == ["a"]
    np.testing.assert_array_equal(read_inputs(path), X[:1] + 1)
    np.testing.assert_array_equal(read_inputs(path, split="train"), X)
    np.testing.assert_array_equal(read_inputs(npz(tmp_path, x=X)), X)


@pytest.mark.parametrize(
    ("arrays", "reason"),
    [
        ({"x": X}, "expected the arrays x_train"),
        ({"a": X}, "got a"),
        ({"x_train": X, "y_train": Y, "x_test": X}, "expected the arrays"),
        ({"x": X, "y": Y[:3]}, r"for each of 4 inputs; got <U1 \[3\]"),
        ({"x": X, "y": np.zeros(4, "M8[s]")}, "expected a number or string"),
        ({"x": X.astype(complex), "y": Y}, "inputs are an array of numbers"),
        ({"x": X, "y": np.full(4, 2**31, np.uint32).view("<U1")}, "not Unicode"),
    ],
)
def test_npz_archives_that_do_not_fit(arrays, reason, tmp_path):
    with pytest.raises(FileError, match=f"set.npz.*{reason}"):
        read_data(npz(tmp_path, **arrays))


def test_idx_folders_and_pairs(tmp_path):
    images, labels = idx_set(tmp_path)
    data = read_data(tmp_path)
    np.testing.assert_array_equal(data.x, images)
    np.testing.assert_array_equal(data.x_test, images + 1)
    np.testing.assert_array_equal(data.y_test, labels)
    np.testing.assert_array_equal(read_inputs(tmp_path), images + 1)
    pair = read_data(tmp_path / "t10k-images-idx3-ubyte.gz")
    np.testing.assert_array_equal(pair.x, images + 1)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    np.testing.assert_array_equal(read_inputs(tmp_path / "t10k-images-idx3-ubyte.gz"), images + 1)
    with pytest.raises(FileError, match="labels are missing; put t10k-labels-idx1-ubyte or"):
        read_data(tmp_path)


def test_folders_of_images(tmp_path):
    expected = grey_set(tmp_path / "set")
    np.testing.assert_array_equal(read_data(tmp_path / "set").x, expected)
    np.testing.assert_array_equal(read_inputs(tmp_path / "set"), expected)
    assert read_data(tmp_path / "set", image_size=(2, 2)).x.shape == (3, 2, 2)
    save(tmp_path / "flat/0.png", pixels(0, 4, 4))
    assert read_inputs(tmp_path / "flat", image_size=(2, 2)).shape == (1, 2, 2)


def test_tables_and_npy(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,0.5\n")
    assert read_data(tmp_path / "t.csv").y.tolist() == [0.5]
    assert read_data(tmp_path / "t.csv", target="a").y.tolist() == [1]
    assert read_inputs(tmp_path / "t.csv", target="y").tolist() == [[1]]
    np.save(tmp_path / "x.npy", X)
    np.testing.assert_array_equal(read_inputs(tmp_path / "x.npy"), X)
    with pytest.raises(InputError, match="of no kind"):
        read_data(tmp_path / "x.npy")


def test_options_that_a_source_does_not_heed(tmp_path):
    with pytest.raises(InputError, match="a target is a column"):
        read_data(npz(tmp_path, x=X, y=Y), target="y")
    with pytest.raises(InputError, match="image_size is for images and folders"):
        read_data(npz(tmp_path, x=X, y=Y), image_size=(2, 2))
