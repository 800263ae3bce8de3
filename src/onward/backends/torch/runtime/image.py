"""Decoding of images: which format it is, and the formats without lossy compression."""

import re
import struct
import zlib
from typing import Any

import numpy as np
import torch
from torch import Tensor

from onward.backends.torch.runtime.image_jpeg import decode_jpeg
from onward.backends.torch.runtime.image_jpeg2000_tile import decode_jpeg2000
from onward.backends.torch.runtime.image_webp import decode_webp

LARGEST_IMAGE = 1 << 27
"""Pixels: more than this is taken for a damaged header."""


def decode_image(data: Tensor, pixel_format: str = "RGB") -> Tensor:
    """The image in an encoded file (a vector of bytes) as uint8, height x width x channels.

    BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP, with the same pixels as Pillow (libjpeg-turbo, OpenJPEG, libwebp).
    The pixel format is "RGB", "BGR" or "Grayscale"; transparency is ignored.
    """
    pixels = decode_rgb(data.cpu().numpy().tobytes())
    if pixel_format == "BGR":
        pixels = pixels[:, :, ::-1]
    elif pixel_format == "Grayscale":
        luma = pixels.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32)
        pixels = ((luma + 0x8000) >> 16).astype(np.uint8)[:, :, None]
    return torch.from_numpy(np.ascontiguousarray(pixels)).to(data.device)


def decode_rgb(data: bytes) -> np.ndarray:
    """The image in an encoded file of any known format, as uint8, height x width x 3."""
    decoders = {
        rb"\xff\xd8\xff": decode_jpeg,
        rb"\x89PNG\r\n\x1a\n": decode_png,
        rb"BM": decode_bmp,
        rb"P[1-6]\s": decode_pnm,
        rb"II\*\0|MM\0\*": decode_tiff,
        rb"RIFF....WEBP": decode_webp,
        rb"\0\0\0\x0cjP  \r\n\x87\n|\xff\x4f\xff\x51": decode_jpeg2000,
    }
    for signature, decoder in decoders.items():
        if re.match(signature, data, re.DOTALL):
            try:
                pixels = decoder(data)
            except (ValueError, LookupError, OverflowError, struct.error, zlib.error) as error:
                detail = f"damaged data, {error!r}" if isinstance(error, LookupError) else error
                raise ValueError(f"cannot decode the image ({decoder.__name__}): {detail}") from error
            return pixels if pixels.shape[2] == 3 else np.repeat(pixels[:, :, :1], 3, axis=2)
    raise ValueError(f"the data is not an image of a known format: it starts with {data[:8]!r}")


def check_image_size(width: int, height: int) -> None:
    if not (width > 0 and height > 0 and width * height <= LARGEST_IMAGE):
        raise ValueError(f"a size of {width} x {height}")


def bytes_at(data: bytes, start: int, size: int) -> bytes:
    """A part of the file, all of which must exist."""
    if start < 0 or size < 0 or start + size > len(data):
        raise ValueError("the data ends too early")
    return data[start : start + size]


def unpack_samples(rows: np.ndarray, depth: int, count: int) -> np.ndarray:
    """The first `count` samples of `depth` bits (1, 2, 4 or 8, highest first) in each row of bytes."""
    if depth < 8:
        shifts = np.arange(8 - depth, -1, -depth, dtype=np.uint8)
        rows = ((rows[:, :, None] >> shifts) & ((1 << depth) - 1)).reshape(len(rows), -1)
    return rows[:, :count]


def paletted(indices: np.ndarray, palette: np.ndarray) -> np.ndarray:
    if indices.size and indices.max() >= len(palette):
        raise ValueError(f"colour {indices.max()} of a palette of {len(palette)}")
    colors: np.ndarray = palette[indices]
    return colors


# Portable anymap


