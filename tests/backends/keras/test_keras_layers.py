"""Which layers of Keras nodes become: those that mean exactly the same, and none where there is none."""

import importlib.util
import re
from typing import Any

import numpy as np
import onnx
import pytest
from harness import check, floats, node_model, text_model

from onward.model import load

if importlib.util.find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)
from onward.backends.keras.convert import generate

Case = tuple[onnx.ModelProto, list[np.ndarray]]
IMAGE, WIDE, VOLUME, LINE = (2, 4, 9, 8), (2, 3, 12, 10), (1, 2, 6, 7, 5), (2, 3, 11)

DOUBLES = floats(3, 4, dtype=np.float64)


def layers_of(model: onnx.ModelProto) -> list[str]:
    """The kinds of layers that are made, our own as `own`, but for changes of layout at the ends."""
    made = generate(load(model)).model.partition("def build()")[2]
    found = re.findall(r"= (?:layers\.(\w+)|(\w+))\(", made)
    return [kind or "own" for kind, _ in found if kind not in ("Permute", "Reshape")]


def node(op: str, *inputs: Any, fixed: tuple[int, ...] = (), opset: int = 21, **attributes: Any) -> Case:
    return node_model(op, list(inputs), fixed=fixed, opset=opset, **attributes)


def conv(x: tuple[int, ...], w: tuple[int, ...], bias: bool = True, **attributes: Any) -> Case:
    given = [floats(*x), floats(*w), *([floats(w[0], seed=1)] if bias else [])]
    return node("Conv", *given, fixed=(1, 2)[: len(given) - 1], **attributes)


def turned(x: tuple[int, ...], w: tuple[int, ...], **attributes: Any) -> Case:
    return node("ConvTranspose", floats(*x), floats(*w), floats(w[1]), fixed=(1, 2), **attributes)


def resize(factors: list[float], x: tuple[int, ...] = IMAGE, **attributes: Any) -> Case:
    return node("Resize", floats(*x), None, np.array([1, 1, *factors], np.float32), fixed=(2,), **attributes)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


def normalised(op: str, *shape: int, of: int = 2, **attributes: Any) -> Case:
    weights = [floats(shape[1], seed=i + 1) for i in range(of)]
    if of == 4:
        weights[3] = np.abs(weights[3]) + 0.5
    return node(op, floats(*shape), *weights, fixed=tuple(range(1, of + 1)), **attributes)


