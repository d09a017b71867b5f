"""Files of every format, spoilt: a plain result or a typed error that names the file."""

import gzip
import io
import random
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from orbitgp import FileError
from orbitgp.data.idx import read_idx
from orbitgp.data.images import read_image_folder
from orbitgp.data.labelled import LabelledData
from orbitgp.data.npz import read_npz
from orbitgp.data.tables import read_table
from tests.data.test_data import idx_bytes

RANDOM = np.random.default_rng(0)
IMAGES = RANDOM.integers(0, 255, (5, 4, 4), dtype=np.uint8)
PICTURE = RANDOM.integers(0, 255, (12, 10, 3), dtype=np.uint8)
ROWS = {"a": RANDOM.standard_normal(50), "b": np.arange(50), "y": ["cat", "dog"] * 25}
SERIES = {"s": RANDOM.standard_normal((20, 8)).tolist(), "y": np.arange(20.0)}


def written(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def npz(save):
    return written(lambda file: save(file, x=IMAGES))


def parquet(columns, **options):
    return written(lambda file: pq.write_table(pa.table(columns), file, **options))


def picture(kind):
    return written(lambda file: Image.fromarray(PICTURE).save(file, kind))


def csv():
    lines = [f"{a},{b},{y}" for a, b, y in zip(*ROWS.values(), strict=True)]
    return "\n".join(["a,b,y", *lines]).encode()


def mutate(data, chance):
    place = chance.randrange(len(data))
    match chance.randrange(4):
        case 0:
            return (
                data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]
            )
        case 1:
            return data[:place]
        case 2:
            return data[:place] + chance.randbytes(8) + data[place + 8 :]
        case _:
            return data[:place] + data[place : place + 30] + data[place:]


READERS = {
    "idx": read_idx,
    "npz": read_npz,
    "parquet": read_table,
    "csv": read_table,
    "images": lambda path: read_image_folder(path.parents[1]),
}

# name of the file: reader, content, least number of refusals among 100
ORIGINALS = {
    "plain.idx": ("idx", idx_bytes(IMAGES, 8), 50),
    "packed.idx.gz": ("idx", gzip.compress(idx_bytes(IMAGES, 8)), 50),
    "plain.npz": ("npz", npz(np.savez), 50),
    "packed.npz": ("npz", npz(np.savez_compressed), 50),
    "rows.parquet": ("parquet", parquet(ROWS), 50),
    "plain.parquet": ("parquet", parquet(ROWS, compression="none", use_dictionary=False), 50),
    "checked.parquet": ("parquet", parquet(ROWS, write_page_checksum=True), 50),
    "series.parquet": ("parquet", parquet(SERIES, data_page_version="2.0"), 50),
    "rows.csv": ("csv", csv(), 30),
    "picture.png": ("images", picture("PNG"), 50),
    "picture.jpg": ("images", picture("JPEG"), 20),
    "picture.tif": ("images", picture("TIFF"), 20),
    "picture.gif": ("images", picture("GIF"), 20),
    "picture.webp": ("images", picture("WEBP"), 20),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")  # of zipfile
@pytest.mark.parametrize("name", ORIGINALS)
def test_fourteen_times_a_hundred_malformed_files(name, tmp_path):
    reader, content, least = ORIGINALS[name]
    path = tmp_path / "set" / "class" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert isinstance(READERS[reader](path), LabelledData | np.ndarray | dict)
    chance, errors, start = random.Random(name), [], time.monotonic()
    for _ in range(100):
        path.write_bytes(mutate(content, chance))
        try:
            read = READERS[reader](path)
        except FileError as error:
            errors.append(str(error))
            continue
        assert isinstance(read, LabelledData | np.ndarray | dict)
    assert len(errors) >= least
    assert [error for error in errors if str(path) not in error] == []
    assert time.monotonic() - start < 60
