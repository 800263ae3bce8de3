"""The code-blocks of JPEG 2000 (ITU-T T.800, annexes C and D): bit planes of coefficients, coded arithmetically."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np

MQ_TABLE_SIZES = """
    5601 3401 1801 0AC1 0521 0221 5601 5401 4801 3801 3001 2401 1C01 1601 5601 5401 5101 4801 3801 3401 3001
    2801 2401 2201 1C01 1801 1601 1401 1201 1101 0AC1 09C1 08A1 0521 0441 02A1 0221 0141 0111 0085 0049 0025
    0015 0009 0005 0001 5601
"""
MQ_TABLE_MORE = """
    1 2 3 4 5 38 7 8 9 10 11 12 13 29 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39
    40 41 42 43 44 45 45 46
"""
MQ_TABLE_LESS = """
    1 6 9 12 29 33 6 14 14 14 17 18 20 21 14 14 15 16 17 18 19 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34
    35 36 37 38 39 40 41 42 43 46
"""
"""Table C.2: of each state, the size of the less probable part, and the states after the more and the less probable."""

MQ_SIZES = [int(size, 16) for size in MQ_TABLE_SIZES.split() for _ in range(2)]
MQ_AFTER_MORE = [2 * int(state) + bit for state in MQ_TABLE_MORE.split() for bit in range(2)]
MQ_AFTER_LESS = [
    2 * int(state) + (bit ^ (now in (0, 6, 14))) for now, state in enumerate(MQ_TABLE_LESS.split()) for bit in range(2)
]
"""By twice the state plus the more probable symbol."""

WEST = 1
EAST = 2
NORTH = 4
SOUTH = 8
"""Bits of a coefficient's state: a neighbour is known not to be zero. The next four bits are for the diagonal ones."""
KNOWN = 256
VISITED = 512
REFINED = 1024
"""It is not zero itself; was coded in this bit plane; was refined before. Then come the signs of four neighbours."""


def mq_decoder(data: bytes, contexts: list[int]) -> Callable[[int], int]:
    """A function that reads a bit in the context of a given number; `contexts` are their states."""
    stream = unstuffed(data)
    span, spare, position = 0x8000, 32, 6
    value = int.from_bytes(stream[:6].ljust(6, b"\xff"), "big")

    def decode(context: int) -> int:
        nonlocal span, spare, position, value
        state = contexts[context]
        size = MQ_SIZES[state]
        span -= size
        less = size << spare
        if value < less:
            if span < size:
                bit = state & 1
                contexts[context] = MQ_AFTER_MORE[state]
            else:
                bit = 1 - (state & 1)
                contexts[context] = MQ_AFTER_LESS[state]
            span = size
        else:
            value -= less
            if span & 0x8000:
                return state & 1
            if span < size:
                bit = 1 - (state & 1)
                contexts[context] = MQ_AFTER_LESS[state]
            else:
                bit = state & 1
                contexts[context] = MQ_AFTER_MORE[state]
        shift = 16 - span.bit_length()
        span <<= shift
        spare -= shift
        if spare < 0:
            value = value << 32 | int.from_bytes(stream[position : position + 4].ljust(4, b"\xff"), "big")
            spare += 32
            position += 4
        return bit

    return decode