CASES: dict[str, tuple[list[str], Case]] = {
    "conv same": (["Conv2D"], conv(IMAGE, (5, 4, 3, 3), pads=[1] * 4)),
    "conv valid strides": (["Conv2D"], conv(IMAGE, (5, 4, 3, 2), strides=[2, 1])),
    "conv padded": (["ZeroPadding2D", "Conv2D"], conv(IMAGE, (5, 4, 3, 3), False, pads=[1] * 4, strides=[2, 2])),
    "conv uneven": (["ZeroPadding2D", "Conv2D"], conv(IMAGE, (5, 4, 2, 3), pads=[0, 1, 1, 2])),
    "conv dilated": (["Conv2D"], conv(IMAGE, (5, 4, 3, 3), dilations=[2, 2], pads=[2] * 4)),
    "conv dilated and strided": (["own"], conv(IMAGE, (5, 4, 3, 3), dilations=[2, 2], strides=[2, 2])),
    "conv upper": (["Conv2D"], conv(IMAGE, (5, 4, 4, 3), auto_pad="SAME_UPPER", strides=[2, 2])),
    "conv lower": (["ZeroPadding2D", "Conv2D"], conv(IMAGE, (5, 4, 4, 3), auto_pad="SAME_LOWER", strides=[2, 2])),
    "conv groups": (["own"], conv(IMAGE, (6, 2, 3, 3), group=2)),
    "conv depthwise": (["DepthwiseConv2D"], conv(IMAGE, (4, 1, 3, 3), group=4, pads=[1] * 4)),
    "conv depthwise twice": (["DepthwiseConv2D"], conv(IMAGE, (8, 1, 3, 3), group=4, strides=[2, 2])),
    "conv line": (["Conv1D"], conv(LINE, (5, 3, 3), pads=[1, 1])),
    "conv volume": (["ZeroPadding3D", "Conv3D"], conv(VOLUME, (3, 2, 2, 3, 2), pads=[1, 1, 0, 1, 1, 1])),
    "transposed": (["Conv2DTranspose"], turned(IMAGE, (4, 3, 2, 2), strides=[2, 2])),
    "transposed same": (["Conv2DTranspose"], turned(IMAGE, (4, 3, 4, 4), strides=[2, 2], pads=[1] * 4)),
    "transposed uneven": (["own"], turned(IMAGE, (4, 3, 3, 3), strides=[2, 2], pads=[1] * 4, output_padding=[1, 1])),
    "transposed gaps": (["own"], turned(IMAGE, (4, 3, 2, 2), strides=[3, 3])),
    "transposed line": (["Conv1DTranspose"], turned(LINE, (3, 2, 3), strides=[2])),
    "transposed volume": (["Conv3DTranspose"], turned(VOLUME, (2, 3, 2, 2, 2), strides=[2] * 3)),
    "max pool": (["MaxPooling2D"], node("MaxPool", floats(*IMAGE), kernel_shape=[2, 2], strides=[2, 2])),
    "max pool same": (["MaxPooling2D"], node("MaxPool", floats(*IMAGE), kernel_shape=[5, 5], pads=[2] * 4)),
    "max pool padded": (
        ["own"],
        node("MaxPool", floats(*IMAGE) - 3, kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]),
    ),
    "max pool ceil": (["own"], node("MaxPool", floats(*IMAGE), kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)),
    "average": (["AveragePooling2D"], node("AveragePool", floats(*IMAGE), kernel_shape=[3, 2], strides=[2, 2])),
    "average same": (["AveragePooling2D"], node("AveragePool", floats(*IMAGE), kernel_shape=[3, 3], pads=[1] * 4)),
    "average of zeros too": (
        ["ZeroPadding2D", "AveragePooling2D"],
        node("AveragePool", floats(*IMAGE), kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2], count_include_pad=1),
    ),
    "average of what is there": (
        ["own"],
        node("AveragePool", floats(*IMAGE), kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2]),
    ),
    "pool line": (["AveragePooling1D"], node("AveragePool", floats(*LINE), kernel_shape=[3], strides=[2])),
    "pool volume": (["MaxPooling3D"], node("MaxPool", floats(*VOLUME), kernel_shape=[2] * 3, strides=[2] * 3)),
    "global average": (["GlobalAveragePooling2D"], node("GlobalAveragePool", floats(*IMAGE))),
    "global max": (["GlobalMaxPooling1D"], node("GlobalMaxPool", floats(*LINE))),
    "mean": (
        ["GlobalAveragePooling1D"],
        node("ReduceMean", floats(*LINE), ints(1), fixed=(1,), keepdims=0),
    ),
    "mean of rows": (["own"], node("ReduceMean", floats(*LINE), ints(2), fixed=(1,), keepdims=0)),
    "batch norm": (["BatchNormalization"], normalised("BatchNormalization", *IMAGE, of=4, momentum=0.8, epsilon=1e-3)),
    "batch norm of rows": (["BatchNormalization"], normalised("BatchNormalization", 5, 4, of=4)),
    "group norm": (["GroupNormalization"], normalised("GroupNormalization", *IMAGE, num_groups=2)),
    "instance norm": (["GroupNormalization"], normalised("InstanceNormalization", *IMAGE)),
    "layer norm": (
        ["LayerNormalization"],
        node("LayerNormalization", floats(2, 3, 5), floats(5), floats(5, seed=1), fixed=(1, 2), epsilon=1e-6),
    ),
    "layer norm of two": (
        ["LayerNormalization"],
        node("LayerNormalization", floats(2, 3, 5), floats(3, 5), fixed=(1,), axis=1),
    ),
    "layer norm of a number": (
        ["own"],
        node("LayerNormalization", floats(2, 3, 5), floats(1), fixed=(1,)),
    ),
    "gemm": (["Dense"], node("Gemm", floats(3, 4), floats(5, 4), floats(5), fixed=(1, 2), transB=1)),
    "gemm half": (["own"], node("Gemm", floats(3, 4), floats(4, 5), floats(5), fixed=(1, 2), alpha=0.5)),
    "matmul": (["Dense"], node("MatMul", floats(2, 3, 4), floats(4, 5), fixed=(1,))),
    "matmul double": (
        ["Dense"],
        node("MatMul", floats(3, 4, dtype=np.float64), floats(4, 5, dtype=np.float64), fixed=(1,)),
    ),
    "relu": (["ReLU"], node("Relu", floats(2, 9))),
    "relu double": (["ReLU"], node("Relu", DOUBLES)),
    "relu half": (["own"], node("Relu", floats(2, 9, dtype=np.float16))),
    "relu6": (["ReLU"], node("Clip", floats(2, 9) * 5, np.float32(0), np.float32(6), fixed=(1, 2))),
    "clip": (["own"], node("Clip", floats(2, 9) * 5, np.float32(-1), np.float32(6), fixed=(1, 2))),
    "leaky relu": (["LeakyReLU"], node("LeakyRelu", floats(2, 9), alpha=0.1)),
    "elu": (["ELU"], node("Elu", floats(2, 9), alpha=0.7)),
    "selu": (["Activation"], node("Selu", floats(2, 9))),
    "selu of another kind": (["own"], node("Selu", floats(2, 9), alpha=1.5)),
    "hard sigmoid": (["Activation"], node("HardSigmoid", floats(2, 9) * 4, alpha=1 / 6)),
    "hard sigmoid of ONNX": (["own"], node("HardSigmoid", floats(2, 9) * 4)),
    "hard swish": (["Activation"], node("HardSwish", floats(2, 9) * 4)),
    "mish": (["Activation"], node("Mish", floats(2, 9))),
    "softplus": (["Activation"], node("Softplus", floats(2, 9) * 20)),
    "gelu": (["Activation"], node("Gelu", floats(2, 9) * 3)),
    "gelu by tanh": (["own"], node("Gelu", floats(2, 9) * 3, approximate="tanh")),
    "softmax": (["Softmax"], node("Softmax", floats(2, 3, 5), axis=1)),
    "prelu": (["PReLU"], node("PRelu", floats(*IMAGE), floats(4, 1, 1), fixed=(1,))),
    "dropout": (["Dropout"], node("Dropout", floats(2, 9), np.float32(0.3), fixed=(1,))),
    "add": (["Add"], node("Add", floats(2, 3, 4), floats(2, 3, 4, seed=1))),
    "add stretched": (["Multiply"], node("Mul", floats(2, 3, 4), floats(2, 1, 4, seed=1))),
    "add of other ranks": (["own"], node("Add", floats(2, 3, 3), floats(3, 3, seed=1))),
    "add of other batches": (["own"], node("Sub", floats(2, 3), floats(1, 3, seed=1))),
    "subtract": (["Subtract"], node("Sub", floats(2, 3), floats(2, 3, seed=1))),
    "sum": (["Add"], node("Sum", floats(2, 3), floats(2, 3, seed=1), floats(2, 3, seed=2))),
    "integers": (["own"], node("Add", ints(1, 2), ints(3, 4))),
    "concat": (["Concatenate"], node("Concat", floats(2, 3, 4), floats(2, 2, 4), axis=1)),
    "concat of batches": (["own"], node("Concat", floats(2, 3), floats(1, 3), axis=0)),
    "flatten": (["Flatten"], node("Flatten", floats(2, 3, 4))),
    "pad": (["ZeroPadding1D"], node("Pad", floats(2, 3, 4), ints(0, 1, 0, 0, 2, 0), fixed=(1,))),
    "pad of ones": (["own"], node("Pad", floats(2, 3, 4), ints(0, 1, 0, 0, 2, 0), np.float32(1), fixed=(1, 2))),
    "embedding": (["Embedding"], node("Gather", floats(7, 3), ints(0, 6, -1, -7), fixed=(0,))),
    "rows by number": (["own"], node("Gather", floats(7, 3), ints(0, 6, 3))),
    "up by repeating": (
        ["UpSampling2D"],
        resize([2, 3], nearest_mode="floor", coordinate_transformation_mode="asymmetric"),
    ),
    "up as ONNX has it": (["UpSampling2D"], resize([3, 3])),
    "up by ceiling": (["own"], resize([2, 2], nearest_mode="ceil", coordinate_transformation_mode="asymmetric")),
    "up linearly": (["UpSampling2D"], resize([2, 2], mode="linear")),
    "up by corners": (
        ["own"],
        resize([2, 2], mode="linear", coordinate_transformation_mode="align_corners"),
    ),
    "up by a half": (["own"], resize([1.5, 1.5], mode="linear")),
    "down": (["own"], resize([0.5, 0.5])),
}