def decode_pnm(data: bytes) -> np.ndarray:
    """P1 to P6: bitmaps, gray and colour images, as text or binary, of up to 16 bits."""
    kind = data[1] - ord("0")
    binary, bitmap, channels = kind > 3, kind in (1, 4), 3 if kind in (3, 6) else 1
    position, fields = 2, []
    for _ in range(2 if bitmap else 3):
        found = re.compile(rb"(?:\s|#[^\n\r]*[\n\r])*(\d{1,9})").match(data, position)
        if not found:
            raise ValueError("no size in the header")
        position = found.end()
        fields.append(int(found[1]))
    width, height, largest = fields[0], fields[1], 1 if bitmap else fields[2]
    check_image_size(width, height)
    if not 0 < largest < 65536:
        raise ValueError(f"a largest value of {largest}")
    count = width * height * channels
    if not binary:
        body = re.sub(rb"#[^\n\r]*", b"", data[position:])
        words: Any = re.findall(rb"[01]", body) if bitmap else body.split(maxsplit=count)[:count]
        if len(words) < count or not all(word.isdigit() for word in words[:count]):
            raise ValueError("the data is not numbers or ends too early")
        samples = np.array(words[:count], dtype=np.int64)
    elif bitmap:
        stride = (width + 7) // 8
        rows = np.frombuffer(bytes_at(data, position + 1, stride * height), np.uint8).reshape(height, stride)
        samples = unpack_samples(rows, 1, width).reshape(-1)
    else:
        sample = np.dtype(">u2" if largest > 255 else "u1")
        samples = np.frombuffer(bytes_at(data, position + 1, count * sample.itemsize), sample)
    if bitmap:
        samples = 1 - samples
    if largest != 255:
        samples = np.rint(np.minimum(samples, largest) / largest * 255)
    return samples.astype(np.uint8).reshape(height, width, channels)


# Windows bitmap


def decode_bmp(data: bytes) -> np.ndarray:
    """1 to 32 bits a pixel, with a palette or bit masks; compressed bitmaps are refused."""
    start, header = struct.unpack_from("<II", data, 10)
    colors = compression = 0
    masks = [0x7C00, 0x3E0, 0x1F]
    if header == 12:
        width, height, _, depth = struct.unpack_from("<HHHH", data, 18)
        entry = 3
    else:
        width, height, _, depth, compression = struct.unpack_from("<iiHHI", data, 18)
        (colors,) = struct.unpack_from("<I", data, 46)
        entry = 4
    if depth == 32:
        masks = [0xFF0000, 0xFF00, 0xFF]
    check_image_size(width, abs(height))
    if compression == 3 and depth in (16, 32):
        masks = list(struct.unpack_from("<III", data, 54))
    elif compression or depth not in (1, 4, 8, 16, 24, 32):
        raise ValueError(f"unsupported: {depth} bits a pixel, compression {compression}")
    stride = (width * depth + 31) // 32 * 4
    rows = np.frombuffer(bytes_at(data, start, stride * abs(height)), np.uint8).reshape(-1, stride)
    if height > 0:
        rows = rows[::-1]
    if depth <= 8:
        size = min(colors or 1 << depth, 1 << depth)
        table = np.frombuffer(bytes_at(data, 14 + header, size * entry), np.uint8).reshape(-1, entry)
        return paletted(unpack_samples(rows, depth, width), table[:, 2::-1])
    if depth == 24:
        return rows[:, : width * 3].reshape(-1, width, 3)[:, :, ::-1]
    pixels = np.ascontiguousarray(rows).view(f"<u{depth // 8}")[:, :width].astype(np.int64)
    return np.stack([scaled_bits(pixels, mask) for mask in masks], axis=2)


