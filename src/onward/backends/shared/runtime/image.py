"""Decoding of images, by Pillow: the one helper that needs more than a framework and numpy."""

import io
import warnings

import numpy as np


def decoded_pixels(content: bytes, pixel_format: str = "RGB") -> np.ndarray:
    """The image in an encoded file as uint8, height x width x channels. Needs Pillow.

    Reads BMP, JPEG, JPEG 2000, PNG, PNM, TIFF and WebP, and ignores transparency. The pixel format is "RGB", "BGR" or
    "Grayscale".
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ImportError("this model decodes images and needs Pillow: pip install pillow") from error
    formats = ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Truncated|Possibly corrupt|Tag data")  # a header that was cut
            image = Image.open(io.BytesIO(content), formats=formats)
        with image:
            if image.format == "TIFF":  # Pillow makes up what a file that was cut lacks
                starts, sizes = [(273, 279), (324, 325)][324 in image.tag_v2]
                parts = zip(image.tag_v2.get(starts, ()), image.tag_v2.get(sizes, ()), strict=True)
                if any(start + size > len(content) for start, size in parts):
                    raise ValueError("the file ends before its pixels do")
            pixels = np.array(image.convert("L" if pixel_format == "Grayscale" else "RGB"))
    except UnidentifiedImageError as error:
        raise ValueError(f"the data is not an image of a known format: it starts with {content[:8]!r}") from error
    except Exception as error:  # Pillow raises whatever a damaged file leads it to
        raise ValueError(f"the image cannot be decoded: {error}") from error
    if pixel_format == "BGR":
        pixels = pixels[:, :, ::-1].copy()
    return pixels.reshape(*pixels.shape[:2], -1)
