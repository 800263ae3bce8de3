"""Decoding of images, by Pillow: for `jax.jit`, a file is a static argument."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from onward.backends.jax.runtime.host import known
from onward.backends.shared.runtime.image import decoded_pixels


def decode_image(data: Array, pixel_format: str = "RGB") -> Array:
    """The image in an encoded file (a vector of bytes) as uint8, height x width x channels. See `decoded_pixels`."""
    return jnp.asarray(decoded_pixels(known(data, "ImageDecoder").astype(np.uint8).tobytes(), pixel_format))
