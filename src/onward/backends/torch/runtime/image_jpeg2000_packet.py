"""The packets of JPEG 2000 (ITU-T T.800, annex B): which code-blocks there are, and the data of each."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from onward.backends.torch.runtime.image_jpeg2000 import Box, J2kHeader

J2K_MOST_BLOCKS = 1 << 20
"""Code-blocks: more than this in a part of a band is taken for a damaged header."""


class PacketBits:
    """The bits of a packet's header: a byte after FF has only seven."""

    def __init__(self, data: bytes, position: int) -> None:
        self.data, self.position, self.byte, self.left = data, position, 0, 0

    def read(self) -> int:
        if not self.left:
            self.left = 7 if self.byte == 255 else 8
            self.byte = self.data[self.position]
            self.position += 1
        self.left -= 1
        return self.byte >> self.left & 1

    def number(self, size: int) -> int:
        value = 0
        for _ in range(size):
            value = 2 * value + self.read()
        return value

    def end(self) -> int:
        """The position of the next whole byte."""
        return self.position + (self.byte == 255)

    def passes(self) -> int:
        """A number of coding passes (table B.4)."""
        for size, first in ((1, 1), (1, 2), (2, 3), (5, 6)):
            value = self.number(size)
            if value < (1 << size) - 1:
                return first + value
        return 37 + self.number(7)


class TagTree:
    """Numbers on a grid, coded as what they exceed the smallest of their group by."""

    def __init__(self, width: int, height: int) -> None:
        self.levels = [(width, [0] * (width * height), [False] * (width * height))]
        while width * height > 1:
            width, height = (width + 1) // 2, (height + 1) // 2
            self.levels.append((width, [0] * (width * height), [False] * (width * height)))

    def below(self, x: int, y: int, limit: int, bits: PacketBits) -> bool:
        """Whether the number at a place is less than a limit; reads as many bits as that takes."""
        low = 0
        for level in range(len(self.levels) - 1, -1, -1):
            width, lows, known = self.levels[level]
            place = (y >> level) * width + (x >> level)
            low = max(low, lows[place])
            while low < limit and not known[place]:
                if bits.read():
                    known[place] = True
                else:
                    low += 1
            lows[place] = low
        return known[place] and low < limit


@dataclass
class J2kBlock:
    """A code-block: where it is in its band, and what the packets said of it so far."""

    box: Box
    planes: int = 0
    length_bits: int = 3
    passes: int = 0
    segments: list[tuple[bytes, int]] = field(default_factory=list)


@dataclass
class J2kBand:
    """A band of frequencies of a component: LL, HL, LH or HH (0 to 3) at a resolution."""

    kind: int
    box: Box
    planes: int
    step: float
    blocks: list[J2kBlock] = field(default_factory=list)


@dataclass
class J2kPrecinct:
    """A part of a resolution whose code-blocks share packets; its blocks and tag trees, for each band."""

    resolution: int
    component: int
    place: tuple[int, int]
    """Row and column, in pixels of the image, where it comes in orders by position."""
    parts: list[tuple[J2kBand, int, list[J2kBlock], TagTree, TagTree]]


def band_box(box: Box, level: int, kind: int) -> Box:
    """Where a band of a tile is, after so many levels of decomposition."""
    offsets = ((kind & 1) << level >> 1, (kind >> 1) << level >> 1) * 2
    left, top, right, bottom = (-((offset - side) >> level) for side, offset in zip(box, offsets, strict=True))
    return left, top, right, bottom


def tile_bands(header: J2kHeader, component: int) -> list[list[J2kBand]]:
    """The bands of each resolution, smallest first."""
    coding = header.coding[component]
    resolutions: list[list[J2kBand]] = []
    for resolution in range(coding.levels + 1):
        level = coding.levels - max(resolution - 1, 0)
        bands = []
        for kind in (1, 2, 3) if resolution else (0,):
            index = 3 * (resolution - 1) + kind if resolution else 0
            if coding.quantization == 1:
                exponent, mantissa = coding.steps[0]
                exponent -= max(resolution - 1, 0)
            else:
                exponent, mantissa = coding.steps[index]
            step = (1 + mantissa / 2048) * 2.0 ** (header.depths[component] - exponent)
            bands.append(J2kBand(kind, band_box(header.tile, level, kind), coding.guard + exponent - 1, step))
        resolutions.append(bands)
    return resolutions


def tile_precincts(header: J2kHeader, component: int, bands: list[list[J2kBand]], budget: int) -> list[J2kPrecinct]:
    """The precincts of a component of a tile, at most `budget`."""
    coding = header.coding[component]
    out: list[J2kPrecinct] = []
    for resolution, group in enumerate(bands):
        scale = coding.levels - resolution
        left, top, right, bottom = band_box(header.tile, scale, 0)
        across, down = coding.precincts[resolution]
        if left >= right or top >= bottom:
            continue
        columns = range(left >> across, -(-right >> across))
        rows = range(top >> down, -(-bottom >> down))
        half = 1 if resolution else 0
        if across < half or down < half or len(columns) * len(rows) > budget - len(out):
            raise ValueError("wrong precincts")
        size = (min(coding.block[0], across - half), min(coding.block[1], down - half))
        for row in rows:
            for column in columns:
                shift = (across - half, down - half)
                area = (column << shift[0], row << shift[1], (column + 1) << shift[0], (row + 1) << shift[1])
                place = (max(header.tile[1], row << down + scale), max(header.tile[0], column << across + scale))
                parts = [precinct_part(band, area, size) for band in group]
                out.append(J2kPrecinct(resolution, component, place, parts))
    return out