@pytest.mark.parametrize("name", CASES)
def test_layer(name: str) -> None:
    wanted, (model, inputs) = CASES[name]
    assert [kind for kind in layers_of(model) if kind != "own" or "own" in wanted] == wanted
    check(model, inputs, unknown=False, backends=["keras"], rtol=1e-4)


def test_padding_of_a_maximum_is_zeros_where_nothing_is_below() -> None:
    model = text_model(
        """<ir_version: 9, opset_import: ["": 17]> g (float[n, 3, 9, 8] x) => (float[n, 3, h, w] y) {
            r = Relu(x)
            y = MaxPool<kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]>(r)
        }"""
    )
    assert layers_of(model) == ["ReLU", "ZeroPadding2D", "MaxPooling2D"]
    check(model, [floats(2, 3, 9, 8)], unknown=False, backends=["keras"])


def test_terms_of_which_there_may_be_none_are_no_bias() -> None:
    """Keras's layer takes rows for a bias, and fails where there are none, as with boxes of which none was found."""
    model = text_model(
        """<ir_version: 9, opset_import: ["": 17]> g (float[5, 4] x, float[n, 4] z)
            => (float[m, 4] y, float[n, 4] w) {
            first, rest = Split<axis = 1>(x, sizes)  flat = Squeeze(first, one)  above = Greater(flat, zero)
            picked = Compress<axis = 0>(x, above)  a = Relu(picked)  y = Add(picked, a)
            b = Relu(z)  w = Add(z, b)
        }""",
        sizes=ints(1, 3),
        one=ints(1),
        zero=np.array(0, np.float32),
    )
    assert layers_of(model).count("Add") == 1, "a batch may be empty as well, which is the user's doing"
    for sign in (1, -1):
        check(model, [sign * np.abs(floats(5, 4)), floats(3, 4)], unknown=False, backends=["keras"])


