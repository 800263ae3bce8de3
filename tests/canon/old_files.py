"""Models of one node as old files have them, and the check that an upgraded one computes the same.

The expected result is ONNX Runtime's for the old file. For versions that it has no kernel for, a case brings
a numpy formula written from the text of that version (`expect`), and the check makes sure that ONNX Runtime
indeed refuses the old file.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from onward.canon.upgrade import upgrade

RUNTIME_OPSET = 21
"""The opset to upgrade to for a run on ONNX Runtime, which lacks the newest and a few kernels since 22."""

onnxruntime.set_default_logger_severity(4)
RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def ints(*values: Any, dtype: Any = np.int64) -> np.ndarray:
    return np.array(values, dtype)


@dataclass
class Old:
    """One node of an old file. `fixed` are the inputs that are initializers, `compare` the outputs compared.

    `runtime_errs` says in what ONNX Runtime's result for the old file goes against the text of the op, so
    that `expect` stands although it runs.
    """

    op: str
    opset: int
    inputs: Sequence[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1
    domain: str = ""
    fixed: Sequence[int] = ()
    compare: Sequence[int] | None = None
    expect: Callable[..., Any] | None = None
    runtime_errs: str = ""
    rtol: float = 1e-6
    target: int = RUNTIME_OPSET

    def __str__(self) -> str:
        attributes = ",".join(f"{k}={v}" for k, v in self.attributes.items() if not isinstance(v, onnx.GraphProto))
        shapes = "x".join("-" if x is None else str(list(np.shape(x))).replace(" ", "") for x in self.inputs)
        return f"{self.op}-{self.opset}[{attributes}]{shapes}"

    def feeds(self) -> dict[str, np.ndarray]:
        given = enumerate(self.inputs)
        return {f"x{i}": np.asarray(x) for i, x in given if x is not None and i not in self.fixed}

    def model(self, shapes: bool) -> onnx.ModelProto:
        """The old file; without `shapes` not even the ranks of its inputs are known."""
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]
        outputs = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, outputs, name="the node", domain=self.domain, **self.attributes)
        inputs = [
            helper.make_tensor_value_info(name, element_type(x), x.shape if shapes else None)
            for name, x in self.feeds().items()
        ]
        fixed = [onnx.numpy_helper.from_array(np.asarray(self.inputs[i]), f"x{i}") for i in self.fixed]
        infos = [onnx.ValueInfoProto(name=name) for name in outputs]
        opsets = [helper.make_opsetid(self.domain, self.opset)]
        if self.domain:
            opsets.append(helper.make_opsetid("", 13))
        graph = helper.make_graph([node], "old", inputs, infos, fixed)
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def element_type(x: np.ndarray) -> int:
    return onnx.TensorProto.STRING if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype)


def on_runtime(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, feeds)


def upgraded(model: onnx.ModelProto, target: int | None = None) -> onnx.ModelProto:
    result = ir.from_proto(model)
    upgrade(result, target)
    result.ir_version = 10
    return ir.to_proto(result)


def check(case: Old, shapes: bool) -> onnx.ModelProto:
    """Compare the upgraded file with the old one; gives the file of the newest opset."""
    old, feeds = case.model(shapes), case.feeds()
    if case.expect is None:
        expected = on_runtime(old, feeds)
    else:
        if not case.runtime_errs:
            with pytest.raises(Exception):  # noqa: B017
                on_runtime(old, feeds)
        expected = case.expect(*case.inputs)
        expected = list(expected) if isinstance(expected, tuple) else [expected]
    newest = upgraded(old)
    if shapes:
        check_valid(newest, expected)
    try:
        actual = on_runtime(upgraded(old, case.target), feeds)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        actual = ReferenceEvaluator(newest).run(None, feeds)
    for index in case.compare or range(case.outputs):
        same(actual[index], expected[index], case.rtol)
    return newest


def check_valid(model: onnx.ModelProto, results: Sequence[Any]) -> None:
    """The model is valid in the newest opset, and its outputs are inferred to be what they are."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    for output, result in zip(model.graph.output, results, strict=True):
        array = np.asarray(result)
        output.CopyFrom(helper.make_tensor_value_info(output.name, element_type(array), array.shape))
    newest = {"": onnx.defs.onnx_opset_version(), "ai.onnx.ml": 5}
    assert all(opset.version == newest[opset.domain] for opset in model.opset_import)
    onnx.checker.check_model(model, full_check=True)


def same(actual: Any, expected: Any, rtol: float) -> None:
    assert np.shape(actual) == np.shape(expected)
    assert np.asarray(actual).dtype == np.asarray(expected).dtype
    if np.asarray(expected).dtype == object:
        assert np.asarray(actual).tolist() == np.asarray(expected).tolist()
    else:
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol)


def cases(table: Sequence[Old]) -> Any:
    """Each case with the shapes of its inputs known and unknown."""
    rows = [pytest.param(c, s, id=f"{c}-{'shapes' if s else 'unknown'}") for c in table for s in (True, False)]
    return pytest.mark.parametrize(("case", "shapes"), rows)
