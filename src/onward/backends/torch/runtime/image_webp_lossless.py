"""Decoding of WebP's lossless format (RFC 9649): prefix codes, references to earlier pixels, and transforms.

A pixel is an integer: alpha, red, green, blue from the highest byte to the lowest.
"""

from typing import Any

import numpy as np

from onward.backends.torch.runtime.image_webp_tables import WEBP_NEAR_PIXELS

WEBP_CODE_ORDER = [17, 18, 0, 1, 2, 3, 4, 5, 16, *range(6, 16)]
WEBP_LARGEST = 1 << 26
"""Pixels: more than this is taken for a damaged header, as a few bytes can encode any number of equal pixels."""


class WebpBits:
    """Numbers of a few bits, lowest first."""

    def __init__(self, data: bytes) -> None:
        windows = np.lib.stride_tricks.sliding_window_view(np.frombuffer(data + bytes(16), np.uint8), 8)
        self.window = (np.ascontiguousarray(windows).view("<u8")[:, 0] & np.uint64((1 << 48) - 1)).data
        self.position = 0

    def read(self, size: int) -> int:
        value: int = self.window[self.position >> 3] >> (self.position & 7) & ((1 << size) - 1)
        self.position += size
        return value

    def symbol(self, code: Any) -> int:
        """The next symbol of a prefix code, as `prefix_code` makes it."""
        table, mask = code
        entry: int = table[self.window[self.position >> 3] >> (self.position & 7) & mask]
        self.position += entry & 15
        return entry >> 4

    def value(self, prefix: int) -> int:
        """A length or distance, from its prefix and the bits that follow."""
        if prefix < 4:
            return prefix + 1
        extra = (prefix - 2) >> 1
        return ((2 + (prefix & 1)) << extra) + self.read(extra) + 1


def decode_vp8l(data: bytes) -> np.ndarray:
    bits = WebpBits(data)
    if bits.read(8) != 0x2F:
        raise ValueError("no lossless image")
    width, height = bits.read(14) + 1, bits.read(14) + 1
    if bits.read(4) >> 1 or width * height > WEBP_LARGEST:
        raise ValueError(f"a size of {width} x {height}")
    transforms: list[tuple[int, int, int, np.ndarray]] = []
    columns = width
    while bits.read(1):
        kind = bits.read(2)
        if kind in [known for known, *_ in transforms]:
            raise ValueError("a transform twice")
        size, table = 0, np.zeros(0, np.uint32)
        if kind < 2:
            size = bits.read(3) + 2
            table = read_pixels(bits, -(-columns >> size), -(-height >> size))
        elif kind == 3:
            count = bits.read(8) + 1
            table = read_pixels(bits, count, 1)
            table = np.cumsum(table.view(np.uint8).reshape(-1, 4), axis=0, dtype=np.uint8).view(np.uint32)
            size = 3 if count <= 2 else 2 if count <= 4 else 1 if count <= 16 else 0
        transforms.append((kind, size, columns, table))
        if kind == 3:
            columns = -(-columns >> size)
    pixels = read_pixels(bits, columns, height, grouped=True)
    if bits.position > 8 * len(data):
        raise ValueError("the data ends too early")
    for kind, size, across, table in reversed(transforms):
        if kind == 0:
            pixels = undo_prediction(pixels, table, size)
        elif kind == 1:
            pixels = undo_color_transform(pixels, table, size)
        elif kind == 2:
            pixels = undo_green_subtraction(pixels)
        else:
            pixels = undo_indexing(pixels, table, size, across)
    return np.ascontiguousarray(pixels).view(np.uint8).reshape(height, width, 4)[:, :, 2::-1]


