"""Data by name, from a folder or from a file."""

from pathlib import Path
from typing import Literal

import numpy as np

from orbitgp.data import named
from orbitgp.data.idx import read_idx
from orbitgp.data.images import (
    check_size,
    has_subfolders,
    image_files,
    is_image,
    read_image_folder,
    read_images,
)
from orbitgp.data.labelled import LabelledData
from orbitgp.data.npz import read_npy, read_npz
from orbitgp.data.tables import read_table, read_table_inputs
from orbitgp.errors import FileError, InputError

TABLES = (".csv", ".parquet")
POSSIBLE = (
    "`digits`, `openml:NAME`, a folder with a folder of images for each class (or with train and "
    "test folders of such folders), a folder with IDX files, or a file .npz, .csv or .parquet"
)


def read_data(
    source: str | Path, *, target: str | None = None, image_size: tuple[int, int] | None = None
) -> LabelledData:
    """Inputs with labels.

    `source` is `digits` or `openml:NAME`; a folder of images by class, or of IDX files; IDX images
    with their labels beside them; an npz archive with x_train, y_train, x_test, y_test or x, y; a
    .csv or .parquet table, in which `target` names the column of labels (the last by default).
    `image_size`, height and width, is for folders of images and for rows of OpenML.
    """
    if isinstance(source, str) and named.is_name(source):
        check_size(image_size)
        return named.load_named(source, target=target, image_size=image_size)
    path = _existing(source)
    _refuse_options(path, target, image_size)
    if path.is_dir():
        return _idx_folder(path) or read_image_folder(path, size=image_size)
    if path.suffix.lower() in TABLES:
        return read_table(path, target=target)
    if path.suffix.lower() == ".npz":
        return _from_npz(path)
    if _is_idx_images(path):
        return LabelledData(*_idx_pair(path))
    raise _unknown(path)


def read_inputs(
    source: str | Path,
    *,
    split: Literal["train", "test"] = "test",
    target: str | None = None,
    image_size: tuple[int, int] | None = None,
) -> np.ndarray:
    """Inputs alone: those of the split where a source has splits, otherwise all it has.

    Beyond what `read_data` takes, there may be no labels: one image, images that lie in a folder
    itself, a lone x in an npz archive, an npy file, IDX images, a table. All columns of a table
    are inputs, but for `target` if it is there.
    """
    path = None if named.is_name(source) else _existing(source)
    if path is not None:
        _refuse_options(path, target, image_size)
        suffix = path.suffix.lower()
        if suffix in TABLES and path.is_file():
            return read_table_inputs(path, target=target)
        if suffix == ".npy":
            return _numeric(read_npy(path, str(path)), str(path))
        if path.is_file() and _is_idx_images(path):
            return read_idx(path)
        if suffix == ".npz" and (arrays := read_npz(path)).keys() == {"x"}:
            return _numeric(arrays["x"], f"{path}: x")
        flat = path.is_dir() and not has_subfolders(path) and not _idx_images(path)
        if flat or is_image(path):
            return read_images(path, size=image_size)
    data = read_data(source, target=target, image_size=image_size)
    return data.x if split == "train" or data.x_test is None else data.x_test


def input_names(source: str | Path, *, split: Literal["train", "test"] = "test") -> list[str]:
    """The file of each input that `read_inputs` reads, relative to its folder; [] if none has."""
    path = Path(source).expanduser()
    if named.is_name(source) or not (is_image(path) or (path.is_dir() and not _idx_images(path))):
        return []
    folder = path if path.is_dir() else path.parent
    return [file.relative_to(folder).as_posix() for file in image_files(path, split)]


def _existing(source: str | Path) -> Path:
    try:
        path = Path(source).expanduser()
        if path.exists():
            return path
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"{source!s:.80} cannot be opened: {error}") from None
    raise InputError(f"there is no file or folder called {source!s:.200}; possible are {POSSIBLE}")


def _refuse_options(source: Path, target: str | None, image_size: tuple[int, int] | None) -> None:
    """An option that a source would not heed is a mistake."""
    if target is not None and source.suffix.lower() not in TABLES:
        raise InputError(f"a target is a column of a .csv or .parquet table; {source} has none")
    if image_size is not None and not (source.is_dir() or is_image(source)):
        raise InputError(f"image_size is for images and folders of them; {source} is neither")
    check_size(image_size)


def _unknown(path: Path) -> InputError:
    return InputError(f"{path} is of no kind that can be read; possible are {POSSIBLE}")


def _from_npz(path: Path) -> LabelledData:
    arrays = read_npz(path)
    train = ("x_train", "y_train") if "x_train" in arrays else ("x", "y")
    missing = [name for name in train if name not in arrays]
    if missing or ("x_test" in arrays) != ("y_test" in arrays):
        raise FileError(
            f"{path}: expected the arrays x_train, y_train and perhaps x_test, y_test, or x and "
            f"y; got {', '.join(arrays)[:200]}"
        )
    pairs = [train, ("x_test", "y_test")] if "x_test" in arrays else [train]
    parts = [_pair(arrays[x], arrays[y], f"{path}: {x}, {y}") for x, y in pairs]
    return LabelledData(*(array for pair in parts for array in pair))


def _pair(x: np.ndarray, y: np.ndarray, place: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels that belong together."""
    _numeric(x, place)
    if y.dtype.kind not in "biufU" or y.ndim not in (1, 2) or len(y) != len(x):
        raise FileError(
            f"{place}: expected a number or string for each of {len(x)} inputs; got {y.dtype} "
            f"{list(y.shape)}"
        )
    if y.dtype.kind == "U" and y.size and _code_points(y).max() > 0x10FFFF:
        raise FileError(f"{place}: a label is not Unicode")
    return x, y


def _code_points(y: np.ndarray) -> np.ndarray:
    native = np.ascontiguousarray(y).astype(y.dtype.newbyteorder("="))
    return native.view(np.uint32) if y.dtype.itemsize else np.zeros(1, np.uint32)


def _numeric(x: np.ndarray, place: str) -> np.ndarray:
    if x.dtype.kind not in "biuf" or x.ndim < 1:
        raise FileError(f"{place}: inputs are an array of numbers; got {x.dtype} {list(x.shape)}")
    return x


def _idx_images(folder: Path) -> list[Path]:
    """IDX files of images in a folder, train before t10k, an unpacked one where there are both."""
    found = sorted(path for path in folder.iterdir() if path.is_file() and _is_idx_images(path))
    parts = ([path for path in found if path.name.startswith(n)] for n in ("train", "t10k"))
    return [paths[0] for paths in parts if paths]


def _is_idx_images(path: Path) -> bool:
    return "-images" in path.name and "ubyte" in path.name


def _idx_folder(folder: Path) -> LabelledData | None:
    pairs = [_idx_pair(path) for path in _idx_images(folder)]
    return LabelledData(*(array for pair in pairs for array in pair)) if pairs else None


def _idx_pair(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """IDX images, and the labels that lie beside them."""
    name = path.name.replace("-images", "-labels").replace("idx3", "idx1")
    name = name.removesuffix(".gz")
    beside = [path.with_name(name), path.with_name(f"{name}.gz")]
    labels = next((file for file in beside if file.is_file()), None)
    if labels is None:
        raise FileError(f"{path}: its labels are missing; put {name} or {name}.gz beside it")
    return _pair(read_idx(path), read_idx(labels), f"{path}, {labels.name}")