def scaled_bits(pixels: np.ndarray, mask: int) -> np.ndarray:
    """The bits of each pixel under a mask, scaled to 0 … 255."""
    if not mask:
        return np.zeros(pixels.shape, np.uint8)
    lowest = mask & -mask
    return ((pixels & mask) // lowest * 255 // (mask // lowest)).astype(np.uint8)


# Portable network graphics


def decode_png(data: bytes) -> np.ndarray:
    """Every colour type, bit depth and interlacing; of 16 bits the upper eight are kept."""
    chunks: dict[bytes, bytes] = {}
    pieces, position = [], 8
    while b"IEND" not in chunks:
        (size,) = struct.unpack_from(">I", data, position)
        name, body = data[position + 4 : position + 8], bytes_at(data, position + 8, size)
        (checksum,) = struct.unpack_from(">I", data, position + 8 + size)
        if name in (b"IHDR", b"PLTE", b"IDAT") and zlib.crc32(name + body) != checksum:
            raise ValueError(f"wrong checksum of {name.decode()}")
        chunks[name] = body
        if name == b"IDAT":
            pieces.append(body)
        position += 12 + size
    width, height, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    check_image_size(width, height)
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    if depth not in ({0: (1, 2, 4, 8, 16), 3: (1, 2, 4, 8)}.get(color, (8, 16))) or interlaced > 1:
        raise ValueError(f"{depth} bits of colour type {color}, interlacing {interlaced}")
    adam7 = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)]
    passes = [
        (top, left, down, right, -(-(height - top) // down), -(-(width - left) // right))
        for top, left, down, right in (adam7 if interlaced else [(0, 0, 1, 1)])
        if top < height and left < width
    ]
    strides = [(columns * channels * depth + 7) // 8 for *_, columns in passes]
    total = sum((stride + 1) * p[4] for stride, p in zip(strides, passes, strict=True))
    raw = zlib.decompressobj().decompress(b"".join(pieces), total)
    if len(raw) < total:
        raise ValueError("the data ends too early")
    samples = np.empty((height, width, channels), np.uint8)
    start = 0
    for (top, left, down, right, rows, columns), stride in zip(passes, strides, strict=True):
        lines = np.frombuffer(raw, np.uint8, (stride + 1) * rows, start).reshape(rows, stride + 1)
        lines = unfiltered(lines, max(1, channels * depth // 8))
        lines = lines[:, ::2] if depth == 16 else unpack_samples(lines, depth, columns * channels)
        samples[top::down, left::right] = lines.reshape(rows, columns, channels)
        start += (stride + 1) * rows
    if color == 3:
        return paletted(samples[:, :, 0], np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3))
    if depth < 8:
        samples *= 255 // ((1 << depth) - 1)
    return samples[:, :, :3] if channels >= 3 else samples[:, :, :1]


def unfiltered(lines: np.ndarray, step: int) -> np.ndarray:
    """Undo PNG's prediction of each byte from those to the left (`step` bytes away), above, and above left."""
    rows, stride = lines.shape[0], lines.shape[1] - 1
    out = np.zeros((rows + 1, stride), np.uint8)
    for y in range(rows):
        kind, line, above, row = lines[y, 0], lines[y, 1:], out[y], out[y + 1]
        if kind == 0:
            row[:] = line
        elif kind == 1:
            for channel in range(step):
                np.cumsum(line[channel::step], dtype=np.uint8, out=row[channel::step])
        elif kind == 2:
            np.add(line, above, out=row)
        elif kind == 3:
            row[:] = averages(line.tobytes(), above.tobytes(), step)
        elif kind == 4:
            row[:] = paeth(line.tobytes(), above.tobytes(), step)
        else:
            raise ValueError(f"filter {kind}")
    return out[1:]


def averages(line: bytes, above: bytes, step: int) -> np.ndarray:
    out = bytearray(step) + line
    for i, up in enumerate(above):
        out[i + step] = (out[i + step] + ((out[i] + up) >> 1)) & 255
    return np.frombuffer(out, np.uint8)[step:]


def paeth(line: bytes, above: bytes, step: int) -> np.ndarray:
    out = bytearray(step) + line
    for i, (left_up, up) in enumerate(zip(bytes(step) + above, above, strict=False)):
        left = out[i]
        p, q = up - left_up, left - left_up
        to_left, to_up, to_both = abs(p), abs(q), abs(p + q)
        if to_left > to_up or to_left > to_both:
            left = up if to_up <= to_both else left_up
        out[i + step] = (out[i + step] + left) & 255
    return np.frombuffer(out, np.uint8)[step:]


# Tagged image file format


def decode_tiff(data: bytes) -> np.ndarray:
    """Gray, palette and RGB images of 1 to 16 bits; strips or tiles, plain, PackBits, LZW or deflate."""
    order = "<" if data[:2] == b"II" else ">"
    tags = tiff_tags(data, order)

    def first(tag: int, default: int) -> int:
        return tags.get(tag, [default])[0]

    width, height = tags[256][0], tags[257][0]
    check_image_size(width, height)
    depth, channels, photometric = first(258, 1), first(277, 1), tags[262][0]
    planar, tiled = first(284, 1) == 2, 324 in tags
    if (
        depth not in (1, 2, 4, 8, 16)
        or len(set(tags.get(258, [1]))) > 1
        or photometric not in (0, 1, 2, 3)
        or not (3 if photometric == 2 else 1) <= channels <= 16
        or first(339, 1) != 1
        or first(266, 1) != 1
        or first(317, 1) not in ((1, 2) if depth >= 8 else (1,))
    ):
        raise ValueError(f"unsupported: {depth} bits, {channels} samples, photometric interpretation {photometric}")
    part_width, part_height = (tags[322][0], tags[323][0]) if tiled else (width, min(first(278, height), height))
    check_image_size(part_width, part_height)
    across, down = -(-width // part_width), -(-height // part_height)
    planes, per_part = (channels, 1) if planar else (1, channels)
    offsets, sizes = (tags[324], tags[325]) if tiled else (tags[273], tags.get(279, [len(data) - tags[273][0]]))
    stride = (part_width * per_part * depth + 7) // 8
    if len(offsets) < across * down * planes or len(sizes) < across * down * planes:
        raise ValueError("parts are missing")
    parts = []
    for index in range(across * down * planes):
        top = index // across % down * part_height
        rows = part_height if tiled else min(part_height, height - top)
        body = inflate_tiff(bytes_at(data, offsets[index], sizes[index]), first(259, 1), rows * stride)
        lines = np.frombuffer(body, np.uint8, rows * stride).reshape(rows, stride)
        samples: np.ndarray
        if depth == 16:
            samples = lines.view(f"{order}u2").astype(np.uint16)
        else:
            samples = unpack_samples(lines, depth, part_width * per_part)
        samples = samples.reshape(rows, part_width, per_part)
        if first(317, 1) == 2:
            samples = np.cumsum(samples, axis=1, dtype=samples.dtype)
        parts.append((samples >> 8).astype(np.uint8) if depth == 16 and photometric != 3 else samples)
    image = np.concatenate(
        [
            np.concatenate(
                [
                    np.concatenate(parts[(plane * down + row) * across : (plane * down + row + 1) * across], axis=1)
                    for row in range(down)
                ]
            )
            for plane in range(planes)
        ],
        axis=2,
    )[:height, :width]
    if photometric == 3:
        palette = np.array(tags[320], dtype=np.int64).reshape(3, -1).T // 256
        return paletted(image[:, :, 0], palette.astype(np.uint8))
    if depth < 8:
        image = image * np.uint8(255 // ((1 << depth) - 1))
    if photometric == 0:
        image = 255 - image
    return image[:, :, :3] if photometric == 2 else image[:, :, :1]


def tiff_tags(data: bytes, order: str) -> dict[int, list[int]]:
    """The integers of each entry in the first directory."""
    (start,) = struct.unpack_from(f"{order}I", data, 4)
    (count,) = struct.unpack_from(f"{order}H", data, start)
    tags = {}
    for position in range(start + 2, start + 2 + 12 * count, 12):
        tag, kind, size = struct.unpack_from(f"{order}HHI", data, position)
        code = {1: "B", 3: "H", 4: "I"}.get(kind)
        if code:
            length = size * struct.calcsize(code)
            place = position + 8 if length <= 4 else struct.unpack_from(f"{order}I", data, position + 8)[0]
            tags[tag] = list(struct.unpack(f"{order}{size}{code}", bytes_at(data, place, length)))
    return tags


def inflate_tiff(data: bytes, compression: int, size: int) -> bytes:
    """`size` bytes of a strip or tile."""
    if compression == 1:
        out = data
    elif compression == 5:
        out = lzw(data, size)
    elif compression in (8, 32946):
        out = zlib.decompressobj().decompress(data, size)
    elif compression == 32773:
        out = packbits(data)
    else:
        raise ValueError(f"unsupported: compression {compression}")
    return bytes_at(out, 0, size)


def packbits(data: bytes) -> bytes:
    out, position = bytearray(), 0
    while position < len(data):
        control = data[position]
        if control < 128:
            out += data[position + 1 : position + 2 + control]
            position += 2 + control
        else:
            if control > 128:
                out += data[position + 1 : position + 2] * (257 - control)
            position += 2 if control > 128 else 1
    return bytes(out)


def lzw(data: bytes, size: int) -> bytes:
    """At least `size` bytes, or as many as there are, of TIFF's LZW: codes of 9 to 12 bits, highest first."""
    words = [bytes([i]) for i in range(256)] + [b"", b""]
    table, out, produced = list(words), [], 0
    previous, width, held, bits = b"", 9, 0, 0
    for byte in data:
        held, bits = held << 8 | byte, bits + 8
        if bits < width:
            continue
        bits -= width
        code, held = held >> bits, held & ((1 << bits) - 1)
        if code == 257 or produced >= size:
            break
        if code == 256:
            table, previous, width = list(words), b"", 9
            continue
        if code > len(table) or (code == len(table) and not previous) or len(table) > 4096:
            raise ValueError("wrong LZW code")
        word = table[code] if code < len(table) else previous + previous[:1]
        if previous:
            table.append(previous + word[:1])
        out.append(word)
        produced += len(word)
        previous = word
        width = min(12, max(9, (len(table) + 1).bit_length()))
    return b"".join(out)
