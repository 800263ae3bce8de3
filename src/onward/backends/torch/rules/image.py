"""Encoded images."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.torch.target import ops, rule
from onward.errors import UnsupportedError


@rule("ImageDecoder")
def image_decoder(e: Emitter, data: Expr, *, pixel_format: str = "RGB") -> Expr:
    if pixel_format not in ("RGB", "BGR", "Grayscale"):
        raise UnsupportedError(f"ImageDecoder: pixel_format is {pixel_format!r}, not RGB, BGR or Grayscale")
    return ops.decode_image(data, pixel_format)
