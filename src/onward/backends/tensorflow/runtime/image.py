"""Decoding of images, of the formats that TensorFlow knows."""

import tensorflow as tf


def joined_bytes(data: tf.Tensor) -> tf.Tensor:
    """A vector of bytes as one string."""
    return tf.strings.reduce_join(tf.gather([bytes([i]) for i in range(256)], tf.cast(data, tf.int32)))


def decode_image(data: tf.Tensor, pixel_format: str = "RGB") -> tf.Tensor:
    """The image in an encoded file (a vector of bytes) as uint8, height x width x channels: BMP, JPEG or PNG.

    The pixel format is "RGB", "BGR" or "Grayscale".
    """
    content = joined_bytes(data)
    pixels = tf.cond(
        tf.io.is_jpeg(content),
        lambda: tf.io.decode_jpeg(content, 3, dct_method="INTEGER_ACCURATE"),
        lambda: tf.io.decode_image(content, 3, expand_animations=False),
    )
    if pixel_format == "BGR":
        return pixels[:, :, ::-1]
    if pixel_format == "Grayscale":
        luma = tf.reduce_sum(tf.cast(pixels, tf.int32) * [19595, 38470, 7471], 2, keepdims=True)
        return tf.cast((luma + 0x8000) // 65536, tf.uint8)
    return pixels
