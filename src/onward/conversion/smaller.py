"""ONNX files with fewer nodes, where that is asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from onward.conversion.opset import runs
from onward.conversion.request import Request

if TYPE_CHECKING:
    from onward.conversion.sources import Original


def with_fewer_nodes(original: Original, request: Request) -> Original:
    """What is written to ONNX, simplified, with the original beside it to compare with."""
    if not request.simplify:
        return original
    from onward.passes.fewer.smaller import smaller

    before = original.model
    found = smaller(before, request.without)
    words = f"{found.before:,} nodes became {found.after:,}"
    made = replace(original, model=found.model, remarks=(*original.remarks, words))
    if original.kind == "ONNX" and request.verify:
        return replace(made, run=runs(before, request.verify_on))
    return made