RESHAPES = {
    "flatten": ("y = Reshape(x, shape)", [0, -1], "Flatten"),
    "rest": ("y = Reshape(x, shape)", [0, 2, -1], "Reshape"),
    "first": ("y = Reshape(x, shape)", [-1, 12], "Flatten"),
    "rows": ("y = Reshape(x, shape)", [-1, 4], "own"),
    "squeeze": ("u = Unsqueeze(x, shape) y = Squeeze(u, shape)", [2], "Reshape"),
    "batch": ("y = Unsqueeze(x, shape)", [0], "own"),
    "turn": ("y = Transpose<perm=[0, 2, 1]>(x)", [0], "Permute"),
    "turn all": ("y = Transpose<perm=[2, 1, 0]>(x)", [0], "own"),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_rearranging(name: str) -> None:
    body, shape, layer = RESHAPES[name]
    text = f'<ir_version: 9, opset_import: ["": 17]> g (float[n, 3, 4] x) => (float y) {{ {body} }}'
    model = text_model(text, shape=np.array(shape, np.int64))
    model.graph.output[0].type.tensor_type.ClearField("shape")
    made = generate(load(model)).model.partition("def build()")[2]
    assert f"layers.{layer}(" in made if layer != "own" else "layers." not in made
    for batch in (1, 5):
        check(model, [floats(batch, 3, 4)], unknown=False, backends=["keras"])
