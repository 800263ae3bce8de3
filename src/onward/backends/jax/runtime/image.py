"""Decoding of images, by Pillow: it is not for `jax.jit`."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from onward.backends.jax.runtime.host import known
from onward.backends.shared.runtime.image import decoded_pixels


def decode_image(data: Array, pixel_format: str = "RGB") -> Array:
    """The image in an encoded file (a vector of bytes) as uint8, height x width x channels. See `decoded_pixels`."""
    return jnp.asarray(decoded_pixels(known(data, "ImageDecoder").tobytes(), pixel_format))
