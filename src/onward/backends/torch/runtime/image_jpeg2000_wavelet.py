"""The inverse wavelet transforms of JPEG 2000 (ITU-T T.800, annex F), in OpenJPEG's order of operations."""

import numpy as np


def merge_bands(bands: list[np.ndarray], top: int, left: int, reversible: bool) -> np.ndarray:
    """The image of the next resolution, whose first row is `top` and column `left`, from its bands LL, HL, LH, HH."""
    low, across, down, both = bands
    shape = (low.shape[0] + down.shape[0], low.shape[1] + across.shape[1])
    image = np.empty(shape, low.dtype)
    y, x = top & 1, left & 1
    image[y::2, x::2] = low
    image[y::2, 1 - x :: 2] = across
    image[1 - y :: 2, x::2] = down
    image[1 - y :: 2, 1 - x :: 2] = both
    inverse = inverse_5_3 if reversible else inverse_9_7
    return inverse(inverse(image.T, x).T, y)


def reflected(x: np.ndarray, size: int) -> np.ndarray:
    """With `size` more rows on both sides, mirrored at the first and last row."""
    count = len(x)
    places = np.abs(np.arange(-size, count + size)) % (2 * count - 2)
    rows: np.ndarray = x[np.minimum(places, 2 * count - 2 - places)]
    return rows


def inverse_5_3(x: np.ndarray, odd: int) -> np.ndarray:
    """Along the first axis; `odd` if it begins with a high frequency."""
    count = len(x)
    if count < 2:
        return (x + (x < 0)) >> 1 if odd else x
    y = reflected(x, 2)
    start = 2 - odd
    y[start:-1:2] -= (y[start - 1 : -2 : 2] + y[start + 1 :: 2] + 2) >> 2
    start = 2 + (not odd)
    y[start : count + 2 : 2] += (y[start - 1 : count + 1 : 2] + y[start + 1 : count + 3 : 2]) >> 1
    return y[2:-2]


def inverse_9_7(x: np.ndarray, odd: int) -> np.ndarray:
    """Along the first axis; `odd` if it begins with a high frequency."""
    count = len(x)
    if count < 2:
        return x
    y = reflected(x, 4)
    y[odd::2] *= np.float32(1.230174105)
    y[1 - odd :: 2] *= np.float32(1.625732422)
    for margin, factor in enumerate((0.443506852, 0.882911075, -0.052980118, -1.586134342), start=1):
        parity = odd if margin % 2 else 1 - odd
        start = margin + (margin % 2 != parity)
        end = count + 8 - margin
        y[start:end:2] -= (y[start - 1 : end - 1 : 2] + y[start + 1 : end + 1 : 2]) * np.float32(factor)
    return y[4:-4]
