"""Models to look into."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from onward.model import Model, load

HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">"


def network(layers: int, width: int = 16) -> Model:
    """Layers with a residual connection, a mask that all of them read, and modules by their names."""
    weights = np.random.default_rng(0).normal(size=(width, width)).astype(np.float32)
    nodes, held, x = [], [], "x"
    for layer in range(layers):
        here = f"/layers.{layer}"
        for part in ("query", "key", "value", "output"):
            held.append(numpy_helper.from_array(weights, f"layers.{layer}.{part}.weight"))

        def node(op: str, inputs: list[str], name: str, **attributes: object) -> str:
            out = f"{name}_output_0"
            nodes.append(helper.make_node(op, inputs, [out], name, **attributes))
            return out

        q, k, v = (
            node("MatMul", [x, f"layers.{layer}.{part}.weight"], f"{here}/attention/{part}/MatMul")
            for part in ("query", "key", "value")
        )
        turned = node("Transpose", [k], f"{here}/attention/Transpose", perm=[0, 2, 1])
        scores = node("MatMul", [q, turned], f"{here}/attention/MatMul")
        masked = node("Add", [scores, "mask"], f"{here}/attention/Add")
        chosen = node("Softmax", [masked], f"{here}/attention/Softmax", axis=-1)
        mixed = node("MatMul", [chosen, v], f"{here}/attention/MatMul_1")
        out = node("MatMul", [mixed, f"layers.{layer}.output.weight"], f"{here}/output/MatMul")
        x = node("Add", [x, out], f"{here}/Add")
    nodes.append(helper.make_node("Identity", [x], ["y"], "/Identity"))
    shape = ["batch", 4, width]
    return built(nodes, {"x": shape, "mask": ["batch", 4, 4]}, {"y": shape}, held)


def with_bodies() -> Model:
    """An If whose branches read what is outside, and a function."""
    text = """<ir_version: 8, opset_import: ["" : 17, "local" : 1], metadata_props: ["author": "someone"]>
    agraph (float[2] x, bool flag) => (float[2] z)
    <float[2] w = {1.5, -2.0}>
    {
        y = Mul(x, w)
        b = If (flag) <
            then_branch = then_graph () => (float[2] t) { t = Relu(y) },
            else_branch = else_graph () => (float[2] e) { k = Constant<value = float[2] {3.0, 4.0}>() e = Add(x, k) }
        >
        z = local.twice(b)
    }
    <domain: "local", opset_import: ["" : 17]>
    twice (a) => (c) { c = Add(a, a) }
    """
    return load(onnx.parser.parse_model(text))


def hostile() -> Model:
    """Every text that a file can hold is an attempt to break out of the page."""
    held = [numpy_helper.from_array(np.ones((2, 2), np.float32), HOSTILE + "w")]
    inputs = [HOSTILE + "x", HOSTILE + "w"]
    node = helper.make_node(HOSTILE, inputs, [HOSTILE], HOSTILE, domain="bad", doc_string=HOSTILE)
    node.attribute.append(helper.make_attribute("a", HOSTILE))
    model = built([node], {HOSTILE + "x": [HOSTILE, 2]}, {HOSTILE: [2, 2]}, held, {"bad": 1})
    model.ir.metadata_props[HOSTILE] = HOSTILE
    model.ir.doc_string = HOSTILE
    return model


def built(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, list[int | str]],
    outputs: dict[str, list[int | str]],
    held: list[TensorProto],
    domains: dict[str, int] | None = None,
) -> Model:
    def declared(values: dict[str, list[int | str]]) -> list[onnx.ValueInfoProto]:
        return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in values.items()]

    graph = helper.make_graph(nodes, "net", declared(inputs), declared(outputs), held)
    opsets = [helper.make_opsetid(domain, version) for domain, version in {"": 17, **(domains or {})}.items()]
    return load(helper.make_model(graph, opset_imports=opsets, ir_version=8))
