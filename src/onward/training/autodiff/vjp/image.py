"""Encoded images have no gradient."""

from __future__ import annotations

from onward.training.autodiff.vjp import no_gradient

no_gradient("its input is the bytes of a file", "ImageDecoder")
