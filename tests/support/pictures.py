"""Tells whether a PNG that a browser has made shows anything."""

import struct
import zlib


def rows(data):
    """The rows of pixels, each as PNG has filtered it."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n"), "no PNG"
    packed, at = b"", 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        body = data[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", body[:10])
        elif kind == b"IDAT":
            packed += body
        at += length + 12
    pixels = zlib.decompress(packed)
    size = 1 + (width * depth * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour] + 7) // 8
    assert len(pixels) == size * height, f"{width} × {height}"
    return [pixels[start : start + size] for start in range(0, len(pixels), size)]


def is_blank(data):
    """Is it of one colour, or nearly? Rows without text or lines are the same, but for the filter's number."""
    return len({row[1:] for row in rows(data)}) < 10
