"""Encoded images. The helper is named alike in every backend."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr, ops
from onward.backends.emit.target import Rule
from onward.errors import UnsupportedError
from onward.spec.image import ImageDecoder


def image_decoder(e: Emitter, data: Expr, p: ImageDecoder) -> Expr:
    if p.pixel_format not in ("RGB", "BGR", "Grayscale"):
        raise UnsupportedError(f"ImageDecoder: pixel_format is {p.pixel_format!r}, not RGB, BGR or Grayscale")
    return ops.decode_image(data, p.pixel_format)


RULES: dict[str, Rule] = {"ImageDecoder": image_decoder}
