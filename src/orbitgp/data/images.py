"""Images by class: one subfolder for each class, read with Pillow (extra `images`)."""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orbitgp.data.labelled import LabelledData
from orbitgp.errors import FileError, InputError

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "BMP", "TIFF", "GIF", "WEBP", "PPM")
"""Read by Pillow itself; others, EPS among them, may start other programs."""

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".gif", ".webp", ".ppm", ".pgm")
GREY = {"1", "L", "LA"}
COLOUR = {"P", "PA", "RGB", "RGBA", "CMYK", "YCbCr"}
MAX_BYTES = 2**33
"""Of all images together; more than this comes in pieces."""


def read_image_folder(folder: Path, *, size: tuple[int, int] | None = None) -> LabelledData:
    """Images in a subfolder for each class, whose names are the labels, in sorted order.

    Above the classes there may be `train` and `test`. Grey images give [n, H, W], and as soon as
    one is in colour all give [n, 3, H, W], as uint8; what is transparent is taken as opaque.
    With `size`, height and width, all are resized: bilinear, and averaged where they shrink.
    """
    check_size(size)
    parts = _parts(folder)
    train, *rest = [_by_class(part) for part in parts]
    unknown = {label for part in rest for _, label in part} - {label for _, label in train}
    if unknown:
        raise FileError(
            f"{parts[-1]}: {', '.join(sorted(unknown))} is no class of {parts[0]}; a class that "
            "is tested must be there to learn from"
        )
    files = [file for part in (train, *rest) for file in part]
    x, y = _stack([path for path, _ in files], size), np.array([label for _, label in files])
    count = len(train)
    if not rest:
        return LabelledData(x, y)
    return LabelledData(x[:count], y[:count], x[count:], y[count:])


def read_images(source: Path, *, size: tuple[int, int] | None = None) -> np.ndarray:
    """One image, or those that lie in a folder itself, without labels, in sorted order."""
    check_size(size)
    return _stack(image_files(source), size)


def image_files(source: Path, part: str = "test") -> list[Path]:
    """The files of the images, in the order in which they are read.

    Of a folder with a folder for each class those of this part, if it has parts.
    """
    if is_image(source):
        return [source]
    if has_subfolders(source):
        parts = _parts(source)
        chosen = parts[-1] if part == "test" else parts[0]
        return [path for path, _ in _by_class(chosen)]
    files = _entries(source)
    if not files:
        raise FileError(f"{source} has no images")
    return [_file(path) for path in files]


def is_image(path: Path) -> bool:
    """Whether a file is named like an image."""
    return path.suffix.lower() in SUFFIXES and path.is_file()


def decode_image(data: bytes, place: str) -> np.ndarray:
    """One image from its bytes: [H, W] or [3, H, W], uint8."""
    with _opened(io.BytesIO(data), place) as image:
        return image_array(image, place)


def image_array(image: "Image", place: str) -> np.ndarray:
    """A picture of Pillow: [H, W] or [3, H, W], uint8."""
    return _pixels(image, _channels(image, place), None)


def has_subfolders(folder: Path) -> bool:
    """Whether a folder has folders in it, hidden ones aside."""
    return any(path.is_dir() for path in _entries(folder))


