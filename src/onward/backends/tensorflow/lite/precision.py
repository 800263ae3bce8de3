"""Which ops of a TensorFlow Lite file in 8 bits are computed in floats all the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

BETWEEN = {"QUANTIZE", "DEQUANTIZE"}
"""Ops that only go from one to the other."""


def in_floats(path: Path, io: str) -> list[str]:
    """What stayed in floats, a line each: ops, by name and number, and inputs or outputs that are not in `io`."""
    from tensorflow.lite.tools import flatbuffer_utils

    model = flatbuffer_utils.read_model_from_bytearray(bytearray(path.read_bytes()))
    float32 = flatbuffer_utils.schema_fb.TensorType.FLOAT32
    found: Counter[str] = Counter()
    total = 0
    for graph in model.subgraphs:
        constants = {i for i, tensor in enumerate(graph.tensors) if _is_constant(model, tensor)}
        for operator in graph.operators or ():
            name = flatbuffer_utils.opcode_to_name(model, operator.opcodeIndex)
            if name in BETWEEN:
                continue
            total += 1
            ends = [int(i) for i in (*operator.inputs, *operator.outputs) if i >= 0 and i not in constants]
            found[name] += any(graph.tensors[i].type == float32 for i in ends)
    stayed = {name: count for name, count in sorted(found.items()) if count}
    listed = ", ".join(f"{count} {name}" for name, count in stayed.items())
    lines = [
        f"in floats: {sum(stayed.values())} of {total} ops ({listed})" if stayed else f"in floats: none of {total} ops"
    ]
    main = model.subgraphs[0]
    if io != "float32":
        for kind, numbers in (("input", main.inputs), ("output", main.outputs)):
            for tensor in (main.tensors[i] for i in numbers if main.tensors[i].type == float32):
                lines.append(f"in floats: the {kind} {tensor.name.decode(errors='replace')!r}")
    return lines


def _is_constant(model: Any, tensor: Any) -> bool:
    data = model.buffers[tensor.buffer].data
    return data is not None and len(data) > 0
