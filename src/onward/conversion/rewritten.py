"""ONNX files that are written anew: at the opset and IR version that are asked for, with fewer nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from onward.conversion.beside import sizes, times
from onward.conversion.bits import wanted
from onward.conversion.request import Request
from onward.errors import OnwardError

if TYPE_CHECKING:
    from onward.conversion.sources import Original
    from onward.model import Model
    from onward.runners.calls import Inputs, Outputs, Run


def rewritten(original: Original, request: Request) -> Original:
    """What is written to ONNX, with what it takes beside the original, unless fewer bits come yet."""
    made = at_wanted(with_fewer_nodes(original, request), request)
    if made.model is original.model or wanted(request):
        return made
    times = tuple(_times(original.model, made.model, request)) if request.verify else ()
    return replace(made, remarks=(*made.remarks, sizes(original.model, made.model), *times))


def with_fewer_nodes(original: Original, request: Request) -> Original:
    """What is written to ONNX, simplified, with the original beside it to compare with."""
    if not request.simplify:
        return original
    from onward.passes.fewer.smaller import smaller

    before = original.model
    made = smaller(before, request.without).model
    written = replace(original, model=made, remarks=(*original.remarks, *_closed(before, made)))
    if original.kind == "ONNX" and request.verify:
        return replace(written, run=runs(before, request.verify_on), ran=before)
    return written


def _closed(before: Model, made: Model) -> Iterator[str]:
    """What a caller has to know who gives other numbers for a weight."""
    from onward.advice.options import option
    from onward.report.wording import counted

    count = len(before.ir.graph.inputs) - len(made.ir.graph.inputs)
    if count:
        kept = option("without", ["inputs"])
        yield f"left out of the inputs: {counted(count, 'weight')} that the file lists there; {kept} keeps them"


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


def at_wanted(original: Original, request: Request) -> Original:
    """What is written to ONNX, at the opset asked for, with the original beside it to compare with."""
    from onward.canon.opset import at_opset

    if request.opset is None and request.ir_version is None:
        return original
    before = original.model
    moved = at_opset(before, None if original.kind != "ONNX" else request.opset, request.ir_version)
    changed = (
        f"opset {_opset(moved.model)}, IR version {moved.model.outline().ir_version}: {moved.changed} nodes changed",
    )
    dropped = tuple(f"left out: {phrase}" for phrase in moved.dropped)
    made = replace(original, model=moved.model, remarks=(*original.remarks, *changed, *dropped))
    if original.kind == "ONNX" and request.verify and original.run is None:
        return replace(made, run=runs(before, request.verify_on), ran=before)
    return made


def _opset(model: Model) -> str:
    return ", ".join(f"{domain}-{n}" if domain else str(n) for domain, n in sorted(model.opset.items()))


def runs(model: Model, runner: str | None) -> Run:
    """The original, on the first of the referees that can run it."""
    from onward.runners import prepare
    from onward.verification.check import REFEREES

    found: list[Run] = []

    def run(inputs: Inputs) -> Outputs:
        names = [runner] if runner else list(REFEREES)
        while not found:
            name = names.pop(0)
            try:
                one = prepare(name, model)
                outputs = one(inputs)
            except OnwardError:
                if not names:
                    raise
                continue
            found.append(one)
            return outputs
        return found[0](inputs)

    return run
