"""Fourier transforms of numbers held as (real, imaginary) pairs, windows, and the mel scale."""

import math
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import dims_of, is_number, packed


def to_complex(x: tf.Tensor, may_be_real: bool = True) -> tf.Tensor:
    """The last axis, of one (real) or two elements, as one number: real where it is known to be.

    One that may be real is in double precision, so that its spectrum comes out as that of a real signal.
    """
    parts = None if x.shape.rank is None else x.shape[-1]
    if parts is None and may_be_real:
        x = tf.cast(x, tf.float64)
    elif x.dtype not in (tf.float32, tf.float64):
        x = tf.cast(x, tf.float32)
    return x[..., 0] if parts == 1 else tf.complex(x[..., 0], tf.reduce_sum(x[..., 1:], -1))


def to_pairs(x: tf.Tensor) -> tf.Tensor:
    """Complex numbers with their real and imaginary parts along a new last axis."""
    return tf.stack([tf.math.real(x), tf.math.imag(x)], -1)


def resized(x: tf.Tensor, length: Any) -> tf.Tensor:
    """The last axis cut, or filled up with zeros, to a length."""
    x = x[..., :length]
    missing = tf.cast(length, tf.int64) - dims_of(x)[-1]
    zeros = tf.zeros(tf.concat([dims_of(x)[:-1], [missing]], 0), x.dtype)
    return tf.concat([x, zeros], -1)


def spectrum(x: tf.Tensor, size: Any, onesided: bool) -> tf.Tensor:
    """The Fourier transform of real or complex numbers along the last axis, which has that size; or its first half."""
    if x.dtype.is_complex:
        result = tf.signal.fft(x)
        return result[..., : size // 2 + 1] if onesided else result
    half = tf.signal.rfft(x)
    return half if onesided else mirrored(half, size)


def dft(x: tf.Tensor, length: Any = None, axis: Any = -2, inverse: bool = False, onesided: bool = False) -> tf.Tensor:
    """The discrete Fourier transform along an axis of `x`, whose last axis holds real and imaginary parts."""
    signal, rank = to_complex(x, not inverse), tf.rank(x)
    axis = tf.cast(axis, tf.int32) % rank
    order = tf.range(rank - 1)
    swapped = tf.where(order == axis, rank - 2, tf.where(order == rank - 2, axis, order))
    signal = tf.transpose(signal, swapped)
    size = tf.cast(tf.shape(signal)[-1] if length is None else length, tf.int32)
    if inverse and not signal.dtype.is_complex:
        signal = tf.complex(signal, tf.zeros_like(signal))
    if inverse and onesided:
        if length is None:
            size = 2 * (size - 1)
        parts = tf.math.real(tf.signal.ifft(mirrored(resized(signal, size // 2 + 1), size)))
        return tf.cast(tf.transpose(parts, swapped)[..., None], x.dtype)
    signal = resized(signal, size)
    result = tf.signal.ifft(signal) if inverse else spectrum(signal, size, onesided)
    return tf.cast(to_pairs(tf.transpose(result, swapped)), x.dtype)


def mirrored(x: tf.Tensor, length: Any) -> tf.Tensor:
    """The whole spectrum of a real signal of this length, from its first half."""
    return tf.concat([x, tf.math.conj(tf.reverse(x[..., 1 : (length + 1) // 2], [-1]))], -1)


def stft(
    signal: tf.Tensor,
    frame_step: Any,
    window: tf.Tensor | None = None,
    frame_length: Any = None,
    onesided: bool = True,
) -> tf.Tensor:
    """The Fourier transform of each frame of a signal (batch, length, 1 or 2): (batch, frames, bins, 2)."""
    numbers = to_complex(signal)
    if frame_length is None:
        frame_length = tf.shape(numbers)[1] if window is None else tf.shape(window)[0]
    frame_length, frame_step = tf.cast(frame_length, tf.int32), tf.cast(frame_step, tf.int32)
    count = (tf.shape(numbers)[1] - frame_length) // frame_step + 1
    frames = tf.gather(numbers, tf.range(count)[:, None] * frame_step + tf.range(frame_length), axis=1)
    if window is not None:
        frames = frames * tf.cast(window, frames.dtype)
    return tf.cast(to_pairs(spectrum(frames, frame_length, onesided)), signal.dtype)


def cosine_window(
    size: Any, coefficients: list[float], periodic: bool = True, dtype: tf.DType = tf.float32
) -> tf.Tensor:
    """A sum of cosines over one period, which ends after the last element, or with it if not periodic."""
    count = tf.cast(size, tf.float64)
    span = count if periodic else tf.maximum(count - 1, 1)
    angle = 2 * math.pi * tf.range(count) / span
    terms = [coefficient * tf.cos(i * angle) for i, coefficient in enumerate(coefficients)]
    total = tf.add_n(terms)
    return tf.cast(tf.cast(total, tf.float32) if dtype.is_integer else total, dtype)  # a peak of almost 1 is 1


def mel_weight_matrix(
    mel_bins: Any,
    dft_length: Any,
    sample_rate: Any,
    lower_hertz: Any,
    upper_hertz: Any,
    dtype: tf.DType = tf.float32,
) -> tf.Tensor:
    """The matrix that turns a spectrum of dft_length // 2 + 1 frequencies into one of `mel_bins` triangles."""
    bins, length = tf.cast(mel_bins, tf.int64), tf.cast(dft_length, tf.int64)
    rate, low, high = (
        packed(float(v) if is_number(v) else v, tf.float64) for v in (sample_rate, lower_hertz, upper_hertz)
    )
    low, high = (2595 * tf.math.log(1 + hertz / 700) / math.log(10) for hertz in (low, high))
    mel = low + tf.cast(tf.range(bins + 2), tf.float64) * (high - low) / tf.cast(bins + 2, tf.float64)
    hertz = 700 * (tf.pow(tf.constant(10.0, tf.float64), mel / 2595) - 1)
    corners = tf.floor(tf.cast(length + 1, tf.float64) * hertz / rate)
    start, peak, end = corners[:-2], corners[1:-1], corners[2:]
    place = tf.cast(tf.range(length // 2 + 1), tf.float64)[:, None]
    rising = tf.where(peak > start, (place - start) / tf.maximum(peak - start, 1), tf.ones_like(place))
    falling = (end - place) / tf.maximum(end - peak, 1)
    weights = tf.where((place >= start) & (place <= peak), rising, tf.zeros_like(rising))
    return tf.cast(tf.where((place >= peak) & (place < end), falling, weights), dtype)
