"""Products and normalisations along the channels, which ONNX has channels last only: no transposes around them."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from random_graphs import Graph
from referee import run

from onward.layout.onnx_to_onnx import relaid
from onward.model import Model, load

WIDTH = 6


def weights() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {
        "deep": (WIDTH, 1, 3, 3),
        "scale": (WIDTH,),
        "bias": (WIDTH,),
        "gamma": (WIDTH,),
        "wide": (4 * WIDTH,),
        "up": (WIDTH, 4 * WIDTH),
        "down": (4 * WIDTH, WIDTH),
        "one": (WIDTH, 1),
    }
    made = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    return made | {"places": np.array([1, 2])}


NORM = "n{i} = LayerNormalization<epsilon=0.001>(l{i}, scale, bias)"
BLOCK = NORM + " u{i} = MatMul(n{i}, up) v{i} = Add(u{i}, wide) g{i} = Relu(v{i}) d{i} = MatMul(g{i}, down)"


def network(body: str, result: str, blocks: int = 3, opset: int = 20) -> onnx.ModelProto:
    """As TensorFlow's exporters write a ConvNeXt: NHWC but for the convolutions."""
    lines, last = [], "x"
    for i in range(blocks):
        lines += [
            f"f{i} = Transpose<perm=[0,3,1,2]>({last})",
            f"c{i} = Conv<pads=[1,1,1,1], group={WIDTH}>(f{i}, deep)",
            f"l{i} = Transpose<perm=[0,2,3,1]>(c{i})",
            body.format(i=i),
            f"s{i} = Mul({result.format(i=i)}, gamma)",
            f"x{i} = Add({last}, s{i})",
        ]
        last = f"x{i}"
    made = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : {opset}]> '
        f"g (float[n,8,9,{WIDTH}] x) => (float[n,{WIDTH}] y) "
        f"{{ {' '.join(lines)} y = ReduceSum<keepdims=0>({last}, places) }}"
    )
    used = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(a, k) for k, a in weights().items() if k in used)
    return made


def agree(model: onnx.ModelProto, made: Model, feeds: dict[str, np.ndarray]) -> None:
    for expected, found in zip(run(load(model), feeds).values(), run(made, feeds).values(), strict=True):
        scale = max(1.0, float(np.abs(expected).max())) if expected.size else 1.0
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4 * scale)


def ops(model: onnx.ModelProto) -> Counter[str]:
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 8, 9, WIDTH)).astype(np.float32)}
    made = relaid(load(model), None).model
    agree(model, made, feeds)
    return Counter(node.op_type for node in made.ir.graph)


def test_the_transpose_of_the_input_is_left() -> None:
    found = ops(network(BLOCK, "d{i}"))
    assert found["Transpose"] == 1
    assert found["Conv"] == 9 and not found["MatMul"], "a product along channels is a convolution of size 1"
    assert found["ReduceMean"] == 6 and not found["LayerNormalization"]


def test_a_norm_alone_is_computed_channels_first() -> None:
    found = ops(network(NORM, "n{i}"))
    assert found["Transpose"] == 1 and not found["LayerNormalization"]


def test_a_product_with_one_channel_out() -> None:
    assert ops(network("m{i} = MatMul(l{i}, one)", "m{i}"))["Transpose"] == 1


LEFT_ALONE = {
    "statistics are read": ("n{i}, mean{i} = LayerNormalization(l{i}, scale) d{i} = Add(n{i}, mean{i})", 20),
    "an opset whose means have attributes": (NORM + " d{i} = Relu(n{i})", 17),
    "weights that are computed": ("w{i} = ReduceMax(x, axes) d{i} = LayerNormalization(l{i}, w{i})", 20),
}


@pytest.mark.parametrize(("body", "opset"), LEFT_ALONE.values(), ids=LEFT_ALONE)
def test_left_alone(body: str, opset: int) -> None:
    model = network(body.replace("ReduceMax(x, axes)", "ReduceMax<keepdims=0>(x, axes)"), "d{i}", opset=opset)
    model.graph.initializer.append(numpy_helper.from_array(np.array([0, 1, 2]), "axes"))
    assert ops(model)["LayerNormalization"] == 3


@pytest.mark.parametrize("seed", range(20))
def test_random_graph(seed: int) -> None:
    graph = Graph(7000 + seed, nodes=10 + seed, dynamic=False)
    model = graph.model()
    agree(model, relaid(load(model), None).model, graph.feeds)