def read_pixels(bits: WebpBits, width: int, height: int, grouped: bool = False) -> np.ndarray:
    """An image, height x width; if `grouped`, its parts may have prefix codes of their own."""
    cache_bits = bits.read(4) if bits.read(1) else 0
    if cache_bits > 11:
        raise ValueError("too large a cache")
    size = 0
    groups: np.ndarray = np.zeros((1, 1), np.uint32)
    if grouped and bits.read(1):
        size = bits.read(3) + 2
        groups = read_pixels(bits, -(-width >> size), -(-height >> size)) >> 8 & 0xFFFF
    sizes = [280 + (1 << cache_bits if cache_bits else 0), 256, 256, 256, 40]
    codes = [[read_prefix_code(bits, n) for n in sizes] for _ in range(int(groups.max()) + 1)]
    out = [0] * (width * height)
    cache = [0] * (1 << cache_bits)
    group_of = groups.tolist()
    index = cached = 0
    end, shift, symbol = width * height, 32 - cache_bits, bits.symbol
    limit = len(bits.window) * 8 - 64
    while index < end:
        if not index % width and bits.position > limit:
            raise ValueError("the data ends too early")
        y, x = divmod(index, width)
        green, red, blue, alpha, far = codes[group_of[y >> size][x >> size] if size else 0]
        token = symbol(green)
        if token < 256:
            out[index] = symbol(red) << 16 | token << 8 | symbol(blue) | symbol(alpha) << 24
            index += 1
        elif token < 280:
            length, code = bits.value(token - 256), bits.value(symbol(far))
            across, up = WEBP_NEAR_PIXELS[code - 1] if code <= 120 else (code - 120, 0)
            distance = max(across + up * width, 1)
            if distance > index or length > end - index:
                raise ValueError("a reference outside of the image")
            for place in range(index, index + length):
                out[place] = out[place - distance]
            index += length
        else:
            if cached < index:
                fill_cache(cache, out[cached:index], shift)
                cached = index
            out[index] = cache[token - 280]
            index += 1
    return np.array(out, np.uint32).reshape(height, width)


def fill_cache(cache: list[int], pixels: list[int], shift: int) -> None:
    for pixel in pixels:
        cache[(0x1E35A7BD * pixel & 0xFFFFFFFF) >> shift] = pixel


def read_prefix_code(bits: WebpBits, count: int) -> tuple[Any, int]:
    """A prefix code for `count` symbols, whose lengths are themselves coded."""
    lengths = [0] * max(count, 256)
    if bits.read(1):
        pair, wide = bits.read(1), bits.read(1)
        lengths[bits.read(8 if wide else 1)] = 1
        if pair:
            lengths[bits.read(8)] = 1
        return prefix_code(lengths[:count])
    code_lengths = [0] * 19
    for place in WEBP_CODE_ORDER[: 4 + bits.read(4)]:
        code_lengths[place] = bits.read(3)
    code = prefix_code(code_lengths)
    remaining = 2 + bits.read(2 + 2 * bits.read(3)) if bits.read(1) else count
    index, previous = 0, 8
    while index < count and remaining:
        remaining -= 1
        length = bits.symbol(code)
        if length < 16:
            lengths[index] = length
            previous = length or previous
            index += 1
        else:
            repeat = bits.read({16: 2, 17: 3, 18: 7}[length]) + (11 if length == 18 else 3)
            if index + repeat > count:
                raise ValueError("wrong prefix code")
            if length == 16:
                lengths[index : index + repeat] = [previous] * repeat
            index += repeat
    return prefix_code(lengths[:count])


def prefix_code(lengths: list[int]) -> tuple[Any, int]:
    """For each value of the next bits, 16 times the symbol plus the length of its code; and a mask for these bits."""
    symbols = sorted((length, symbol) for symbol, length in enumerate(lengths) if length)
    if len(symbols) == 1:
        return [symbols[0][1] << 4], 0
    if not symbols or sum(1 << (15 - length) for length, _ in symbols) != 1 << 15:
        raise ValueError("wrong prefix code")
    longest = symbols[-1][0]
    table = np.zeros(1 << longest, np.int64)
    code = 0
    for length, symbol in symbols:
        table[int(f"{code >> (longest - length):0{length}b}"[::-1], 2) :: 1 << length] = symbol << 4 | length
        code += 1 << (longest - length)
    return table.data, (1 << longest) - 1


def spread_blocks(table: np.ndarray, size: int, shape: tuple[int, ...]) -> np.ndarray:
    """The entry for each pixel, of a table with one for each block of 2**size x 2**size pixels."""
    return table.repeat(1 << size, axis=0)[: shape[0]].repeat(1 << size, axis=1)[:, : shape[1]]


