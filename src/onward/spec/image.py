"""What decoding an image means."""

from __future__ import annotations

from dataclasses import dataclass

from onward.spec.meaning import Spec, means


@means("ImageDecoder")
@dataclass(frozen=True)
class ImageDecoder(Spec):
    pixel_format: str = "RGB"
