"""The pixels of a VP8 frame: inverse transforms, prediction, the loop filter, and colours as libwebp computes them.

Macroblocks depend on those to the left, above, and above to the right: all with the same column + 2 * row are done at
once.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

VP8_SMALL_MODES = [
    "VE XAB ABC BCD CDE XAB ABC BCD CDE XAB ABC BCD CDE XAB ABC BCD CDE",
    "HE XIJ XIJ XIJ XIJ IJK IJK IJK IJK JKL JKL JKL JKL KLL KLL KLL KLL",
    "RD IXA XAB ABC BCD JIX IXA XAB ABC KJI JIX IXA XAB LKJ KJI JIX IXA",
    "VR XA AB BC CD IXA XAB ABC BCD JIX XA AB BC KJI IXA XAB ABC",
    "LD ABC BCD CDE DEF BCD CDE DEF EFG CDE DEF EFG FGH DEF EFG FGH GHH",
    "VL AB BC CD DE ABC BCD CDE DEF BC CD DE EFG BCD CDE DEF FGH",
    "HD IX IXA XAB ABC JI JIX IX IXA KJ KJI JI JIX LK LKJ KJ KJI",
    "HU IJ IJK JK JKL JK JKL KL KLL KL KLL L L L L L L",
]
"""How a block of 4 x 4 pixels is predicted, as the averages of neighbours: IJKL to the left (downwards), X in the
corner, ABCDEFGH above. Of three neighbours the middle one counts twice."""


def small_mode_weights() -> np.ndarray:
    """The weight in eighths of each neighbour (LKJIXABCDEFGH) in each pixel: 10 modes x 16 x 13."""
    weights = np.zeros((10, 16, 13), np.int32)
    weights[0, :, [0, 1, 2, 3, 5, 6, 7, 8]] = 1
    for i in range(16):
        weights[1, i, [3 - i // 4, 5 + i % 4, 4]] = [8, 8, -8]
    for mode, text in enumerate(VP8_SMALL_MODES, start=2):
        for i, letters in enumerate(text.split()[1:]):
            for letter, weight in zip(letters, {1: [8], 2: [4, 4], 3: [2, 4, 2]}[len(letters)], strict=True):
                weights[mode, i, "LKJIXABCDEFGH".index(letter)] += weight
    return weights


def render_vp8(header: Any, blocks: Any, width: int, height: int) -> np.ndarray:
    """The image, from the header and the macroblocks of a frame."""
    luma, chroma, inner = vp8_residuals(header, blocks)
    planes = predict_frame(blocks, luma, chroma)
    levels = np.array(header.levels)[blocks.segments, blocks.small.astype(int)]
    filter_frame(planes, levels, inner | blocks.small, header.sharpness, header.simple_filter)
    y, (u, v) = planes[0][0, 1:, 1:], planes[1][:, 1:, 1:]
    half_width, half_height = (width + 1) // 2, (height + 1) // 2
    u, v = (smooth_chroma(plane[:half_height, :half_width])[:height, :width] for plane in (u, v))
    return yuv_to_rgb(y[:height, :width], u, v)


def vp8_residuals(header: Any, blocks: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is added to the prediction of luma (1 plane) and chroma (2 planes), and whether there is anything.

    By plane, row and column of macroblocks, and pixels in them.
    """
    rows, columns = blocks.small.shape
    kinds = [0] * 16 + [2] * 8 + [1]
    steps = header.steps[:, kinds].astype(np.int16)
    scales = np.concatenate([steps[:, :, :1], np.repeat(steps[:, :, 1:], 15, axis=2)], axis=2)
    coefficients = blocks.tokens * scales[blocks.segments]
    means = inverse_wht(coefficients[:, :, 24])
    whole = ~blocks.small
    coefficients[whole, :16, 0] = means[whole]
    inner = blocks.coded | ((means != 0).any(axis=2) & whole)
    pixels = inverse_vp8_dct(coefficients[:, :, :24])
    luma = pixels[:, :, :16].reshape(rows, columns, 4, 4, 4, 4).transpose(0, 1, 2, 4, 3, 5)
    chroma = pixels[:, :, 16:].reshape(rows, columns, 2, 2, 2, 4, 4).transpose(2, 0, 1, 3, 5, 4, 6)
    return luma.reshape(1, rows, columns, 16, 16), chroma.reshape(2, rows, columns, 8, 8), inner


def inverse_wht(means: np.ndarray) -> np.ndarray:
    """The means of the 16 blocks of a macroblock, from the transform of them."""
    x = means.astype(np.int32).reshape(*means.shape[:2], 4, 4)
    for axis, bias, shift in ((2, 0, 0), (3, 3, 3)):
        a, b, c, d = np.moveaxis(x, axis, 0)
        a = a + bias
        x = np.stack([a + d + b + c, a - d + b - c, a + d - b - c, a - d - b + c], axis=axis) >> shift
    return x.reshape(means.shape).astype(np.int16)


