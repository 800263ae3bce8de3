"""Decoding of JPEG (ITU-T T.81): baseline and progressive, with the arithmetic of libjpeg-turbo's defaults."""

import re
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np

JPEG_ZIGZAG = sorted(range(64), key=lambda i: (i // 8 + i % 8, i // 8 if (i // 8 + i % 8) % 2 else i % 8))
"""The place in a block (row by row) of each coefficient, in the order of their frequencies."""

JPEG_MOST_BLOCKS = 1 << 23
"""Blocks of 8 x 8 samples: more than this is taken for a damaged header."""


@dataclass
class JpegComponent:
    """One plane of the image: its sampling factors, size, and where its blocks are among all coefficients."""

    identity: int
    across: int
    down: int
    quantizer: int
    width: int = 0
    height: int = 0
    columns: int = 0
    rows: int = 0
    start: int = 0
    missing_bits: list[int] = field(default_factory=lambda: [16] * 64)

    def blocks(self) -> np.ndarray:
        """Where the 64 coefficients of each block begin, rows x columns."""
        return self.start + 64 * np.arange(self.rows * self.columns).reshape(self.rows, self.columns)


@dataclass
class JpegFrame:
    """What the headers say, and the coefficients read so far."""

    width: int
    height: int
    progressive: bool
    components: list[JpegComponent]
    coefficients: np.ndarray


def decode_jpeg(data: bytes) -> np.ndarray:
    """Gray, YCbCr, RGB, CMYK or YCCK images of eight bits, coded with Huffman's codes."""
    frame: JpegFrame | None = None
    quantizers: dict[int, np.ndarray] = {}
    tables: dict[int, Any] = {}
    jfif, adobe, restart = False, -1, 0
    position = 2
    while True:
        found = re.compile(rb"\xff+([^\xff\0])").search(data, position)
        if not found:
            raise ValueError("the data ends too early")
        marker, position = found[1][0], found.end()
        if marker == 0xD9:
            break
        if marker in (1, *range(0xD0, 0xD9)):
            continue
        (size,) = struct.unpack_from(">H", data, position)
        body = data[position + 2 : position + size]
        position += size
        if marker in (0xC0, 0xC1, 0xC2):
            if frame:
                raise ValueError("two frames")
            frame = jpeg_frame(body, marker == 0xC2, len(data))
        elif 0xC3 <= marker <= 0xCF and marker != 0xC4:
            raise ValueError(f"unsupported: lossless, hierarchical or arithmetic coding ({marker:02X})")
        elif marker == 0xC4:
            read_huffman_tables(body, tables)
        elif marker == 0xDB:
            read_quantizers(body, quantizers)
        elif marker == 0xDD:
            (restart,) = struct.unpack_from(">H", body)
        elif marker == 0xE0 and body.startswith(b"JFIF\0"):
            jfif = True
        elif marker == 0xEE and body.startswith(b"Adobe"):
            adobe = body[11]
        elif marker == 0xDA:
            if not frame:
                raise ValueError("data before the header")
            segments, position = entropy_segments(data, position)
            decode_scan(frame, body, segments, tables, restart)
    if not frame:
        raise ValueError("no image")
    planes = [jpeg_plane(frame, part, quantizers) for part in frame.components]
    identities = [part.identity for part in frame.components]
    if len(planes) == 1:
        return planes[0][:, :, None]
    if len(planes) == 4:
        if adobe == 2:
            planes[:3] = list(255 - ycbcr_to_rgb(*planes[:3]).transpose(2, 0, 1))
        return inverted_cmyk_to_rgb(np.stack(planes, axis=2))
    if not jfif and (adobe == 0 or (adobe < 0 and identities == list(b"RGB"))):
        return np.stack(planes, axis=2)
    return ycbcr_to_rgb(*planes)


def jpeg_frame(body: bytes, progressive: bool, available: int) -> JpegFrame:
    """The header of a frame; `available` bytes of data bound how many blocks there can be."""
    depth, height, width, count = struct.unpack_from(">BHHB", body)
    if depth != 8 or count not in (1, 3, 4) or not width or not height:
        raise ValueError(f"unsupported: {width} x {height}, {count} components of {depth} bits")
    parts = [
        JpegComponent(body[i], body[i + 1] >> 4, body[i + 1] & 15, body[i + 2]) for i in range(6, 6 + 3 * count, 3)
    ]
    if not all(1 <= part.across <= 4 and 1 <= part.down <= 4 for part in parts):
        raise ValueError("wrong sampling factors")
    most_across, most_down = max(part.across for part in parts), max(part.down for part in parts)
    total = 0
    for part in parts:
        part.width, part.height = -(-width * part.across // most_across), -(-height * part.down // most_down)
        part.columns = -(-width // (8 * most_across)) * part.across
        part.rows = -(-height // (8 * most_down)) * part.down
        part.start = 64 * total
        total += part.columns * part.rows
    if total > min(8 * available, JPEG_MOST_BLOCKS):
        raise ValueError(f"a size of {width} x {height} in {available} bytes")
    return JpegFrame(width, height, progressive, parts, np.zeros(64 * total, np.int16))


def read_quantizers(body: bytes, quantizers: dict[int, np.ndarray]) -> None:
    position = 0
    while position < len(body):
        wide, number = body[position] >> 4, body[position] & 15
        values = np.frombuffer(body, ">u2" if wide else "u1", 64, position + 1)
        quantizers[number] = np.zeros(64, np.int32)
        quantizers[number][JPEG_ZIGZAG] = values
        position += 1 + 64 * (2 if wide else 1)


def read_huffman_tables(body: bytes, tables: dict[int, Any]) -> None:
    position = 0
    while position < len(body):
        number, counts = body[position], list(body[position + 1 : position + 17])
        position += 17
        symbols = np.frombuffer(body, np.uint8, sum(counts), position)
        tables[number] = huffman_table(counts, symbols)
        position += len(symbols)


def huffman_table(counts: list[int], symbols: np.ndarray) -> Any:
    """What the next 16 bits of the data say, for each value that they can have.

    The lower byte is how many bits to take; the next one is by how much to go on in the block (64: to its end);
    above is the signed coefficient, or the number of bits in the length of a run of empty blocks. Where 16 bits do not
    suffice, 128 is added to the bits of the code itself, and above is how many bits follow it.
    """
    lengths = np.repeat(np.arange(1, 17), counts)
    spans = 1 << (16 - lengths)
    known = int(spans.sum())
    if known > 65536:
        raise ValueError("wrong Huffman table")
    length = np.zeros(65536, np.int64)
    length[:known] = np.repeat(lengths, spans)
    symbol = np.zeros(65536, np.int64)
    symbol[:known] = np.repeat(symbols, spans)
    run, size = symbol >> 4, symbol & 15
    skip = np.where((size == 0) & (run < 15), 64, run + 1)
    taken = length + size
    extra = (np.arange(65536) >> np.maximum(16 - taken, 0)) & ((1 << size) - 1)
    value = np.where(extra < (1 << size) >> 1, extra - (1 << size) + 1, extra)
    value = np.where(size == 0, np.where(run < 15, run, 0), value)
    entry = value << 16 | skip << 8 | taken
    long = (taken > 16) | (length == 0)
    return np.where(long, size << 16 | skip << 8 | 128 | length, entry).data


def long_huffman_entry(entry: int, window: Any, position: int) -> int:
    """An entry of the Huffman table, as if the table were for more than 16 bits."""
    size, taken = entry >> 16, (entry & 31) + (entry >> 16)
    if not entry & 31:
        raise ValueError("wrong Huffman code")
    extra: int = (window[position >> 3] >> (48 - (position & 7) - taken)) & ((1 << size) - 1)
    value = extra if extra >> (size - 1) else extra - (1 << size) + 1
    return value << 16 | entry & 0x7F00 | taken


def entropy_segments(data: bytes, start: int) -> tuple[list[bytes], int]:
    """The coded data of a scan, split at its restart markers, and the position of the marker after it."""
    segments = []
    for found in re.compile(rb"\xff+([\x01-\xfe])").finditer(data, start):
        segments.append(data[start : found.start()].replace(b"\xff\0", b"\xff"))
        start = found.end()
        if not 0xD0 <= found[1][0] <= 0xD7:
            return segments, found.start()
    raise ValueError("the data ends too early")


def bit_window(segment: bytes) -> Any:
    """The 48 bits that begin at each byte, with some zero bytes at the end."""
    padded = np.frombuffer(segment + bytes(16), np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 8)
    return (np.ascontiguousarray(windows).view(">u8")[:, 0].astype(np.int64) >> 16 & 0xFFFFFFFFFFFF).data


def decode_scan(frame: JpegFrame, body: bytes, segments: list[bytes], tables: dict[int, Any], restart: int) -> None:
    """Read the coefficients of one scan: of some components, and if progressive of some frequencies or bits."""
    count = body[0]
    chosen = []
    for i in range(count):
        part = {p.identity: p for p in frame.components}[body[1 + 2 * i]]
        chosen.append((part, body[2 + 2 * i] >> 4, body[2 + 2 * i] & 15))
    first, last, bits = struct.unpack_from("BBB", body, 1 + 2 * count)
    high, low = bits >> 4, bits & 15
    if not frame.progressive:
        first, last, high, low = 0, 63, 0, 0
    if not (first <= last <= 63 and low <= 13 and (first > 0 or last == 0 or not frame.progressive)) or not chosen:
        raise ValueError("wrong parameters of a scan")
    if count == 1:
        part = chosen[0][0]
        blocks = part.blocks()[: -(-part.height // 8), : -(-part.width // 8)].reshape(-1, 1)
        owners = [0]
    else:
        blocks, owners = interleaved([part for part, *_ in chosen])
    for part, *_ in chosen:
        part.missing_bits[first : last + 1] = [low] * (last + 1 - first)
    per_segment = restart or len(blocks)
    if len(segments) < -(-len(blocks) // per_segment):
        raise ValueError("the data ends too early")
    out = frame.coefficients.data
    for i in range(0, len(blocks), per_segment):
        segment = segments[i // per_segment]
        window, bases = bit_window(segment), blocks[i : i + per_segment].reshape(-1).tolist()
        if not frame.progressive:
            codes = [(tables[dc], tables[16 + ac]) for _, dc, ac in chosen]
            position = baseline_blocks(window, bases, owners, codes, out)
        elif first == 0 and high == 0:
            position = first_dc_bits(window, bases, owners, [tables[dc] for _, dc, _ in chosen], low, out)
        elif first == 0:
            position = len(bases)
            more = np.unpackbits(np.frombuffer(segment, np.uint8), count=position).astype(np.int16)
            frame.coefficients[bases] |= more << low
        elif count > 1:
            raise ValueError("wrong parameters of a scan")
        else:
            places = JPEG_ZIGZAG[: last + 1]
            decode = more_ac_bits if high else first_ac_bits
            position = decode(window, bases, places, first, tables[16 + chosen[0][2]], low, out)
        if position > 8 * len(segment):
            raise ValueError("the data ends too early")


def interleaved(parts: list[JpegComponent]) -> tuple[np.ndarray, list[int]]:
    """The blocks of several components, a row for each unit of the scan, and which component each column is of."""
    columns, owners = [], []
    for owner, part in enumerate(parts):
        units = part.blocks().reshape(part.rows // part.down, part.down, part.columns // part.across, part.across)
        columns.append(units.transpose(0, 2, 1, 3).reshape(-1, part.down * part.across))
        owners += [owner] * (part.down * part.across)
    return np.concatenate(columns, axis=1), owners


def baseline_blocks(window: Any, bases: list[int], owners: list[int], codes: list[Any], out: Any) -> int:
    """Whole blocks; returns the position in bits after them."""
    position, places = 0, JPEG_ZIGZAG
    predictions = [0] * len(codes)
    for base, owner in zip(bases, owners * (len(bases) // len(owners)), strict=True):
        dc, ac = codes[owner]
        entry = dc[window[position >> 3] >> (32 - (position & 7)) & 0xFFFF]
        if entry & 128:
            entry = long_huffman_entry(entry, window, position)
        position += entry & 31
        predictions[owner] += entry >> 16
        out[base] = predictions[owner]
        k = 1
        while k < 64:
            entry = ac[window[position >> 3] >> (32 - (position & 7)) & 0xFFFF]
            if entry & 128:
                entry = long_huffman_entry(entry, window, position)
            position += entry & 31
            k += entry >> 8 & 127
            if k <= 64:
                out[base + places[k - 1]] = entry >> 16
            elif entry >> 8 & 127 < 64:
                raise ValueError("too many coefficients")
    return position


def first_dc_bits(window: Any, bases: list[int], owners: list[int], codes: list[Any], low: int, out: Any) -> int:
    """All but the `low` lowest bits of each block's mean."""
    position = 0
    predictions = [0] * len(codes)
    for base, owner in zip(bases, owners * (len(bases) // len(owners)), strict=True):
        entry = codes[owner][window[position >> 3] >> (32 - (position & 7)) & 0xFFFF]
        if entry & 128:
            entry = long_huffman_entry(entry, window, position)
        position += entry & 31
        predictions[owner] += entry >> 16
        out[base] = predictions[owner] << low
    return position


def first_ac_bits(window: Any, bases: list[int], places: list[int], first: int, code: Any, low: int, out: Any) -> int:
    """All but the `low` lowest bits of the coefficients at `places[first:]`."""
    position = block = 0
    while block < len(bases):
        base, k = bases[block], first
        block += 1
        while k < len(places):
            entry = code[window[position >> 3] >> (32 - (position & 7)) & 0xFFFF]
            if entry & 128:
                entry = long_huffman_entry(entry, window, position)
            position += entry & 31
            if entry >> 8 & 127 == 64:
                size = entry >> 16
                extra = window[position >> 3] >> (48 - (position & 7) - size) & ((1 << size) - 1)
                position += size
                block += (1 << size) + extra - 1
                break
            k += entry >> 8 & 127
            out[base + places[k - 1]] = entry >> 16 << low
    return position


def more_ac_bits(window: Any, bases: list[int], places: list[int], first: int, code: Any, low: int, out: Any) -> int:
    """The bit number `low` of the coefficients at `places[first:]`: for those known not to be zero, a bit each."""
    position = run = 0
    plus, minus = 1 << low, -1 << low
    for base in bases:
        k = first
        while k < len(places):
            skip, value = 64, 0
            if not run:
                entry = code[window[position >> 3] >> (32 - (position & 7)) & 0xFFFF]
                if entry & 128:
                    entry = long_huffman_entry(entry, window, position)
                position += entry & 31
                skip, value = entry >> 8 & 127, entry >> 16
                if skip == 64:
                    run = (1 << value) + (window[position >> 3] >> (48 - (position & 7) - value) & ((1 << value) - 1))
                    position += value
                    value = 0
                elif not -1 <= value <= 1:
                    raise ValueError("wrong bits of a coefficient")
            while k < len(places):
                place = base + places[k]
                k += 1
                known = out[place]
                if known:
                    if window[position >> 3] >> (47 - (position & 7)) & 1 and not known & plus:
                        out[place] = known + (plus if known > 0 else minus)
                    position += 1
                else:
                    skip -= 1
                    if not skip:
                        out[place] = value << low
                        break
        if run:
            run -= 1
    return position


def jpeg_plane(frame: JpegFrame, part: JpegComponent, quantizers: dict[int, np.ndarray]) -> np.ndarray:
    """The samples of a component, as many as the image has pixels."""
    if frame.progressive and any(part.missing_bits[:10]):
        raise ValueError("scans are missing")
    count = part.rows * part.columns
    blocks = frame.coefficients[part.start : part.start + 64 * count].reshape(count, 64)
    samples = np.empty((count, 8, 8), np.uint8)
    for i in range(0, count, 4096):
        samples[i : i + 4096] = inverse_dct(blocks[i : i + 4096] * quantizers[part.quantizer])
    plane = samples.reshape(part.rows, part.columns, 8, 8).transpose(0, 2, 1, 3).reshape(8 * part.rows, -1)
    plane = plane[: part.height, : part.width]
    most_across = max(p.across for p in frame.components)
    most_down = max(p.down for p in frame.components)
    if most_across % part.across or most_down % part.down:
        raise ValueError("unsupported: fractional sampling factors")
    return upsampled(plane, most_across // part.across, most_down // part.down)[: frame.height, : frame.width]


def inverse_dct(blocks: np.ndarray) -> np.ndarray:
    """Blocks of samples from blocks of coefficients: Loeffler, Ligtenberg and Moschytz's algorithm in integers."""
    data = np.ascontiguousarray(blocks.reshape(-1, 8, 8).transpose(1, 2, 0))
    columns = inverse_dct_1d(data, 11)
    rows = inverse_dct_1d(columns.transpose(1, 0, 2), 18)
    samples: np.ndarray = (np.clip(rows, -128, 127) + 128).astype(np.uint8)
    return samples.transpose(2, 1, 0)


def inverse_dct_1d(x: np.ndarray, shift: int) -> np.ndarray:
    """Transform along the first axis, with 13 bits of fraction in the constants, and divide by 2**shift."""
    even = (x[2] + x[6]) * 4433
    low, high = even + x[2] * 6270, even - x[6] * 15137
    total, difference = (x[0] + x[4]) << 13, (x[0] - x[4]) << 13
    evens = [total + low, difference + high, difference - high, total - low]
    a, b, c, d = x[7], x[5], x[3], x[1]
    both = (a + c + b + d) * 9633
    outer, inner = (a + d) * -7373, (b + c) * -20995
    left, right = (a + c) * -16069 + both, (b + d) * -3196 + both
    odds = [
        d * 12299 + outer + right,
        c * 25172 + inner + left,
        b * 16819 + inner + right,
        a * 2446 + outer + left,
    ]
    half = 1 << (shift - 1)
    ends = [e + o + half for e, o in zip(evens, odds, strict=True)]
    starts = [e - o + half for e, o in zip(evens, odds, strict=True)]
    out: np.ndarray = np.stack(ends + starts[::-1]) >> shift
    return out


def upsampled(plane: np.ndarray, across: int, down: int) -> np.ndarray:
    """Enlarge by repeating samples or, by two, as libjpeg's "fancy" upsampling: weights of 3/4 and 1/4."""
    if (across, down) == (1, 2):
        mixed = vertical_mix(plane) + np.array([[1], [2]] * len(plane)) >> 2
    elif across == 2 and down <= 2 and plane.shape[1] > 2:
        tall, bias, shift = (plane, [1, 2], 2) if down == 1 else (vertical_mix(plane), [8, 7], 4)
        mixed = vertical_mix(tall.T).T + np.array(bias * plane.shape[1]) >> shift
    else:
        mixed = plane.repeat(down, axis=0).repeat(across, axis=1)
    out: np.ndarray = mixed.astype(np.uint8)
    return out


def vertical_mix(plane: np.ndarray) -> np.ndarray:
    """Two rows for each: three times itself plus the row above, and the row below."""
    padded = np.pad(plane.astype(np.int32), ((1, 1), (0, 0)), mode="edge")
    middle = 3 * padded[1:-1]
    out: np.ndarray = np.stack([middle + padded[:-2], middle + padded[2:]], axis=1).reshape(-1, plane.shape[1])
    return out


def ycbcr_to_rgb(luma: np.ndarray, blue: np.ndarray, red: np.ndarray) -> np.ndarray:
    y, cb, cr = luma.astype(np.int32), blue.astype(np.int32) - 128, red.astype(np.int32) - 128
    r = y + ((91881 * cr + 32768) >> 16)
    g = y + ((-22554 * cb - 46802 * cr + 32768) >> 16)
    b = y + ((116130 * cb + 32768) >> 16)
    rgb: np.ndarray = np.clip(np.stack([r, g, b], axis=2), 0, 255).astype(np.uint8)
    return rgb


def inverted_cmyk_to_rgb(cmyk: np.ndarray) -> np.ndarray:
    """From CMYK as files have it: 255 for no ink."""
    black = cmyk[:, :, 3:].astype(np.int32)
    product = (255 - cmyk[:, :, :3].astype(np.int32)) * black + 128
    rgb: np.ndarray = (black - (((product >> 8) + product) >> 8)).astype(np.uint8)
    return rgb
