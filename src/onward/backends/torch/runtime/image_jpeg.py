"""jpeg"""

import numpy as np


def decode_jpeg(data: bytes) -> np.ndarray:
    raise ValueError("unsupported image format: jpeg")
