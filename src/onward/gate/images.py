"""Images are opened by Pillow: pictures only, and none that is larger than its file accounts for."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from onward.advice.extras import missing
from onward.errors import InvalidDataError
from onward.gate.bounds import UNPACKED, unpacked

PIXEL = 24
"""Bytes of a pixel while an image is resized."""
FORMATS = ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""As Pillow calls them."""
NAMES = "JPEG, PNG, BMP, PNM, TIFF, WebP or JPEG 2000"


@contextmanager
def opened_image(file: BinaryIO, size: int, where: str = "") -> Iterator[Any]:
    """Pillow's image, before its pixels are read; one too large for a file of `size` bytes is refused.

    Only pictures are opened: Pillow also takes PostScript for an image, and has it executed.
    """
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise missing("PIL", where.removesuffix(": ")) from error
    most = unpacked(size)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sizes, which are checked here, and about damaged metadata
            with Image.open(file, formats=FORMATS) as image:
                needed = image.width * image.height * PIXEL
                if needed > most:
                    pixels = f"{image.width:,} x {image.height:,} pixels"
                    raise InvalidDataError(f"its {pixels} would take {needed:,} bytes; {UNPACKED.hint}")
                yield image
    except UnidentifiedImageError as error:
        raise InvalidDataError(f"{where}it cannot be read as an image: give one as {NAMES}") from error
    except Exception as error:  # Pillow raises whatever a damaged file leads it to
        raise InvalidDataError(f"{where}it cannot be read as an image: {error}") from error
