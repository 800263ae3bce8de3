"""Parts of a model that stay ONNX."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.torch.target import ops, rule


@rule("onward::OnnxPart")
def onnx_part(e: Emitter, part: Expr, gradient: Expr, *inputs: Expr, results: str) -> list[Expr]:
    found = e.let(ops.onnx_part(part, gradient, results, list(inputs)), "found", kind="object")
    return [found[i] for i in range(len(e.node.outputs))]
