"""Whether compiled kernels work with the ONNX Runtime at hand, tried once for each version of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import onnx_ir as ir

from onward.training.native.compiler import compiler, marker
from onward.training.native.fusion import fused

OLDEST = (1, 18)
"""The first ONNX Runtime whose table has all that is needed."""


def with_kernels(model: ir.Model, own: Mapping[str, str] | None = None) -> tuple[ir.Model, Path] | None:
    """A model that runs on compiled kernels, and their library; None where it has to run as it is.

    `own`: the C of kernels that the model has already, by name; it is changed itself then.
    """
    return fused(model, own) if compiler() is not None and works() else None


@cache
def works() -> bool:
    """Asks another process, since a table that is not as expected would end this one; the answer is remembered."""
    import onnxruntime

    version = tuple(int(part) for part in onnxruntime.__version__.split(".")[:2] if part.isdigit())
    found = fused(sample()) if version >= OLDEST else None
    if found is None:
        return False
    mark = marker(f"{found[1].name} {onnxruntime.__version__} {onnxruntime.__file__} {sys.version}")
    if not mark.exists():
        command = [sys.executable, "-c", f"from {__name__} import main; main()"]
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
        if done.returncode != 0:
            return False
        mark.touch()
    return True


def sample() -> ir.Model:
    """A graph with all that kernels do: elements, broadcasting, sums by row and over rows, and steps of a Scan."""
    from onward.graph.build import Builder
    from onward.graph.scan import scan

    graph = ir.Graph([], [], nodes=[], name="sample", opset_imports={"": 21})
    model = ir.Model(graph, ir_version=10)
    op = Builder(model)
    kind = ir.TensorType(ir.DataType.FLOAT)
    x = ir.Value(name="x", type=kind, shape=ir.Shape(["n", 300]))
    b = ir.Value(name="b", type=kind, shape=ir.Shape([300]))
    rows = ir.Value(name="rows", type=kind, shape=ir.Shape([5, "n", 300]))
    graph.inputs.extend([x, b, rows])
    product = op.tensor(x) * op.tensor(b)
    result = op.where(product > 0, op.Exp(product), product) - op.sum(product, [1])
    matrix = op.constant(np.eye(300, dtype=np.float32)[::-1] / 2)
    steps = scan(op, lambda s, r: ([op.Tanh(s[0] @ matrix + r[0])], [s[0] * 2]), [op.tensor(x)], [op.tensor(rows)])
    for tensor in (result, op.sum(result, [0], keepdims=False), *steps):
        graph.outputs.append(tensor.value)
    return model


def main() -> None:
    """Compare the two ways of computing the sample; an error is an exit code."""
    import onnxruntime

    from onward.model import Model

    found = fused(sample())
    assert found is not None
    given = np.random.default_rng(0).normal(size=(500, 300)).astype(np.float32)
    feeds = {"x": given, "b": given[0], "rows": given * np.arange(1, 6, dtype=np.float32).reshape(5, 1, 1)}
    results = []
    for model, path in ((sample(), None), found):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        if path is not None:
            options.register_custom_ops_library(str(path))
        session = onnxruntime.InferenceSession(Model(model).to_proto().SerializeToString(), options)
        results.append(session.run(None, feeds))
    for ours, plain in zip(*results, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-4, atol=1e-3)
