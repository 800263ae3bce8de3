"""Conversions to number formats that TensorFlow does not have, and from and to strings."""

import tensorflow as tf

from onward.backends.tensorflow.runtime.elementwise import is_negative


def low_bits(x: tf.Tensor, width: int, signed: bool) -> tf.Tensor:
    """The lowest bits of whole numbers, as integers of that width held in bytes."""
    low = tf.cast(x, tf.int64) & (2**width - 1)
    if not signed:
        return tf.cast(low, tf.uint8)
    return tf.cast(low - 2 * (low & 2 ** (width - 1)), tf.int8)


def round_to_small_float(
    x: tf.Tensor,
    mantissa: int,
    lowest_exponent: int,
    largest: float,
    beyond: float | None = None,
    nan: float = float("nan"),
    minus_zero: bool = True,
) -> tf.Tensor:
    """The nearest values (ties to even) of a small float format, held in float32.

    `beyond` is what larger numbers become; the largest number if it is None.
    """
    x = tf.cast(x, tf.float32)
    is_nan = tf.math.is_nan(x)
    x = tf.where(is_nan, 0.0, x)
    if beyond is None:
        x = tf.clip_by_value(x, -largest, largest)
    exponent = tf.bitwise.right_shift(tf.bitcast(x, tf.int32), 23) & 255
    step = tf.bitcast(
        tf.bitwise.left_shift(tf.maximum(exponent, lowest_exponent + 127) - mantissa, 23),
        tf.float32,
    )
    y = tf.round(x / step) * step
    if beyond is not None:
        y = tf.where(tf.abs(x) == float("inf"), x, y)
        y = tf.where(tf.abs(y) > largest, tf.sign(y) * beyond, y)
    if not minus_zero:
        y = tf.where(y == 0, 0.0, y)
    return tf.where(is_nan, nan, y)


def to_power_of_two(x: tf.Tensor, saturate: bool, round_mode: str) -> tf.Tensor:
    """The exponent alone, as float8_e8m0 has it, rounded "up", "down" or to the "nearest"; held in float32."""
    number = tf.bitcast(tf.cast(x, tf.float32), tf.int32)
    exponent, fraction = tf.bitwise.right_shift(number, 23) & 255, number & 0x7FFFFF
    if round_mode == "up":
        up = fraction > 0
    elif round_mode == "nearest":
        up = (fraction > 0x400000) | ((fraction == 0x400000) & (exponent > 0))
    else:
        up = tf.zeros_like(fraction, tf.bool)
    rounded = tf.minimum(exponent + tf.cast(up, tf.int32), 254 if saturate else 255)
    rounded = tf.where(exponent == 255, 255, rounded)
    bits = tf.where(rounded == 0, 1 << 22, tf.bitwise.left_shift(rounded, 23))
    return tf.bitcast(tf.where(rounded == 255, 0x7FC00000, bits), tf.float32)


FLOAT4_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def float4_code(x: tf.Tensor) -> tf.Tensor:
    """The bit pattern of float4e2m1 values."""
    above = tf.reduce_sum(tf.cast(tf.abs(x)[..., None] > tf.constant(FLOAT4_VALUES), tf.int64), -1)
    return above + 8 * tf.cast(is_negative(x), tf.int64)


def float4_value(code: tf.Tensor) -> tf.Tensor:
    """The inverse of `float4_code`."""
    values = tf.constant([*FLOAT4_VALUES, *(-v for v in FLOAT4_VALUES)])
    return tf.gather(values, tf.cast(code, tf.int64) & 15)


def parse_numbers(strings: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Strings such as "3.14", "1e-5" or "-INF" as numbers."""
    strings = tf.strings.strip(strings)
    if dtype.is_floating:
        return tf.cast(tf.strings.to_number(strings, tf.float64), dtype)
    if dtype == tf.uint64:
        strings = tf.strings.regex_replace(strings, r"^\+", "")
        is_long = tf.strings.regex_full_match(strings, r"\d{10,}")
        long = tf.where(is_long, strings, "0000000000")
        length = tf.strings.length(long)
        head = tf.strings.substr(long, tf.zeros_like(length), length - 9)
        tail = tf.strings.substr(long, length - 9, 9 * tf.ones_like(length))
        high, low = (tf.cast(tf.strings.to_number(part, tf.int64), tf.uint64) for part in (head, tail))
        return tf.where(is_long, high * 10**9 + low, parse_integers(tf.where(is_long, "0", strings), dtype))
    return parse_integers(strings, dtype)


def parse_integers(strings: tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Numbers that fit 64 bits with a sign, without their fraction."""
    is_whole = tf.strings.regex_full_match(strings, r"[+-]?\d+")
    whole = tf.strings.to_number(tf.where(is_whole, strings, "0"), tf.int64)
    rest = tf.strings.to_number(tf.where(is_whole, "0", strings), tf.float64)
    return tf.cast(tf.where(is_whole, whole, tf.cast(rest, tf.int64)), dtype)


def format_numbers(x: tf.Tensor) -> tf.Tensor:
    """Numbers as strings: 8 significant digits of a float, NaN and infinities as ONNX spells them."""
    if not x.dtype.is_floating:
        return tf.strings.as_string(tf.cast(x, tf.int64) if x.dtype == tf.bool else x)
    x = tf.cast(x, tf.float64)
    text = tf.strings.as_string(x, precision=8, shortest=True)
    text = tf.where(tf.math.is_nan(x), "NaN", text)
    return tf.where(tf.math.is_inf(x), tf.where(x > 0, "INF", "-INF"), text)
