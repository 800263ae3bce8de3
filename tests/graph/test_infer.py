"""Types and shapes follow from inputs and weights, not from what the file says about values in between."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import parser

from onward.graph.infer import infer
from onward.model import load

IR = 'ir_version: 10, opset_import: ["" : 23, "com.example" : 1]'


def inferred(text: str) -> dict[str, ir.Value]:
    model = load(parser.parse_model(f"<{IR}> {text}")).ir
    infer(model)
    values = [v for graph in model.graphs() for v in (*graph.inputs, *graph.initializers.values())]
    values += [o for node in model.graph.all_nodes() for o in node.outputs]
    return {v.name: v for v in values if v.name}


def shape(value: ir.Value) -> list[int | str | None] | None:
    return None if value.shape is None else [d if isinstance(d, int) else d.value for d in value.shape]


def test_value_infos_of_the_file_are_not_believed() -> None:
    found = inferred("g (float[2, N] x) => (float[7] y) <float[5, 5] a> { a = Relu(x)  y = Transpose(a) }")
    assert shape(found["a"]) == [2, "N"]
    assert shape(found["y"]) == ["N", 2]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y = Reshape(x, s)", ["N", 6, 4]),
        ("t = Shape(x)  y = Expand(one, t)", ["N", 6, 4]),
        ("t = Shape(x)  y = ConstantOfShape(t)", ["N", 6, 4]),
        ("t = Shape<start = 0, end = 1>(x)  u = Concat<axis = 0>(t, minus)  y = Reshape(x, u)", ["N", 24]),
        ("t = Shape(x)  i = Constant<value_int = 1>()  n = Gather(t, i)  m = Div(n, two)"
         "  u = Concat<axis = 0>(minus, m)  y = Reshape(x, u)", [None, 3]),
        ("t = Shape(x)  five = Constant<value_ints = [5]>()  i = Mod(five, two)  k = Slice(t, zero, i)"
         "  u = Concat<axis = 0>(k, minus)  y = Reshape(x, u)", ["N", 24]),
        ("t = Shape(x)  y = Slice(x, zero, two, two)", ["N", 6, 2]),
        ("a, y = Split<axis = 1, num_outputs = 2>(x)", ["N", 3, 4]),
    ],
)  # fmt: skip
def test_numbers_are_followed_through_the_graph(text: str, expected: list[int | str | None]) -> None:
    graph = f"""g (float[N, 6, 4] x) => (float[] y)
        <int64[3] s = {{0, -1, 4}}, float one = {{1}},
         int64[1] minus = {{-1}}, int64[1] zero = {{0}}, int64[1] two = {{2}}>
        {{ {text} }}"""
    found = inferred(graph)["y"]
    assert found.dtype == ir.DataType.FLOAT
    assert shape(found) == expected


def test_a_part_of_a_dimension_is_not_called_like_the_whole() -> None:
    text = "g (float[N, K] x) => (float[] y) <int64[1] one = {1}, int64[1] end = {9}> { y = Slice(x, one, end, one) }"
    made = load(parser.parse_model(f'<ir_version: 5, opset_import: ["" : 10]> {text}')).ir
    infer(made)
    assert shape(made.graph.outputs[0]) == ["N", None]


def test_zero_sizes_of_inputs_are_unknown() -> None:
    assert shape(inferred("g (float[0, 3] x) => (float[] y) { y = Relu(x) }")["y"]) == [None, 3]


def test_a_node_that_is_wrong_harms_no_other() -> None:
    found = inferred("g (float[2, 3] x, float[2] b) => (float[] y) { m = MatMul(x, x)  y = Add(b, b) }")
    assert found["m"].dtype == ir.DataType.FLOAT and found["m"].shape is None
    assert shape(found["y"]) == [2]


def test_outputs_of_unknown_ops_are_as_declared() -> None:
    found = inferred("g (float[2] x) => (float[] y) <float[3, N] u> { u = com.example.Mystery(x)  y = Relu(u) }")
    assert shape(found["y"]) == [3, "N"]


LOOP = """g (float[2, 3] x, int64 n) => (float[] y, float[] rows) {{
    go = Constant<value = bool {{1}}>()
    y, rows = Loop(n, go, x) <body = b (int64 i, bool c, float[9] s) => (bool d, float[] t, float[] row) {{
        d = Identity(c)
        {body}
        row = ReduceSum<keepdims = 0>(t)
    }}>
}}"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("t = Relu(s)", [2, 3]),
        ("t = Concat<axis = 0>(s, s)", [None, 3]),
        ("t = Transpose(s)", [None, None]),
        ("z = Constant<value_ints = [0]>()  t = Unsqueeze(s, z)", None),
    ],
)
def test_a_loop_knows_only_what_stays_true(body: str, expected: list[int | None] | None) -> None:
    found = inferred(LOOP.format(body=body))
    assert shape(found["y"]) == shape(found["s"]) == expected
    assert shape(found["rows"]) == (None if expected is None else [None])


