"""Decoding of WebP: the container, and the lossy format's bit stream, a key frame of VP8 (RFC 6386)."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from onward.backends.torch.runtime.image_webp_frame import render_vp8
from onward.backends.torch.runtime.image_webp_lossless import WEBP_LARGEST, decode_vp8l
from onward.backends.torch.runtime.image_webp_tables import (
    VP8_AC_STEPS,
    VP8_DC_STEPS,
    VP8_MODE_CHANCES,
    VP8_TOKEN_CHANCES,
    VP8_TOKEN_CHANGES,
)

BitReader = Callable[[int], int]
VP8_BANDS = [0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 0]
VP8_ZIGZAG = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15]
VP8_LARGE_VALUES = [
    [173, 148, 140],
    [176, 155, 140, 135],
    [180, 157, 141, 134, 130],
    [254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129],
]
"""The chances of the bits of values from 11, 19, 35 and 67."""


def decode_webp(data: bytes) -> np.ndarray:
    """Lossy or lossless, in the simple or the extended container; animations are refused."""
    position = 12
    while position + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, position)
        body = data[position + 8 : position + 8 + size]
        if name in (b"VP8 ", b"VP8L"):
            if len(body) < size:
                raise ValueError("the data ends too early")
            return decode_vp8(body) if name == b"VP8 " else decode_vp8l(body)
        if name == b"ANMF":
            raise ValueError("unsupported: an animation")
        position += 8 + size + size % 2
    raise ValueError("no image")


def bool_reader(data: bytes) -> BitReader:
    """A function that reads a bit, given how likely (of 256) it is 0: VP8's arithmetic coding."""
    span, value, spare, position = 255, 0, -8, 0

    def bit(chance: int) -> int:
        nonlocal span, value, spare, position
        if spare < 0:
            if position > len(data):
                raise ValueError("the data ends too early")
            value = value << 56 | int.from_bytes(data[position : position + 7].ljust(7, b"\0"), "big")
            spare += 56
            position += 7
        split = 1 + ((span - 1) * chance >> 8)
        big = split << spare
        if value >= big:
            value -= big
            span -= split
            result = 1
        else:
            span = split
            result = 0
        if span < 128:
            shift = 8 - span.bit_length()
            span <<= shift
            spare -= shift
        return result

    return bit


def read_number(bit: BitReader, size: int) -> int:
    value = 0
    for _ in range(size):
        value = 2 * value + bit(128)
    return value


def read_optional(bit: BitReader, size: int) -> int:
    """A number with a sign, or nothing, which means 0."""
    if not bit(128):
        return 0
    value = read_number(bit, size)
    return -value if bit(128) else value


@dataclass
class Vp8Header:
    """What the header of a frame says; lists of four are by segment of the image."""

    has_map: bool
    map_chances: list[int]
    steps: np.ndarray
    """Of the first and the other coefficients: 4 x (luma, mean luma, chroma) x 2."""
    simple_filter: bool
    levels: list[list[int]]
    """The strength of the filter, without and with prediction of small blocks."""
    sharpness: int
    chances: list[Any]
    skip_chance: int


@dataclass
class Vp8Blocks:
    """What is known of each macroblock of 16 x 16 pixels, by row and column."""

    segments: np.ndarray
    small: np.ndarray
    """Whether its 16 blocks are predicted one by one."""
    modes: np.ndarray
    """Of its 16 blocks, or the first for all of them: 0 mean, 1 true motion, 2 vertical, 3 horizontal …"""
    chroma_modes: np.ndarray
    coded: np.ndarray
    """Whether it has coefficients beyond the mean."""
    tokens: np.ndarray
    """Coefficients before multiplication: rows x columns x (16 luma, 8 chroma, 1 mean luma) x 16."""


