"""Which options go together, and which the target has no use for."""

from __future__ import annotations

from onward.advice.options import option
from onward.backends.backend import Backend, Format, formats
from onward.conversion.bits import check_bits
from onward.conversion.inputs import check_data
from onward.conversion.parts import check_part
from onward.conversion.request import Request
from onward.errors import OnwardError
from onward.plugins.advice import divided

ONNX = "onnx"
OF_THE_CHECK = ("verify_on", "inputs", "atol", "rtol", "quick", "keep", "report")
"""Options that say how the result is checked."""
OF_ONNX = frozenset({"quantize", "calibrate", "io"})
"""What files of a framework and of ONNX take alike."""


def check_options(request: Request, found: tuple[Backend, Format] | None) -> None:
    """Refuse options that the format has no use for."""
    check_part(request.part)
    check_bits(request)
    if found is not None and request.ir_version is not None:
        raise OnwardError(f"{option('ir_version')} is for {option('to')} {ONNX}")
    if found is not None and request.simplify:
        raise OnwardError(f"{option('simplify', True)} is for {option('to')} {ONNX}")
    if request.without and not request.simplify:
        raise OnwardError(f"{option('without')} is for {option('simplify', True)}")
    if found is None and request.dims and not request.simplify:
        raise OnwardError(f"{option('dims')} is for conversions to a framework, and for {option('simplify', True)}")
    takes = OF_ONNX if found is None else found[1].takes
    takers: dict[str, list[str]] = {}
    for name, (_, form) in formats().items():
        for wish in form.takes:
            takers.setdefault(wish, []).append(name)
    for wish in sorted(takers.keys() - takes):
        if request.is_given(wish):
            advice = "; `onward layout` moves axes in ONNX files" if wish.endswith("_nhwc") else ""
            if wish == "fallback" and found is not None:
                advice = f": what else is written cannot hold ONNX Runtime; {divided(found[0].name)}"
            raise OnwardError(f"{option(wish)} is for {option('to')} {', '.join(takers[wish])}{advice}")
    if not request.verify and (idle := [name for name in OF_THE_CHECK if request.is_given(name)]):
        raise OnwardError(f"{option(idle[0])} is for the check, which {option('verify', False)} leaves out")
    check_data(request.inputs)
    if request.quantize == "int8" and request.calibrate is None:
        raise OnwardError(
            f"{option('quantize', 'int8')} needs calibration data: give {option('calibrate', 'data.npz')}"
        )
    if found is not None and request.is_given("io") and request.quantize != "int8":
        raise OnwardError(
            f"{option('io', request.io)} is for models in 8 bits: give {option('quantize', 'int8')} as well"
        )
    if found is not None:
        found[1].check_place(request.out, request.force)