def unstuffed(data: bytes) -> bytes:
    """The bits of arithmetic coding after a 0 bit: a byte after FF overlaps it by a bit, for carries; 1s at the end."""
    first, *rest = data.split(b"\xff")
    total, count = int.from_bytes(first, "big"), 8 * len(first)
    for piece in rest:
        total, count = total << 8 | 255, count + 8
        if not piece or piece[0] > 0x8F:
            break
        total, count = (total << 8 * len(piece) - 1) + int.from_bytes(piece, "big"), count + 8 * len(piece) - 1
    padding = -(count + 1) % 8
    return ((total + 1 << padding) - 1).to_bytes((count + 1 + padding) // 8, "big")


def raw_decoder(data: bytes) -> Callable[[int], int]:
    """A function that reads a bit that is not coded."""
    value = count = position = 0

    def decode(context: int) -> int:
        nonlocal value, count, position
        if not count:
            count = 7 if value == 255 else 8
            value = data[position] if position < len(data) else 255
            position += 1
        count -= 1
        return value >> count & 1

    return decode


def zero_contexts(band: int) -> list[int]:
    """The context (table D.1) of whether a coefficient is zero, by which neighbours are not: of LL, HL, LH or HH."""
    table = []
    for state in range(256):
        across, down = (state & 1) + (state >> 1 & 1), (state >> 2 & 1) + (state >> 3 & 1)
        diagonal = (state >> 4).bit_count()
        if band == 3:
            straight = across + down
            context = 8 if diagonal >= 3 else [min(straight, 2), 3 + min(straight, 2), 6 + min(straight, 1)][diagonal]
        else:
            if band == 1:
                across, down = down, across
            if across == 2:
                context = 8
            elif across:
                context = 7 if down else 5 + min(diagonal, 1)
            else:
                context = 2 + down if down else min(diagonal, 2)
        table.append(context)
    return table


def sign_contexts() -> list[tuple[int, int]]:
    """The context of a sign and whether it is flipped (table D.3), by which neighbours are not zero and their signs."""
    table = []
    for state in range(256):
        west, east, north, south = ((state >> i & 1) * (1 - 2 * (state >> 4 + i & 1)) for i in range(4))
        across, down = min(max(west + east, -1), 1), min(max(north + south, -1), 1)
        flip = across < 0 or (across == 0 and down < 0)
        if flip:
            across, down = -across, -down
        table.append((12 + down if across else 9 + down, int(flip)))
    return table


J2K_ZERO_CONTEXTS = [zero_contexts(band) for band in range(4)]
J2K_SIGN_CONTEXTS = sign_contexts()


@lru_cache(maxsize=64)
def scan_order(width: int, height: int, causal: bool) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """Where each coefficient comes in the order of the scan: stripes of four rows, column by column.

    And the neighbours of each, in the order of the bits of a state; `width * height` stands for none. If `causal`, a
    stripe does not know of the next one.
    """
    y, x = np.mgrid[:height, :width]
    top = y // 4 * 4
    order = top * width + x * np.minimum(4, height - top) + y - top
    padded = np.full((height + 2, width + 2), width * height)
    padded[1:-1, 1:-1] = order
    offsets = [(0, -1), (0, 1), (-1, 0), (1, 0), (-1, -1), (-1, 1), (1, -1), (1, 1)]
    beside = np.stack([padded[1 + dy : 1 + dy + height, 1 + dx : 1 + dx + width] for dy, dx in offsets], axis=2)
    if causal:
        beside[::4, :, [2, 4, 5]] = width * height
    rows = np.empty((width * height, 8), np.int64)
    rows[order] = beside
    return order, [tuple(row) for row in rows.tolist()]


def decode_code_block(
    width: int, height: int, band: int, planes: int, segments: list[tuple[bytes, int]], style: int
) -> np.ndarray:
    """Twice the coefficients of a code-block, with half of the last bit that is known added to what is not zero.

    `planes` is the number of bit planes, `segments` the parts of the data and how many passes are in each, `style` the
    flags of table A.19.
    """
    order, beside = scan_order(width, height, bool(style & 8))
    count = width * height
    flags, values, negative = [0] * count, [0] * count, [0] * count
    flags.append(KNOWN | VISITED)
    zero, signs = J2K_ZERO_CONTEXTS[band], J2K_SIGN_CONTEXTS
    fresh = [8, *[0] * 16, 6, 92]
    contexts = list(fresh)
    decode = raw_decoder(b"")
    raw = False

    def appear(i: int, value: int) -> None:
        """The coefficient is not zero: read its sign, and tell its neighbours."""
        state = flags[i]
        context, flip = signs[state & 15 | state >> 7 & 240]
        west, east, north, south, north_west, north_east, south_west, south_east = beside[i]
        values[i] = value
        flags[i] |= KNOWN
        if decode(context) ^ (0 if raw else flip):
            negative[i] = 1
            flags[west] |= EAST | EAST << 11
            flags[east] |= WEST | WEST << 11
            flags[north] |= SOUTH | SOUTH << 11
            flags[south] |= NORTH | NORTH << 11
        else:
            flags[west] |= EAST
            flags[east] |= WEST
            flags[north] |= SOUTH
            flags[south] |= NORTH
        flags[north_west] |= 128
        flags[north_east] |= 64
        flags[south_west] |= 32
        flags[south_east] |= 16

    def significance_pass(value: int) -> None:
        for i, state in enumerate(flags):
            if 0 < state & 511 < 256:
                flags[i] = state | VISITED
                if decode(zero[state & 255]):
                    appear(i, value)

    def refinement_pass(half: int) -> None:
        for i, state in enumerate(flags):
            if state & 768 == 256:
                context = 16 if state & REFINED else 15 if state & 255 else 14
                values[i] += half if decode(context) else -half
                flags[i] = state | REFINED

    def cleanup_pass(value: int) -> None:
        i, whole = 0, height // 4 * 4 * width
        while i < count:
            if i < whole and not i & 3 and not (flags[i] or flags[i + 1] or flags[i + 2] or flags[i + 3]):
                if not decode(17):
                    i += 4
                    continue
                skip = 2 * decode(18) + decode(18)
                last = i + 3
                i += skip
                appear(i, value)
                i += 1
            else:
                last = i + 3 if i < whole else i
            while i <= last:
                state = flags[i]
                if not state & 768:
                    if decode(zero[state & 255]):
                        appear(i, value)
                else:
                    flags[i] = state & ~VISITED
                i += 1

    done = 0
    for data, passes in segments:
        raw = bool(style & 1) and done >= 10 and done % 3 != 0
        decode = raw_decoder(data) if raw else mq_decoder(data, contexts)
        for _ in range(passes):
            plane = planes - 1 - (done + 2) // 3
            if plane < 0:
                raise ValueError("too many coding passes")
            if done % 3 == 1:
                significance_pass(3 << plane)
            elif done % 3 == 2:
                refinement_pass(1 << plane)
            else:
                cleanup_pass(3 << plane)
                if style & 32 and [decode(18) for _ in range(4)] != [1, 0, 1, 0]:
                    raise ValueError("no mark at the end of a bit plane")
            done += 1
            if style & 2:
                contexts[:] = fresh
    signed: np.ndarray = np.where(negative, np.negative(values), values)[order]
    return signed
