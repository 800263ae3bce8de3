"""What rules refuse of what ONNX allows."""

from __future__ import annotations

from onward.backends.backend import Limit

PARTIAL: dict[str, Limit] = {}
