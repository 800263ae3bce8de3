"""What sounds are made of: spectra over time, and what is left of them on a scale of what is heard."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from onward.errors import UnsupportedError
from onward.frontends.lax.signal import transformed
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.like_tensorflow import custom_options
from onward.frontends.tflite.registry import rule
from onward.gate.bounds import check_room
from onward.graph.build import Tensor

LIMITS = ("lower_frequency_limit", "upper_frequency_limit")
FLOOR = 1e-12
"""What is heard is at least this, before its logarithm is taken."""


@rule("CUSTOM AudioSpectrogram")
def spectrogram(op: Writer, x: Tensor) -> Tensor:
    """Samples and channels to channels, times and frequencies; a window is filled up to a power of two."""
    options = custom_options(op)
    length, stride = options["window_size"], options["stride"]
    if x.sizes is None:
        raise UnsupportedError("the length of a sound is not known")
    count = max((x.sizes[0] - length) // stride + 1, 0)
    places = np.arange(count)[:, None] * stride + np.arange(length)[None]
    frames = op.Gather(op.transpose(x, [1, 0]), op.constant(places.astype(np.int64)), axis=1)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    whole = 1 << (length - 1).bit_length()
    padded = op.Pad(frames * op.constant(hann.astype(np.float32)), op.ints([0, 0, 0, 0, 0, whole - length]))
    parts = transformed(op, padded, -1, onesided=True)
    power = parts.real * parts.real + parts.imaginary * parts.imaginary
    return power if options["magnitude_squared"] else op.Sqrt(power)


@rule("CUSTOM Mfcc")
def mfcc(op: Writer, spectra: Tensor, rate: Tensor) -> Tensor:
    options = custom_options(op)
    if spectra.dims is None or not isinstance(spectra.dims[2], int):
        raise UnsupportedError("the number of frequencies is not known")
    bands = _bands(spectra.dims[2], int(op.fixed(rate, "how many samples a second has").reshape(())), options)
    heard = op.MatMul(op.Sqrt(spectra), op.constant(bands.astype(np.float32)))
    count = options["filterbank_channel_count"]
    angles = np.pi / count * np.outer(np.arange(count) + 0.5, np.arange(options["dct_coefficient_count"]))
    cosines = np.sqrt(2 / count) * np.cos(angles)
    return op.MatMul(op.Log(op.Max(heard, op.like(FLOOR, heard))), op.constant(cosines.astype(np.float32)))


def _mel(frequency: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(frequency) / 700.0)


def _bands(bins: int, rate: int, options: dict[str, Any]) -> npt.NDArray[np.float64]:
    """How much of each frequency goes into each band: triangles on the scale of what is heard, half over each other."""
    count, low, high = (options[name] for name in ("filterbank_channel_count", *LIMITS))
    check_room("the middles of bands", [count], 8)
    hertz = 0.5 * rate / (bins - 1)
    middles = _mel(low) + (_mel(high) - _mel(low)) / (count + 1) * np.arange(0, count + 2)
    first, last = int(1.5 + low / hertz), int(high / hertz)
    check_room("the bands of a spectrum", (bins, count), 8)
    bands = np.zeros((bins, count))
    for i in range(first, min(last, bins - 1) + 1):
        mel = _mel(i * hertz)
        right = int(np.searchsorted(middles[1 : count + 1], mel, side="left"))  # the band whose middle comes next
        share = (middles[right + 1] - mel) / (middles[right + 1] - middles[right])
        if right > 0:
            bands[i, right - 1] += share
        if right < count:
            bands[i, right] += 1 - share
    return bands
