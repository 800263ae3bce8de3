"""Decoding of images, by Pillow."""

import torch
from torch import Tensor

from onward.backends.shared.runtime.image import decoded_pixels


def decode_image(data: Tensor, pixel_format: str = "RGB") -> Tensor:
    """The image in an encoded file (a vector of bytes) as uint8, height x width x channels: see `decoded_pixels`."""
    return torch.from_numpy(decoded_pixels(data.cpu().numpy().tobytes(), pixel_format)).to(data.device)