def decode_vp8(data: bytes) -> np.ndarray:
    """A key frame."""
    tag = int.from_bytes(data[:3], "little")
    if tag & 1 or data[3:6] != b"\x9d\x01\x2a":
        raise ValueError("no key frame")
    width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", data, 6))
    if not 0 < width * height <= WEBP_LARGEST:
        raise ValueError(f"a size of {width} x {height}")
    bit = bool_reader(data[10 : 10 + (tag >> 5)])
    read_number(bit, 2)
    header, count = read_vp8_header(bit)
    position = 10 + (tag >> 5) + 3 * (count - 1)
    readers = []
    for i in range(count):
        size = int.from_bytes(data[10 + (tag >> 5) + 3 * i :][:3], "little") if i < count - 1 else len(data)
        readers.append(bool_reader(data[position : position + size]))
        position += size
    blocks = read_macroblocks(bit, readers, header, -(-width // 16), -(-height // 16))
    return render_vp8(header, blocks, width, height)


def read_vp8_header(bit: BitReader) -> tuple[Vp8Header, int]:
    """The header, and the number of partitions that the coefficients are in."""
    segmented, has_map, absolute = bit(128), 0, 0
    quantizers, strengths, map_chances = [0] * 4, [0] * 4, [255] * 3
    if segmented:
        has_map, has_values = bit(128), bit(128)
        if has_values:
            absolute = bit(128)
            quantizers = [read_optional(bit, 7) for _ in range(4)]
            strengths = [read_optional(bit, 6) for _ in range(4)]
        if has_map:
            map_chances = [read_number(bit, 8) if bit(128) else 255 for _ in range(3)]
    simple, level, sharpness = bit(128), read_number(bit, 6), read_number(bit, 3)
    shifts = [0] * 8
    if (adjusted := bit(128)) and bit(128):
        shifts = [read_optional(bit, 6) for _ in range(8)]
    partitions = 1 << read_number(bit, 2)
    quantizer = read_number(bit, 7)
    changes = [read_optional(bit, 4) for _ in range(5)]
    bit(128)
    chances = VP8_TOKEN_CHANCES.tolist()
    for kind, bands in enumerate(VP8_TOKEN_CHANGES.tolist()):
        for band, contexts in enumerate(bands):
            for context, branches in enumerate(contexts):
                for branch, chance in enumerate(branches):
                    if bit(chance):
                        chances[kind][band][context][branch] = read_number(bit, 8)
    skip_chance = read_number(bit, 8) if bit(128) else 0
    levels = []
    for strength in strengths:
        base = strength + (0 if absolute else level) if segmented else level
        pair = [base, base] if not adjusted else [base + shifts[0], base + shifts[0] + shifts[4]]
        levels.append([min(max(one, 0), 63) if level else 0 for one in pair])
    steps = [vp8_steps(q + (0 if absolute else quantizer), changes) for q in quantizers]
    by_place = [[bands[band] for band in VP8_BANDS] for bands in chances]
    header = Vp8Header(
        bool(has_map), map_chances, np.array(steps), bool(simple), levels, sharpness, by_place, skip_chance
    )
    return header, partitions


def vp8_steps(quantizer: int, changes: list[int]) -> list[list[int]]:
    """Quantization steps of luma, mean luma and chroma: of the first and of the other coefficients."""

    def step(table: np.ndarray, change: int, most: int = 127) -> int:
        return int(table[min(max(quantizer + change, 0), most)])

    luma_dc, mean_dc, mean_ac, chroma_dc, chroma_ac = changes
    return [
        [step(VP8_DC_STEPS, luma_dc), step(VP8_AC_STEPS, 0)],
        [step(VP8_DC_STEPS, mean_dc) * 2, max(step(VP8_AC_STEPS, mean_ac) * 155 // 100, 8)],
        [step(VP8_DC_STEPS, chroma_dc, 117), step(VP8_AC_STEPS, chroma_ac)],
    ]


def read_macroblocks(bit: BitReader, readers: list[BitReader], header: Vp8Header, columns: int, rows: int) -> Vp8Blocks:
    """Modes from the first partition, coefficients from the others."""
    shape = (rows, columns)
    blocks = Vp8Blocks(
        np.zeros(shape, np.uint8),
        np.zeros(shape, bool),
        np.zeros((*shape, 16), np.uint8),
        np.zeros(shape, np.uint8),
        np.zeros(shape, bool),
        np.zeros((*shape, 25, 16), np.int16),
    )
    tokens = blocks.tokens.reshape(-1).data
    mode_chances = VP8_MODE_CHANCES.tolist()
    above_modes = [0] * (4 * columns)
    above = [[0] * 9 for _ in range(columns)]
    for y in range(rows):
        left_modes, left, reader = [0] * 4, [0] * 9, readers[y % len(readers)]
        for x in range(columns):
            if header.has_map:
                first, low, high = header.map_chances
                blocks.segments[y, x] = bit(high) + 2 if bit(first) else bit(low)
            skip = bit(header.skip_chance) if header.skip_chance else 0
            small = not bit(145)
            if small:
                modes = []
                for i in range(16):
                    column = 4 * x + i % 4
                    mode = read_small_mode(bit, mode_chances[above_modes[column]][left_modes[i // 4]])
                    above_modes[column] = left_modes[i // 4] = mode
                    modes.append(mode)
                blocks.modes[y, x] = modes
            else:
                mode = (1 if bit(128) else 3) if bit(156) else (2 if bit(163) else 0)
                blocks.modes[y, x] = mode
                above_modes[4 * x : 4 * x + 4] = left_modes[:] = [mode] * 4
            blocks.small[y, x] = small
            blocks.chroma_modes[y, x] = 0 if not bit(142) else 2 if not bit(114) else 1 if bit(183) else 3
            if skip:
                kept = slice(0, 8) if small else slice(0, 9)
                above[x][kept] = left[kept] = [0] * len(left[kept])
            else:
                start = (y * columns + x) * 25 * 16
                blocks.coded[y, x] = read_tokens(reader, header.chances, small, above[x], left, tokens, start)
    return blocks


def read_small_mode(bit: BitReader, chances: list[int]) -> int:
    """How a block of 4 x 4 pixels is predicted."""
    for mode in range(3):
        if not bit(chances[mode]):
            return mode
    if not bit(chances[3]):
        if not bit(chances[4]):
            return 3
        return 5 if bit(chances[5]) else 4
    for mode, branch in ((6, 6), (7, 7)):
        if not bit(chances[branch]):
            return mode
    return 9 if bit(chances[8]) else 8


def read_tokens(
    bit: BitReader, chances: list[Any], small: bool, above: list[int], left: list[int], out: Any, start: int
) -> bool:
    """The coefficients of a macroblock; `above` and `left`: which blocks beside it have any (luma, chroma, mean)."""
    coded, first, kind = False, 0, 3
    if not small:
        place = start + 24 * 16
        above[8] = left[8] = int(read_block(bit, chances[1], above[8] + left[8], 0, out, place) > 0)
        first, kind = 1, 0
    for i in range(16):
        x, y = i % 4, i // 4
        end = read_block(bit, chances[kind], above[x] + left[y], first, out, start + 16 * i)
        above[x] = left[y] = int(end > first)
        coded = coded or end > first
    for i in range(8):
        x, y = 4 + i // 4 * 2 + i % 2, 4 + i // 4 * 2 + i // 2 % 2
        end = read_block(bit, chances[2], above[x] + left[y], 0, out, start + 16 * (16 + i))
        above[x] = left[y] = int(end > 0)
        coded = coded or end > 0
    return coded


def read_block(bit: BitReader, chances: list[Any], context: int, n: int, out: Any, start: int) -> int:
    """The coefficients of a block from the n-th on; returns the place after the last one."""
    branches = chances[n][context]
    while n < 16:
        if not bit(branches[0]):
            return n
        while not bit(branches[1]):
            n += 1
            if n == 16:
                return 16
            branches = chances[n][0]
        if not bit(branches[2]):
            value, context = 1, 1
        else:
            value, context = read_large_token(bit, branches), 2
        out[start + VP8_ZIGZAG[n]] = -value if bit(128) else value
        n += 1
        branches = chances[n][context]
    return 16


def read_large_token(bit: BitReader, branches: list[int]) -> int:
    if not bit(branches[3]):
        return 3 + bit(branches[5]) if bit(branches[4]) else 2
    if not bit(branches[6]):
        if not bit(branches[7]):
            return 5 + bit(159)
        return 7 + 2 * bit(165) + bit(145)
    category = 2 if bit(branches[8]) else 0
    category += bit(branches[9 + category // 2])
    value = 0
    for chance in VP8_LARGE_VALUES[category]:
        value = 2 * value + bit(chance)
    return value + 3 + (8 << category)