def check_size(size: tuple[int, int] | None) -> None:
    """Refuse a height or width that no image can have."""
    if size is not None and (min(size) < 1 or size[0] * size[1] > MAX_BYTES // 2**8):
        raise InputError(f"the size of images is their height and width in pixels; got {size}")


def _parts(folder: Path) -> list[Path]:
    """The folders that hold classes: train and test, or the folder itself."""
    names = {path.name for path in _entries(folder)}
    if names in ({"train"}, {"train", "test"}) and has_subfolders(folder / "train"):
        return [folder / name for name in ("train", "test") if name in names]
    return [folder]


def _by_class(folder: Path) -> list[tuple[Path, str]]:
    files, entries = [], _entries(folder)
    if entries and not any(part.is_dir() for part in entries):
        raise FileError(
            f"{folder} has no folders of classes; expected images as in "
            f"{folder / 'CLASS' / entries[0].name}: name the folder above if this one is a class"
        )
    for part in entries:
        if not part.is_dir():
            raise FileError(
                f"{part} lies beside the folders of classes; put it into the folder of its class, "
                "or somewhere else"
            )
        found = _entries(part)
        if not found:
            raise FileError(f"{part} has no images; remove it, or put the images of {part.name} in")
        files += [(_file(path), part.name) for path in found]
    if not files:
        raise FileError(f"{folder} is empty; expected a folder of images for each class")
    return files


def _entries(folder: Path) -> list[Path]:
    """What is in a folder, sorted by name, hidden files aside."""
    try:
        paths = [path for path in folder.iterdir() if not path.name.startswith(".")]
    except OSError as error:
        raise FileError(f"{folder} cannot be read: {error}") from None
    return sorted(paths, key=lambda path: path.name)


def _file(path: Path) -> Path:
    if not path.is_file():
        raise FileError(
            f"{path} is not a file; expected images in one folder for each class, with train and "
            "test above the classes or nothing"
        )
    return path


def _stack(paths: list[Path], size: tuple[int, int] | None) -> np.ndarray:
    """All images as one array; every header is read before room is made for the pixels."""
    heads = [_head(path) for path in paths]
    channels = max(head[0] for head in heads)
    shape = size or heads[0][1]
    for path, head in zip(paths, heads, strict=True):
        if size is None and head[1] != shape:
            raise FileError(
                f"{path} has {head[1][0]}×{head[1][1]} pixels and {paths[0]} {shape[0]}×"
                f"{shape[1]}; resize all by image_size=(H, W), or --image_size H W"
            )
    if len(paths) * channels * shape[0] * shape[1] > MAX_BYTES:
        raise FileError(
            f"{paths[0].parent}: {len(paths)} images of {shape[0]}×{shape[1]} pixels are more "
            f"than {MAX_BYTES} bytes; give a smaller size"
        )
    images = np.empty((len(paths), *((3,) if channels == 3 else ()), *shape), np.uint8)
    for number, path in enumerate(paths):
        with _opened(path, str(path)) as image:
            images[number] = _pixels(image, channels, shape)
    return images


def _head(path: Path) -> tuple[int, tuple[int, int]]:
    """Channels, and height and width."""
    with _opened(path, str(path)) as image:
        return _channels(image, str(path)), (image.height, image.width)


@contextmanager
def _opened(source: Path | io.BytesIO, place: str) -> Iterator["Image"]:
    """An image whose pixels are not read yet; whatever Pillow raises names the place."""
    pillow = _pillow()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            with pillow.open(source, formats=FORMATS) as image:
                yield image
    except FileError:
        raise
    except pillow.UnidentifiedImageError:
        raise FileError(
            f"{place} is not an image in one of the formats {', '.join(FORMATS)}; remove it, or "
            "save it as PNG"
        ) from None
    except Exception as error:  # malformed bytes make Pillow raise almost anything
        raise FileError(
            f"{place} cannot be read as an image: {type(error).__name__}: {error!s:.200}; replace "
            "or remove it"
        ) from None


def _channels(image: "Image", place: str) -> int:
    if image.mode not in GREY | COLOUR:
        raise FileError(
            f"{place} has pixels of kind {image.mode}; save it with 8 bits for each channel, or "
            "give the numbers as an npz archive"
        )
    if getattr(image, "is_animated", False) and image.format != "MPO":
        raise FileError(f"{place} has more than one picture in it; save one of them as PNG")
    return 1 if image.mode in GREY else 3


def _pixels(image: "Image", channels: int, shape: tuple[int, int] | None) -> np.ndarray:
    pillow = _pillow()
    if channels == 3 and image.mode in ("LA", "PA"):
        image = image.convert("RGBA")
    image = image.convert("RGB" if channels == 3 else "L")
    if shape is not None and (image.height, image.width) != shape:
        image = image.resize((shape[1], shape[0]), pillow.Resampling.BILINEAR)
    values = np.array(image)
    return np.ascontiguousarray(values.transpose(2, 0, 1)) if channels == 3 else values


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise InputError(
            'images are read with Pillow, which is not here: pip install "orbitgp[images]"'
        ) from None
    return Image
