"""ONNX files with fewer nodes, where that is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from onward.conversion.beside import sizes, times
from onward.conversion.opset import runs
from onward.conversion.request import Request
from onward.errors import OnwardError

if TYPE_CHECKING:
    from onward.conversion.sources import Original
    from onward.model import Model


def with_fewer_nodes(original: Original, request: Request) -> Original:
    """What is written to ONNX, simplified, with the original beside it to compare with."""
    if not request.simplify:
        return original
    from onward.passes.fewer.smaller import smaller

    before = original.model
    made = smaller(before, request.without).model
    remarks = (sizes(before, made), *(_times(before, made, request) if request.verify else ()))
    written = replace(original, model=made, remarks=(*original.remarks, *remarks))
    if original.kind == "ONNX" and request.verify:
        return replace(written, run=runs(before, request.verify_on))
    return written


def _times(before: Model, made: Model, request: Request) -> Iterator[str]:
    """How long a run takes; nothing where there are no inputs for it."""
    from onward.verification.data.sets import data_sets, make_inputs

    try:
        inputs = (
            make_inputs(before) if request.inputs is None else next(data_sets(before, inputs=request.inputs)).inputs
        )
    except (OnwardError, StopIteration):
        return
    yield from times(before, made, inputs, inputs)