def test_both_branches_of_an_if_count() -> None:
    found = inferred(
        """g (bool c, float[2, 3] x, float[4, 3] z) => (float[] y) {
            y = If(c) <then_branch = a () => (float[] p) { p = Relu(x) },
                       else_branch = b () => (float[] q) { q = Relu(z) }>
        }"""
    )
    assert shape(found["y"]) == [None, 3]


@pytest.mark.parametrize(
    ("op", "of_x", "of_result"),
    [
        ("Conv(x, w)", [None] * 3, [None, 6, None]),
        ("Conv(z, x)", [None] * 3, [None] * 3),
        ("ConvTranspose(x, w)", [None] * 3, [None] * 3),
        ("MaxPool<kernel_shape = [2, 2]>(x)", [None] * 4, [None] * 4),
        ("Conv(x, u)", None, None),
    ],
)
def test_a_window_gives_its_rank_to_tensors_of_unknown_rank(
    op: str, of_x: list[None] | None, of_result: list[int | None] | None
) -> None:
    found = inferred(
        f"""g (bool c, float[2, 4, 5] z, float[6, 4, 3] w) => (float[] y) {{
            u = If(c) <then_branch = a () => (float p) {{ p = Relu(z) }},
                       else_branch = b () => (float q) {{ q = ReduceSum<keepdims = 0>(z) }}>
            x = Abs(u)  y = {op}
        }}"""
    )
    assert found["u"].shape is None or op == "Conv(x, u)"
    assert (shape(found["x"]), shape(found["y"])) == (of_x, of_result)


def test_half_a_shape_is_not_believed() -> None:
    """ONNX's function for ConvTranspose stops after the channels where an axis is to become shorter."""
    found = inferred(
        "g (float[1, 6, 2, 5] x, float[6, 3, 2, 4] w) => (float[] y) { y = ConvTranspose<output_shape = [1, 8]>(x, w) }"
    )
    assert shape(found["y"]) == [None, None, None, None]


def test_a_rank_that_holds_in_one_branch_only_is_not_believed() -> None:
    found = inferred(
        """g (bool c, float[2, 4, 5] z, float[6, 4, 3] w) => (float[] y) {
            u = If(c) <then_branch = a () => (float p) { p = Relu(z) },
                       else_branch = b () => (float q) { q = ReduceSum<keepdims = 0>(z) }>
            y = If(c) <then_branch = d () => (float r) { r = Conv(u, w) },
                       else_branch = e () => (float s) { s = Relu(u) }>
        }"""
    )
    assert found["u"].shape is None and shape(found["r"]) == [None, 6, None]


def test_attention_of_unknown_length_has_no_made_up_sizes() -> None:
    found = inferred(
        "g (float[2, 3, 4, 8] q, float[2, 3, N, 8] k, float[2, 3, N, 8] v) => (float[] y, float[] s)"
        " { y, p, r, s = Attention(q, k, v) }"
    )
    assert found["s"].shape is None or 0 not in found["s"].shape.dims


def test_weights_are_typed_by_their_data() -> None:
    weight = onnx.numpy_helper.from_array(np.ones((3, 4), np.float16), "w")
    proto = parser.parse_model(f"<{IR}> g (float16[N, 3] x) => (float16[] y) {{ y = MatMul(x, w) }}")
    proto.graph.initializer.append(weight)
    model = load(proto).ir
    infer(model)
    assert shape(model.graph.outputs[0]) == ["N", 4]


def test_an_input_with_a_default_may_be_given_in_other_sizes() -> None:
    values = inferred(
        "g (float[n,1] x, float[m,1] d) => (float[a,b] y) <float[1,1] d = {1}> { y = Concat <axis=0> (x, d) }"
    )
    assert shape(values["d"]) == ["m", 1] and shape(values["y"]) in ([None, 1], ["n + m", 1], ["m + n", 1])
