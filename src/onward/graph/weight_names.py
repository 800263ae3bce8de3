"""Which constants of a file are weights: names that a person chose, as opposed to those that an exporter made up."""

from __future__ import annotations

import re
from collections.abc import Container
from functools import lru_cache

import onnx_ir as ir

Signature = dict[str, tuple[bool, bool]]
"""A state dict as the exporter wrote it down: name → (is it a buffer, does it persist)."""

_AUTOMATIC = re.compile(
    r"""^(
      .*[:/].*                          # onnx::MatMul_123, /layer1/Relu_output_0, scope/op:0
    | _*\d+ | [su]\d+ | .*_output_\d+ | output_?\d*_?of.*
    | (_*\d+ | val_\d+)_(quantized|scale|zero_point|q)  # what quantizers make of such a name
    | (val|folded|tmp|t|x|const|constant|node|tensor|value|var|scalar|_to_copy|cst|Constant)_?\d*
    | (lifted_tensor|c_lifted_tensor)_?\d*
    | .*_(const|cst|Constant)_?_?\d* | folded_\d+_.*
    | (Constant|Shape|Gather|Concat|Reshape|Slice|Cast|Unsqueeze|const_fold_opt_|int64|_v|fill|axes|shape)_?_?\d+.*
    )$""",
    re.VERBOSE,
)
GRAPH_SIGNATURE = "pkg.torch.export.ExportedProgram.graph_signature"
"""Of a graph's metadata."""
_SIGNATURE = re.compile(r"(PARAMETER|BUFFER) target='([^']*)'(?: persistent=(True|False))?")


@lru_cache(maxsize=65536)
def is_automatic(name: str) -> bool:
    """Whether a name was made up by an exporter rather than chosen by a person."""
    return not name or _AUTOMATIC.match(name) is not None


def signature(graph: ir.Graph) -> Signature:
    """The state dict of the original as torch.export wrote it down."""
    text = graph.metadata_props.get(GRAPH_SIGNATURE, "")
    return {m[2]: (m[1] == "BUFFER", m[3] != "False") for m in _SIGNATURE.finditer(text)}


def is_named(value: ir.Value, state: Signature) -> bool:
    """Whether a constant is a weight that a person gave a name, rather than a number some exporter wrote down."""
    name = value.name or ""
    if not value.is_initializer() or is_automatic(name):
        return False
    if state:
        return name in state or "." in name
    return "." in name or value.shape is None or len(value.shape) > 0


def holds_parameters(state: Signature, held: Container[str]) -> bool:
    """Whether every parameter that an exporter wrote down is there under its name; not where it wrote none down."""
    parameters = [name for name, (is_buffer, _) in state.items() if not is_buffer]
    return bool(parameters) and all(name in held for name in parameters)
