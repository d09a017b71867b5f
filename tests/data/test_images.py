"""Images by class: what is read, and what is refused by name."""

import re
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from orbitgp import FileError, InputError
from orbitgp.data.images import decode_image, read_image_folder, read_images


def pixels(seed, *shape):
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def save(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


def grey_set(folder):
    arrays = [pixels(seed, 4, 6) for seed in range(3)]
    for name, values in zip(("cat/b.png", "cat/a.bmp", "dog/1.tif"), arrays, strict=True):
        save(folder / name, values)
    return np.stack([arrays[1], arrays[0], arrays[2]])


def test_grey_images_in_sorted_order_without_hidden_files(tmp_path):
    expected = grey_set(tmp_path)
    (tmp_path / "cat/.thumbs").write_text("hidden")
    (tmp_path / ".cache").mkdir()
    data = read_image_folder(tmp_path)
    np.testing.assert_array_equal(data.x, expected)
    assert data.x.dtype == np.uint8
    assert data.y.tolist() == ["cat", "cat", "dog"]
    assert data.x_test is None


def test_colour_comes_channels_first_and_makes_grey_colour(tmp_path):
    colour, grey = pixels(0, 4, 6, 3), pixels(1, 4, 6)
    save(tmp_path / "a/0.png", colour)
    save(tmp_path / "a/1.png", grey)
    save(tmp_path / "a/2.png", np.concatenate([colour, pixels(2, 4, 6, 1)], 2))
    x = read_image_folder(tmp_path).x
    np.testing.assert_array_equal(x[0], colour.transpose(2, 0, 1))
    np.testing.assert_array_equal(x[1], np.stack([grey] * 3))
    np.testing.assert_array_equal(x[2], x[0])


def test_train_and_test_above_the_classes(tmp_path):
    expected = grey_set(tmp_path / "train")
    save(tmp_path / "test/dog/x.png", pixels(5, 4, 6))
    data = read_image_folder(tmp_path)
    np.testing.assert_array_equal(data.x, expected)
    np.testing.assert_array_equal(data.x_test, pixels(5, 4, 6)[None])
    assert data.y_test.tolist() == ["dog"]
    save(tmp_path / "test/cow/x.png", pixels(5, 4, 6))
    with pytest.raises(FileError, match="cow is no class of"):
        read_image_folder(tmp_path)


def test_a_size_averages(tmp_path):
    save(tmp_path / "a/0.png", np.full((8, 12), 7, np.uint8))
    save(tmp_path / "a/1.png", np.kron(np.eye(10), np.full((5, 5), 200)).astype(np.uint8))
    with pytest.raises(FileError, match=r"1\.png has 50×50 pixels and .*--image_size H W"):
        read_image_folder(tmp_path)
    x = read_image_folder(tmp_path, size=(2, 3)).x
    assert x.shape == (2, 2, 3)
    assert (x[0] == 7).all()
    assert abs(x[1].mean() - 20) < 2  # one tenth of the pixels is 200: none was just picked
    with pytest.raises(InputError, match="height and width"):
        read_image_folder(tmp_path, size=(0, 3))


def test_images_without_labels(tmp_path):
    for name in ("b.png", "a.png"):
        save(tmp_path / name, pixels(ord(name[0]), 3, 3))
    np.testing.assert_array_equal(
        read_images(tmp_path), np.stack([pixels(ord(name), 3, 3) for name in "ab"])
    )


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb(side):
    head = struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0"))


REFUSED = {
    "notes.txt": (b"hello", "is not an image"),
    "empty.png": (b"", "is not an image"),
    "figure.eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "is not an image"),
    "warns.png": (bomb(10_000), "DecompressionBomb"),
    "bomb.png": (bomb(100_000), "DecompressionBomb"),
    "short.png": (bomb(8), "cannot be read as an image"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_image_is_refused_by_name(name, tmp_path):
    content, reason = REFUSED[name]
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / name).write_bytes(content)
    with pytest.raises(FileError, match=f"{re.escape(name)}.*{reason}"):
        read_image_folder(tmp_path)


def test_what_is_in_the_wrong_place_is_refused(tmp_path):
    with pytest.raises(FileError, match="is empty; expected a folder"):
        read_image_folder(tmp_path)
    with pytest.raises(FileError, match="cannot be read"):
        read_image_folder(tmp_path / "nowhere")
    grey_set(tmp_path)
    (tmp_path / "cow").mkdir()
    with pytest.raises(FileError, match="cow has no images"):
        read_image_folder(tmp_path)
    save(tmp_path / "cow/deep/0.png", pixels(0, 4, 6))
    with pytest.raises(FileError, match="deep is not a file"):
        read_image_folder(tmp_path)
    (tmp_path / "labels.csv").write_text("a,b")
    (tmp_path / "cow").rename(tmp_path / "z")
    with pytest.raises(FileError, match=r"labels\.csv lies beside"):
        read_image_folder(tmp_path)


def test_pixels_that_8_bits_do_not_hold_are_refused(tmp_path):
    save(tmp_path / "a/0.png", pixels(0, 4, 6).astype(np.uint16) * 256)
    with pytest.raises(FileError, match="kind I;16; save it with 8 bits"):
        read_image_folder(tmp_path)


def test_several_pictures_in_one_file_are_refused(tmp_path):
    frames = [Image.fromarray(pixels(seed, 4, 6)) for seed in range(2)]
    (tmp_path / "a").mkdir()
    frames[0].save(tmp_path / "a/0.gif", save_all=True, append_images=frames[1:])
    with pytest.raises(FileError, match="more than one picture"):
        read_image_folder(tmp_path)


def test_bytes_are_decoded(tmp_path):
    save(tmp_path / "0.png", pixels(0, 4, 6, 3))
    decoded = decode_image((tmp_path / "0.png").read_bytes(), "here")
    np.testing.assert_array_equal(decoded, pixels(0, 4, 6, 3).transpose(2, 0, 1))
    with pytest.raises(FileError, match="here is not an image"):
        decode_image(b"none", "here")