def precinct_part(
    band: J2kBand, area: Box, size: tuple[int, int]
) -> tuple[J2kBand, int, list[J2kBlock], TagTree, TagTree]:
    """The code-blocks of a band in an area: how many in a row, all, and the trees of first layers and bit planes."""
    left, top = max(area[0], band.box[0]), max(area[1], band.box[1])
    right, bottom = min(area[2], band.box[2]), min(area[3], band.box[3])
    if left >= right or top >= bottom:
        return band, 0, [], TagTree(0, 0), TagTree(0, 0)
    columns = range(left >> size[0], -(-right >> size[0]))
    rows = range(top >> size[1], -(-bottom >> size[1]))
    if len(columns) * len(rows) > J2K_MOST_BLOCKS:
        raise ValueError("too many code-blocks")
    blocks = [
        J2kBlock(
            (
                max(x << size[0], left),
                max(y << size[1], top),
                min((x + 1) << size[0], right),
                min((y + 1) << size[1], bottom),
            )
        )
        for y in rows
        for x in columns
    ]
    band.blocks += blocks
    trees = TagTree(len(columns), len(rows)), TagTree(len(columns), len(rows))
    return band, len(columns), blocks, *trees


def packet_order(header: J2kHeader, precincts: list[J2kPrecinct]) -> Iterator[tuple[int, J2kPrecinct]]:
    """The layer and precinct of each packet."""
    layers = range(header.layers)
    numbered = list(enumerate(precincts))
    if header.progression == 0:
        for layer in layers:
            for _, precinct in sorted(numbered, key=lambda item: (item[1].resolution, item[1].component, item[0])):
                yield layer, precinct
    elif header.progression == 1:
        for resolution in sorted({precinct.resolution for precinct in precincts}):
            for layer in layers:
                yield from ((layer, precinct) for precinct in precincts if precinct.resolution == resolution)
    else:

        def key(item: tuple[int, J2kPrecinct]) -> tuple[object, ...]:
            index, one = item
            resolution, component, place = one.resolution, one.component, one.place
            orders = {2: (resolution, place, component), 3: (place, component, resolution)}
            return *orders.get(header.progression, (component, place, resolution)), index

        for _, precinct in sorted(numbered, key=key):
            yield from ((layer, precinct) for layer in layers)


def read_packet(header: J2kHeader, layer: int, precinct: J2kPrecinct, data: bytes, position: int) -> int:
    """Add what a packet has to the code-blocks of a precinct; returns the position after it."""
    if data[position : position + 2] == b"\xff\x91":
        position += 6
    bits = PacketBits(data, position)
    pieces = []
    if bits.read():
        for band, columns, blocks, first_layers, missing_planes in precinct.parts:
            for index, block in enumerate(blocks):
                y, x = divmod(index, columns)
                if not (bits.read() if block.passes else first_layers.below(x, y, layer + 1, bits)):
                    continue
                if not block.passes:
                    missing = 0
                    while not missing_planes.below(x, y, missing + 1, bits):
                        missing += 1
                        if missing > 80:
                            raise ValueError("too many bit planes")
                    block.planes = band.planes - missing
                passes = bits.passes()
                while bits.read():
                    block.length_bits += 1
                style = header.coding[precinct.component].style
                for count in split_passes(block.passes, passes, style):
                    length = bits.number(block.length_bits + count.bit_length() - 1)
                    pieces.append((block, count, length))
                    block.passes += count
    position = bits.end()
    if data[position : position + 2] == b"\xff\x92":
        position += 2
    for block, count, length in pieces:
        piece = data[position : position + length]
        if len(piece) < length:
            raise ValueError("the data ends too early")
        block.segments.append((piece, count))
        position += length
    return position


def split_passes(done: int, count: int, style: int) -> list[int]:
    """How many passes of a packet are in each separately terminated part of the data (style: bits of table A.19)."""
    if style & 4:
        return [1] * count
    if not style & 1:
        return [count]
    parts = []
    while count:
        room = 10 - done if done < 10 else 1 if done % 3 == 0 else 3 - done % 3
        parts.append(min(room, count))
        done += parts[-1]
        count -= parts[-1]
    return parts


def joined_segments(segments: list[tuple[bytes, int]], style: int) -> list[tuple[bytes, int]]:
    """Join parts from several packets that were not terminated in between."""
    if style & 4:
        return segments
    out: list[tuple[bytes, int]] = []
    done = 0
    for data, count in segments:
        starts_anew = style & 1 and done >= 10 and done % 3 != 2
        if out and not starts_anew:
            out[-1] = (out[-1][0] + data, out[-1][1] + count)
        else:
            out.append((data, count))
        done += count
    return out
