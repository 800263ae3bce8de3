"""Decoding of JPEG 2000 (ITU-T T.800): the container and the headers of the codestream."""

import struct
from dataclasses import dataclass, field, replace

J2K_LARGEST = 1 << 26
"""Pixels: more than this is taken for a damaged header."""

Box = tuple[int, int, int, int]
"""Left, top, right, bottom; the latter two are outside."""


@dataclass
class J2kCoding:
    """How a component is coded: the markers COD or COC, and QCD or QCC."""

    levels: int = 0
    block: tuple[int, int] = (6, 6)
    style: int = 0
    reversible: bool = True
    precincts: list[tuple[int, int]] = field(default_factory=list)
    guard: int = 0
    quantization: int = 0
    steps: list[tuple[int, int]] = field(default_factory=list)
    """Exponent and mantissa of each band."""


@dataclass
class J2kHeader:
    """What the main header or that of a tile says."""

    image: Box
    tile: Box
    depths: list[int]
    coding: list[J2kCoding]
    progression: int = 0
    layers: int = 1
    mixed: bool = False
    """Whether the first three components are luma and chroma."""


def codestream(data: bytes, position: int = 0, end: int | None = None) -> bytes:
    """What is in the box of that name, after checking those that say what the components mean."""
    end = len(data) if end is None else end
    while position + 8 <= end:
        size, name = struct.unpack_from(">I4s", data, position)
        start = position + 8
        if size == 1:
            (size,) = struct.unpack_from(">Q", data, start)
            start += 8
        following = position + size if size else end
        if following < start:
            break
        if name == b"jp2c":
            return data[start:following]
        if name == b"jp2h":
            position = start
            continue
        space = int.from_bytes(data[start + 3 : start + 7], "big") if name == b"colr" and data[start] == 1 else 16
        if name == b"pclr" or space not in (16, 17):
            raise ValueError("unsupported: colours that are not gray or RGB")
        position = following
    raise ValueError("no codestream")


def read_codestream(data: bytes) -> tuple[J2kHeader, dict[int, tuple[J2kHeader, bytes]]]:
    """The main header and, by number, the header and the data of each tile."""
    (marker,) = struct.unpack_from(">H", data, 2)
    if marker != 0xFF51:
        raise ValueError("no size")
    main = header = read_size(data[6:])
    tiles: dict[int, tuple[J2kHeader, bytes]] = {}
    position, number, part_end = 4 + struct.unpack_from(">H", data, 4)[0], -1, 0
    while position + 2 <= len(data):
        (marker,) = struct.unpack_from(">H", data, position)
        if marker == 0xFFD9:
            break
        if marker == 0xFF93:
            if number < 0 or part_end < position + 2:
                raise ValueError("wrong tile")
            body = data[position + 2 : part_end]
            if len(body) < part_end - position - 2:
                raise ValueError("the data ends too early")
            tiles[number] = (header, tiles[number][1] + body)
            position = part_end
            continue
        (size,) = struct.unpack_from(">H", data, position + 2)
        body = data[position + 4 : position + 2 + size]
        if marker == 0xFF90:
            number, length, _, _ = struct.unpack_from(">HIBB", body)
            part_end = position + length if length else len(data) - 2
            if number not in tiles:
                tiles[number] = (tile_header(main, number), b"")
            header = tiles[number][0]
        elif marker in (0xFF52, 0xFF53):
            read_coding(header, body, marker == 0xFF53)
        elif marker in (0xFF5C, 0xFF5D):
            read_quantization(header, body, marker == 0xFF5D)
        elif marker in (0xFF5E, 0xFF5F, 0xFF60, 0xFF61):
            raise ValueError(f"unsupported: marker {marker:04X}")
        position += 2 + size
    left, top, right, bottom = main.tile
    if len(tiles) < -(-(main.image[2] - left) // (right - left)) * -(-(main.image[3] - top) // (bottom - top)):
        raise ValueError("tiles are missing")
    return main, tiles


def read_size(body: bytes) -> J2kHeader:
    _, right, bottom, left, top, width, height, x, y, count = struct.unpack_from(">HIIIIIIIIH", body)
    parts = [struct.unpack_from("BBB", body, 36 + 3 * i) for i in range(count)]
    if not (
        left < right
        and top < bottom
        and (right - left) * (bottom - top) <= J2K_LARGEST
        and x <= left < x + width
        and y <= top < y + height
        and count
    ):
        raise ValueError("wrong sizes")
    if count > 4 or any(part[1:] != (1, 1) or part[0] & 127 > 15 for part in parts):
        raise ValueError("unsupported: components of different sizes, of more than 16 bits, or too many")
    return J2kHeader(
        (left, top, right, bottom),
        (x, y, x + width, y + height),
        [(part[0] & 127) + 1 for part in parts],
        [J2kCoding() for _ in parts],
    )


def tile_header(main: J2kHeader, number: int) -> J2kHeader:
    """A copy of the main header, for a tile of that number."""
    left, top, right, bottom = main.image
    x, y, x1, y1 = main.tile
    width, height = x1 - x, y1 - y
    row, column = divmod(number, -(-(right - x) // width))
    x, y = x + column * width, y + row * height
    box = (max(x, left), max(y, top), min(x + width, right), min(y + height, bottom))
    if box[0] >= box[2] or box[1] >= box[3]:
        raise ValueError(f"there is no tile {number}")
    return replace(main, tile=box, coding=[replace(one) for one in main.coding])


def read_coding(header: J2kHeader, body: bytes, single: bool) -> None:
    """The marker COD or, for a single component, COC."""
    if single:
        chosen, flags, body = [header.coding[body[0]]], body[1], body[2:]
    else:
        chosen, flags = header.coding, body[0]
        header.progression, header.layers, mixed = struct.unpack_from(">BHB", body, 1)
        header.mixed, body = bool(mixed), body[5:]
    levels, width, height, style, kind = body[:5]
    if levels > 32 or width > 8 or height > 8 or width + height > 8 or style > 63 or kind > 1 or header.progression > 4:
        raise ValueError("wrong or unsupported coding style")
    sizes = [(size & 15, size >> 4) for size in body[5 : 6 + levels]] if flags & 1 else [(15, 15)] * (levels + 1)
    if len(sizes) <= levels:
        raise ValueError("sizes of precincts are missing")
    for coding in chosen:
        coding.levels, coding.block, coding.style = levels, (width + 2, height + 2), style
        coding.reversible, coding.precincts = bool(kind), sizes


def read_quantization(header: J2kHeader, body: bytes, single: bool) -> None:
    """The marker QCD or, for a single component, QCC."""
    chosen = header.coding
    if single:
        chosen, body = [chosen[body[0]]], body[1:]
    kind = body[0] & 31
    if kind == 0:
        steps = [(value >> 3, 0) for value in body[1:]]
    else:
        values = struct.unpack_from(f">{(len(body) - 1) // 2}H", body, 1)
        steps = [(value >> 11, value & 2047) for value in values]
    for coding in chosen:
        coding.guard, coding.quantization, coding.steps = body[0] >> 5, kind, steps