def inverse_vp8_dct(coefficients: np.ndarray) -> np.ndarray:
    """Blocks of 4 x 4 differences."""
    x = coefficients.astype(np.int32).reshape(*coefficients.shape[:3], 4, 4)
    for axis, bias, shift in ((3, 0, 0), (4, 4, 3)):
        a, b, c, d = np.moveaxis(x, axis, 0)
        even, odd = a + c + bias, a - c + bias
        low = (b * 35468 >> 16) - (d + (d * 20091 >> 16))
        high = b + (b * 20091 >> 16) + (d * 35468 >> 16)
        x = np.stack([even + high, odd + low, odd - low, even - high], axis=axis) >> shift
    return x.astype(np.int16)


def wavefronts(rows: int, columns: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows and columns of the macroblocks that can be done at once."""
    for front in range(columns + 2 * rows - 2):
        y = np.arange(max(0, (front - columns + 2) // 2), min(rows, front // 2 + 1))
        yield y, front - 2 * y


def predict_frame(blocks: Any, luma: np.ndarray, chroma: np.ndarray) -> list[np.ndarray]:
    """The unfiltered planes, luma and chroma, with a border above and to the left, and for luma also to the right."""
    rows, columns = blocks.small.shape
    planes = [
        np.full((1, 16 * rows + 1, 16 * columns + 5), 127, np.int16),
        np.full((2, 8 * rows + 1, 8 * columns + 1), 127, np.int16),
    ]
    for plane in planes:
        plane[:, 1:, 0] = 129
    weights = small_mode_weights()
    for y, x in wavefronts(rows, columns):
        small = blocks.small[y, x]
        if small.any():
            ys, xs = y[small], x[small]
            predict_small(planes[0][0], ys, xs, weights[blocks.modes[ys, xs]], luma[0, ys, xs])
        if not small.all():
            ys, xs = y[~small], x[~small]
            predict_whole(planes[0], ys, xs, blocks.modes[ys, xs, 0], luma[:, ys, xs])
        predict_whole(planes[1], y, x, blocks.chroma_modes[y, x], chroma[:, y, x])
        last = y[x == columns - 1]
        planes[0][0, 16 * last + 16, -4:] = planes[0][0, 16 * last + 16, -5, None]
    return planes


def predict_whole(planes: np.ndarray, y: np.ndarray, x: np.ndarray, modes: np.ndarray, residual: np.ndarray) -> None:
    """Fill in macroblocks that are predicted from the pixels above and to the left: mean, gradient, or copies."""
    size = residual.shape[-1]
    rows, columns = 1 + size * y[:, None] + np.arange(size), 1 + size * x[:, None] + np.arange(size)
    above, left = planes[:, size * y[:, None], columns], planes[:, rows, size * x[:, None]]
    corner = planes[:, size * y, size * x, None, None]
    total = above.sum(axis=2, dtype=np.int32) * (y > 0) + left.sum(axis=2, dtype=np.int32) * (x > 0)
    count = size * ((y > 0).astype(np.int32) + (x > 0))
    mean = np.where(count, (total + count // 2) // np.maximum(count, 1), 128)[:, :, None, None]
    above, left = above[:, :, None, :], left[:, :, :, None]
    mode = modes[None, :, None, None]
    guess = np.where(mode == 0, mean, np.where(mode == 1, left + above - corner, np.where(mode == 2, above, left)))
    planes[:, rows[:, :, None], columns[:, None, :]] = np.clip(np.clip(guess, 0, 255) + residual, 0, 255)


def predict_small(plane: np.ndarray, y: np.ndarray, x: np.ndarray, weights: np.ndarray, residual: np.ndarray) -> None:
    """Fill in macroblocks whose blocks of 4 x 4 pixels are predicted one after the other."""
    for i in range(16):
        row, column = 16 * y + 1 + 4 * (i // 4), 16 * x + 1 + 4 * (i % 4)
        left = plane[row[:, None] + np.arange(3, -1, -1), column[:, None] - 1]
        above = plane[row[:, None] - 1, column[:, None] + np.arange(-1, 8)]
        if i % 4 == 3:
            above[:, 5:] = plane[16 * y[:, None], column[:, None] + np.arange(4, 8)]
        neighbours = np.concatenate([left, above], axis=1).astype(np.int32)
        guess = (weights[:, i] @ neighbours[:, :, None])[:, :, 0] + 4 >> 3
        top, start = 4 * (i // 4), 4 * (i % 4)
        pixels = np.clip(guess, 0, 255).reshape(-1, 4, 4) + residual[:, top : top + 4, start : start + 4]
        rows, columns = row[:, None, None] + np.arange(4)[:, None], column[:, None, None] + np.arange(4)
        plane[rows, columns] = np.clip(pixels, 0, 255)


def filter_frame(planes: list[np.ndarray], levels: np.ndarray, inner: np.ndarray, sharpness: int, simple: bool) -> None:
    """Smooth the edges of macroblocks and, where `inner`, of the blocks in them, by their level (0 to 63)."""
    interior = levels >> ((sharpness > 0) + (sharpness > 4))
    if sharpness:
        interior = np.minimum(interior, 9 - sharpness)
    interior = np.maximum(interior, 1)
    limits = 2 * levels + interior
    variance = (levels >= 15).astype(int) + (levels >= 40)
    for y, x in wavefronts(*levels.shape):
        for down in (False, True):
            for plane, size in zip(planes[: 1 if simple else 2], (16, 8), strict=False):
                for edge in range(0, size, 4):
                    position = y if down else x
                    chosen = (levels[y, x] > 0) & (inner[y, x] if edge else position > 0)
                    ys, xs = y[chosen], x[chosen]
                    if not len(ys):
                        continue
                    along = np.arange(size)[:, None]
                    across = edge + np.arange(-4, 4)
                    rows = 1 + size * ys[:, None, None] + (across if down else along)
                    columns = 1 + size * xs[:, None, None] + (along if down else across)
                    limit, most, busy = (
                        values[ys, xs, None] for values in (limits + (0 if edge else 4), interior, variance)
                    )
                    part = plane[:, rows, columns].astype(np.int32)
                    if simple:
                        smoothed = filter_simple(part, limit)
                    else:
                        smoothed = filter_normal(part, limit, most, busy, edge > 0)
                    plane[:, rows, columns] = smoothed


def filter_simple(pixels: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Smooth edges in the middle of eight pixels (the last axis)."""
    _, _, p1, p0, q0, q1, _, _ = np.moveaxis(pixels, -1, 0)
    smooth = 4 * abs(p0 - q0) + abs(p1 - q1) <= 2 * limit + 1
    change = 3 * (q0 - p0) + np.clip(p1 - q1, -128, 127)
    out = pixels.copy()
    out[..., 3] = np.where(smooth, p0 + np.clip(change + 3 >> 3, -16, 15), p0)
    out[..., 4] = np.where(smooth, q0 - np.clip(change + 4 >> 3, -16, 15), q0)
    return out.clip(0, 255)


def filter_normal(
    pixels: np.ndarray, limit: np.ndarray, interior: np.ndarray, variance: np.ndarray, inner: bool
) -> np.ndarray:
    """Smooth edges in the middle of eight pixels (the last axis): less where the pixels beside them differ."""
    _, _, p1, p0, q0, q1, _, _ = np.moveaxis(pixels, -1, 0)
    steps = abs(np.diff(pixels, axis=-1))
    steps[..., 3] = 0
    smooth = (4 * abs(p0 - q0) + abs(p1 - q1) <= 2 * limit + 1) & (steps.max(axis=-1) <= interior)
    busy = np.maximum(steps[..., 2], steps[..., 4]) > variance
    slope = 3 * (q0 - p0)
    spread = slope + np.clip(p1 - q1, -128, 127)
    sharp = np.where(busy, spread, slope) if inner else spread
    before, after = np.clip(sharp + 3 >> 3, -16, 15), np.clip(sharp + 4 >> 3, -16, 15)
    zero = np.zeros_like(p0)
    if inner:
        half = np.where(busy, 0, after + 1 >> 1)
        changes = [zero, zero, half, before, -after, -half, zero, zero]
    else:
        wide = np.clip(spread, -128, 127)
        far, middle, near = (np.where(busy, 0, factor * wide + 63 >> 7) for factor in (9, 18, 27))
        before, after = np.where(busy, before, near), np.where(busy, after, near)
        changes = [zero, far, middle, before, -after, -middle, -far, zero]
    return (pixels + np.where(smooth[..., None], np.stack(changes, axis=-1), 0)).clip(0, 255)


def smooth_chroma(plane: np.ndarray) -> np.ndarray:
    """Twice as many rows and columns, each pixel from the nearest four: 9/16, 3/16, 3/16 and 1/16 of them."""
    padded = np.pad(plane.astype(np.int32), 1, mode="edge")
    a, b, c, d = padded[:-1, :-1], padded[:-1, 1:], padded[1:, :-1], padded[1:, 1:]
    total = a + b + c + d + 8
    falling, rising = total + 2 * (b + c) >> 3, total + 2 * (a + d) >> 3
    quads = np.stack([falling + a, rising + b, rising + c, falling + d]) >> 1
    height, width = a.shape
    out = quads.reshape(2, 2, height, width).transpose(2, 0, 3, 1).reshape(2 * height, 2 * width)
    return out[1:-1, 1:-1]


def yuv_to_rgb(y: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    luma = y.astype(np.int32) * 19077 >> 8
    red = luma + (v * 26149 >> 8) - 14234
    green = luma - (u * 6419 >> 8) - (v * 13320 >> 8) + 8708
    blue = luma + (u * 33050 >> 8) - 17685
    rgb: np.ndarray = np.clip(np.stack([red, green, blue], axis=2) >> 6, 0, 255).astype(np.uint8)
    return rgb
