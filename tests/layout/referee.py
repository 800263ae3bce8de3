"""Runs a model as it is and after the pass, on ONNX Runtime, and compares."""

from collections.abc import Iterable

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime

from onward.graph.infer import infer
from onward.layout.channels_last import Moved, to_channels_last
from onward.layout.roles import DOMAIN, TENSORFLOW, Roles
from onward.layout.standard import to_standard
from onward.model import Model, load
from onward.passes.pipelines import canonical

onnxruntime.set_default_logger_severity(4)
Arrays = dict[str, np.ndarray]
NEWEST = 26
"""The newest opset that ONNX Runtime reads; what canonical form has beyond it is the same for these ops."""


OF_PYTORCH = ("DynamicConv", "DynamicLinear", "Int8Conv", "Int8Linear", "Rounded")
"""Layers that no backend with channels last has a rule for."""


def run(model: Model, feeds: Arrays) -> Arrays:
    """On ONNX Runtime with all optimisations off: it has transposes of its own to move."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    proto = model.to_proto()
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, ["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def transposes(model: ir.Model) -> int:
    return sum(node.op_type == "Transpose" and node.domain == "" for node in model.graph)


def image_ops(model: ir.Model) -> list[str]:
    return [node.op_type for node in model.graph if node.domain == DOMAIN]


def channels_last(
    model: Model | onnx.ModelProto | str,
    inputs: Iterable[str] = (),
    outputs: Iterable[str] = (),
    roles: Roles = TENSORFLOW,
    canon: bool = False,
) -> tuple[ir.Model, Moved]:
    loaded = load(model)
    if canon:
        made = canonical(loaded, lambda op: op.removeprefix("onward::") not in OF_PYTORCH)
    else:
        made = loaded.ir.clone()
        infer(made)
    return made, to_channels_last(made, roles, set(inputs), set(outputs))


def runnable(made: ir.Model) -> Model:
    """With standard ops, and with every shape as the pass left it checked by inference anew."""
    copy = made.clone()
    to_standard(copy)
    _spell_out(copy.graph)
    copy.opset_imports[""] = min(copy.opset_imports.get("", NEWEST), NEWEST)
    check_shapes(copy)
    return Model(copy)


def _spelled_out(node: ir.Node) -> list[ir.Node]:
    """The ops of canonical form that ONNX Runtime lacks, as far as these models have them."""
    x, *others = node.inputs
    if node.op_type == "Swish":
        scaled = ir.Node("", "Mul", [x, _scalar(node.attributes.get_float("alpha", 1.0))])
        sigmoid = ir.Node("", "Sigmoid", scaled.outputs)
        return [scaled.inputs[1].producer(), scaled, sigmoid, ir.Node("", "Mul", [x, sigmoid.outputs[0]])]
    assert node.op_type == "Linear", node.op_type
    weight, *bias = others
    made = []
    if not node.attributes.get_int("transposed", 0):
        made.append(ir.Node("", "Transpose", [weight], [ir.AttrInt64s("perm", [1, 0])]))
        weight = made[0].outputs[0]
    made.append(ir.Node("", "MatMul", [x, weight]))
    return [*made, ir.Node("", "Add", [made[-1].outputs[0], *bias])] if bias else made


def _scalar(number: float) -> ir.Value:
    return ir.Node("", "Constant", [], [ir.AttrFloat32("value_float", number)]).outputs[0]


def _spell_out(graph: ir.Graph) -> None:
    for node in [node for node in graph if node.domain == "onward" or node.op_type == "Swish"]:
        made = _spelled_out(node)
        made[-1].outputs[0].name, node.outputs[0].name = node.outputs[0].name, None
        graph.insert_before(node, made)
        node.outputs[0].replace_all_uses_with(made[-1].outputs[0], replace_graph_outputs=True)
        graph.remove(node, safe=True)


def check_shapes(made: ir.Model) -> None:
    """What the pass says of shapes is what follows from inputs and weights."""
    fresh = made.clone()
    infer(fresh)
    for node, again in zip(made.graph, fresh.graph, strict=True):
        for value, other in zip(node.outputs, again.outputs, strict=True):
            if value.shape is None or other.shape is None:
                continue
            assert len(value.shape) == len(other.shape), f"{value.name}: {value.shape} is {other.shape}"
            for a, b in zip(value.shape, other.shape, strict=True):
                assert a == b or not (isinstance(a, int) and isinstance(b, int)), f"{value.name}: {value.shape}, {b}"


def check(
    model: Model | onnx.ModelProto | str,
    feeds: Arrays,
    inputs: Iterable[str] = (),
    outputs: Iterable[str] = (),
    canon: bool = False,
    roles: Roles = TENSORFLOW,
    tolerance: float = 1e-5,
) -> ir.Model:
    """The result of the pass, which computes the same as the model on ONNX Runtime."""
    loaded = load(model)
    made, moved = channels_last(loaded, inputs, outputs, roles, canon)
    fed = {name: x.transpose(moved.inputs.get(name, range(x.ndim))) for name, x in feeds.items()}
    expected, actual = run(loaded, feeds), run(runnable(made), fed)
    assert list(expected) == list(actual)
    for name, wanted in expected.items():
        found = actual[name].transpose(np.argsort(moved.outputs.get(name, range(wanted.ndim))))
        assert found.shape == wanted.shape and found.dtype == wanted.dtype, name
        scale = max(1.0, float(np.abs(wanted).max())) if wanted.size and wanted.dtype.kind == "f" else 1.0
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * scale, err_msg=name)
    return made