def undo_green_subtraction(pixels: np.ndarray) -> np.ndarray:
    channels = np.ascontiguousarray(pixels).view(np.uint8).reshape(*pixels.shape, 4)
    channels[:, :, 0] += channels[:, :, 1]
    channels[:, :, 2] += channels[:, :, 1]
    return channels.view(np.uint32)[:, :, 0]


def undo_color_transform(pixels: np.ndarray, table: np.ndarray, size: int) -> np.ndarray:
    """Add multiples of green to red and blue, and of red to blue."""
    channels = np.ascontiguousarray(pixels).view(np.int8).reshape(*pixels.shape, 4)
    factors = np.ascontiguousarray(spread_blocks(table, size, pixels.shape)).view(np.int8).reshape(channels.shape)

    def product(factor: int, channel: int) -> np.ndarray:
        return (factors[:, :, factor].astype(np.int16) * channels[:, :, channel] >> 5).astype(np.int8)

    channels[:, :, 2] += product(0, 1)
    channels[:, :, 0] += product(1, 1) + product(2, 2)
    return channels.view(np.uint32)[:, :, 0]


def undo_indexing(pixels: np.ndarray, table: np.ndarray, size: int, width: int) -> np.ndarray:
    """Colours of a palette, of which several may be packed in a pixel."""
    indices = pixels >> 8 & 255
    if size:
        depth = 8 >> size
        indices = (indices[:, :, None] >> np.arange(0, 8, depth, dtype=np.uint32)) & ((1 << depth) - 1)
        indices = indices.reshape(len(pixels), -1)[:, :width]
    palette = np.zeros(256, np.uint32)
    palette[: table.size] = table.reshape(-1)
    out: np.ndarray = palette[indices]
    return out


def average_pixels(a: int, b: int) -> int:
    """Channel by channel, rounded down."""
    return (((a ^ b) & 0xFEFEFEFE) >> 1) + (a & b)


def undo_prediction(pixels: np.ndarray, table: np.ndarray, size: int) -> np.ndarray:
    """Add to each pixel what is predicted from its neighbours, in one of 14 ways for each block."""
    height, width = pixels.shape
    modes = (table >> 8 & 15).tolist()
    values = pixels.reshape(-1).tolist()
    average, even, odd = average_pixels, 0xFF00FF00, 0x00FF00FF
    for index, value in enumerate(values):
        y, x = divmod(index, width)
        left = values[index - 1]
        if not y:
            guess = left if x else 0xFF000000
        elif not x:
            guess = values[index - width]
        else:
            mode = modes[y >> size][x >> size]
            corner, above, right = values[index - width - 1 : index - width + 2]
            if mode == 1:
                guess = left
            elif mode == 2:
                guess = above
            elif mode == 3:
                guess = right
            elif mode == 4:
                guess = corner
            elif mode == 5:
                guess = average(average(left, right), above)
            elif mode == 6:
                guess = average(left, corner)
            elif mode == 7:
                guess = average(left, above)
            elif mode == 8:
                guess = average(corner, above)
            elif mode == 9:
                guess = average(above, right)
            elif mode == 10:
                guess = average(average(left, corner), average(above, right))
            elif mode == 11:
                guess = nearer_pixel(left, above, corner)
            elif mode in (12, 13):
                guess = clamped_pixel(left, above, corner, mode == 13)
            else:
                guess = 0xFF000000
        values[index] = ((value & even) + (guess & even)) & even | ((value & odd) + (guess & odd)) & odd
    return np.array(values, np.uint32).reshape(height, width)


def nearer_pixel(left: int, above: int, corner: int) -> int:
    """Of the pixels to the left and above, the one nearer to their sum without the corner."""
    to_left = to_above = 0
    for shift in (0, 8, 16, 24):
        middle = corner >> shift & 255
        to_left += abs((above >> shift & 255) - middle)
        to_above += abs((left >> shift & 255) - middle)
    return left if to_left < to_above else above


def clamped_pixel(left: int, above: int, corner: int, half: bool) -> int:
    """left + above - corner or, if `half`, their average plus half of its difference to the corner."""
    result = 0
    for shift in (0, 8, 16, 24):
        a, b, c = left >> shift & 255, above >> shift & 255, corner >> shift & 255
        if half:
            a = (a + b) >> 1
            channel = a + int((a - c) / 2)
        else:
            channel = a + b - c
        result |= min(max(channel, 0), 255) << shift
    return result
