"""Mixed precision: which ops of a step ONNX Runtime could compute in 16 bits on this processor."""

from __future__ import annotations

from typing import Literal, get_args

from onward.errors import OnwardError, UnsupportedError

Half = Literal["float16", "bfloat16"]
HEAVY = ("MatMul", "Gemm", "Conv")
"""What takes the time of a step."""


def half_kernels(dtype: Half) -> list[str]:
    """Those of the heavy ops that ONNX Runtime has a kernel for; others run in float32 between casts, or not at all."""
    from onnxruntime.capi import onnxruntime_pybind11_state as runtime

    kernels = [k for k in runtime.get_all_opkernel_def() if k.provider == "CPUExecutionProvider"]
    kind = f"tensor({dtype})"
    found = {k.op_name for k in kernels if any(kind in types for types in k.type_constraints.values())}
    return [op for op in HEAVY if not found.isdisjoint({op, f"Fused{op}", f"NhwcFused{op}"})]


def refuse_mixed_precision(dtype: str) -> None:
    """There is nothing to gain, and this says why."""
    if dtype not in get_args(Half):
        raise OnwardError(f"mixed precision is of float16 or bfloat16, not {dtype!r}")
    kernels = half_kernels(dtype)  # type: ignore[arg-type]
    if kernels:
        why = f"ONNX Runtime has kernels of {dtype} for {', '.join(kernels)} here, but Onward does not use them yet"
    else:
        why = (
            f"ONNX Runtime has no kernel of {dtype} for {', '.join(HEAVY)} on this processor: "
            "it would compute in float32 between casts, or not at all"
        )
    raise UnsupportedError(
        f"mixed precision: {why}. Train in float32; `--stash bfloat16` of `onward train run` saves memory"
    )
