"""Models of one node as new files have them, and the check that one of an older opset computes the same.

What is expected is what ONNX Runtime computes of the new file, or ONNX's reference where that has no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from onward.canon.opset import at_opset
from onward.model import load

onnxruntime.set_default_logger_severity(4)
RNG = np.random.default_rng(0)
ML = "ai.onnx.ml"


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def ints(*values: Any, dtype: Any = np.int64) -> np.ndarray:
    return np.array(values, dtype)


@dataclass
class New:
    """One node of a file at `opset`, to be written at `target`. `fixed` are the inputs that are constants.

    `open`: the shapes of inputs are left open, their ranks are known. `refused` is a part of the message, where the
    older opset has no words for it.
    """

    op: str
    opset: int
    target: int
    inputs: Sequence[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    fixed: Sequence[int] = ()
    compare: Sequence[int] | None = None
    refused: str = ""
    rtol: float = 1e-6
    open: bool = False
    ml: int = 0
    """The version of `ai.onnx.ml` that the older file has."""

    def __str__(self) -> str:
        attributes = ",".join(f"{k}={v}" for k, v in self.attributes.items() if isinstance(v, int | float | str | list))
        shapes = "x".join("-" if x is None else str(list(np.shape(x))).replace(" ", "") for x in self.inputs)
        return f"{self.op}-{self.opset}-to-{self.target}[{attributes}]{shapes}{'open' if self.open else ''}"

    def feeds(self) -> dict[str, Any]:
        given = enumerate(self.inputs)
        return {f"x{i}": np.asarray(x) for i, x in given if x is not None and i not in self.fixed}

    def model(self) -> onnx.ModelProto:
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, outputs, name="the node", domain=self.domain, **self.attributes)
        infos = [
            helper.make_tensor_value_info(
                name, _type(x), [f"{name}_{i}" for i in range(x.ndim)] if self.open else x.shape
            )
            for name, x in self.feeds().items()
        ]
        fixed = [onnx.numpy_helper.from_array(np.asarray(self.inputs[i]), f"x{i}") for i in self.fixed]
        graph = helper.make_graph([node], "new", infos, [onnx.ValueInfoProto(name=name) for name in outputs], fixed)
        opsets = [helper.make_opsetid(self.domain, self.opset)]
        if self.domain:
            opsets.append(helper.make_opsetid("", 21))
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        return onnx.shape_inference.infer_shapes(model) if not self.domain else model


def _type(x: np.ndarray) -> int:
    return onnx.TensorProto.STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)


def expected(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """On ONNX Runtime, or on the reference where that does not take the new file."""
    try:
        return ran(model, feeds)
    except (
        onnxruntime.capi.onnxruntime_pybind11_state.Fail,
        onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException,
    ):
        return ReferenceEvaluator(model).run(None, feeds)


def ran(model: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    """On ONNX Runtime, or on the reference where that has no kernel."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return ReferenceEvaluator(model).run(None, feeds)
    return session.run(None, feeds)


def moved(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    return at_opset(load(model), target).model.to_proto()


def check(case: New) -> onnx.ModelProto | None:
    new, feeds = case.model(), case.feeds()
    if case.refused:
        with pytest.raises(Exception, match=case.refused) as caught:
            moved(new, case.target)
        assert "the node" in str(caught.value) and "or later" in str(caught.value)
        return None
    old = moved(new, case.target)
    assert next(o.version for o in old.opset_import if not o.domain) == case.target
    assert case.ml in (0, *(o.version for o in old.opset_import if o.domain == ML))
    assert [v.name for v in old.graph.output] == [v.name for v in new.graph.output]
    if all(value.type.tensor_type.HasField("shape") for value in new.graph.output):
        onnx.checker.check_model(old)
    meant, actual = expected(new, feeds), ran(old, feeds)
    for index in case.compare or range(case.outputs):
        same(actual[index], meant[index], case.rtol)
    return old


def same(actual: Any, expected: Any, rtol: float) -> None:
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    if expected.dtype.kind in "OUS":
        assert actual.tolist() == expected.tolist()
    else:
        np.testing.assert_allclose(actual.astype(np.float64), expected.astype(np.float64), rtol=rtol, atol=rtol)


def cases(*tables: Sequence[New]) -> Any:
    rows = [case for table in tables for case in table]
    return pytest.mark.parametrize("case", rows, ids=str)
