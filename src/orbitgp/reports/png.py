"""Pictures as PNG, by zlib alone."""

import base64
import struct
import zlib

import numpy as np

from orbitgp.errors import InputError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
GREY, RGB = 0, 2


def encode_png(pixels: np.ndarray) -> bytes:
    """Bytes of a PNG file for grey [H, W] or RGB [H, W, 3] pixels of 8 bits."""
    colour = GREY if pixels.ndim == 2 else RGB
    right = pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] == 3)
    if pixels.dtype != np.uint8 or not right or not pixels.size:
        raise InputError(
            f"a picture is uint8 [H, W] or [H, W, 3]; got {pixels.dtype} {list(pixels.shape)}"
        )
    height, width = pixels.shape[:2]
    # each row begins with the number of its filter, and 0 is none
    rows = np.zeros((height, 1 + pixels[0].size), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return SIGNATURE + b"".join(_chunk(*chunk) for chunk in chunks)


def data_uri(pixels: np.ndarray) -> str:
    """A picture as an address that holds it."""
    return "data:image/png;base64," + base64.b64encode(encode_png(pixels)).decode()


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
