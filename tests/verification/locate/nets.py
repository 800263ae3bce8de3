"""Small networks of many kinds, with weights of a seed, whose nodes have names."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

INT64 = np.int64


class Net:
    """A graph that is put together node by node; calling it adds a node and gives the name of its result."""

    def __init__(self, seed: int, opset: int = 20, **inputs: tuple[Any, ...]) -> None:
        self.rng = np.random.default_rng(seed)
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.functions: list[onnx.FunctionProto] = []
        self.inputs = {name: (dtype, shape) for name, (dtype, *shape) in inputs.items()}

    def __call__(self, op: str, *inputs: str, name: str = "", outputs: int = 1, **attributes: Any) -> Any:
        name = name or f"{op.lower()}{len(self.nodes)}"
        made = [f"{name}.out"] if outputs == 1 else [f"{name}.out{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), made, name=name, **attributes))
        return made[0] if outputs == 1 else made

    def const(self, value: Any, dtype: Any = np.float32) -> str:
        self.weights.append(numpy_helper.from_array(np.asarray(value, dtype), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, *shape: int, dtype: Any = np.float32, scale: float | None = None) -> str:
        """Random, of a size that keeps what it is multiplied with at its size."""
        fan_in = np.prod(shape[1:]) if len(shape) != 2 else shape[0]
        deviation = scale if scale is not None else 1 / np.sqrt(fan_in)
        return self.const(self.rng.normal(0, deviation, shape), dtype)

    def about_one(self, *shape: int) -> str:
        return self.const(self.rng.uniform(0.5, 1.5, shape))

    def conv(self, x: str, c_in: int, c_out: int, k: int = 3, name: str = "", group: int = 1, **attributes: Any) -> str:
        attributes.setdefault("pads", [k // 2] * 4)
        weights = self.weight(c_out, c_in // group, k, k), self.weight(c_out, scale=0.1)
        return self("Conv", x, *weights, name=name, group=group, **attributes)

    def norm(self, x: str, channels: int, name: str = "") -> str:
        scale, bias, mean = self.about_one(channels), self.weight(channels, scale=0.1), self.weight(channels, scale=0.1)
        variance = self.const(self.rng.uniform(0.05, 0.5, channels))
        return self("BatchNormalization", x, scale, bias, mean, variance, name=name)

    def linear(self, x: str, n_in: int, n_out: int, name: str = "") -> str:
        return self("Add", self("MatMul", x, self.weight(n_in, n_out), name=name), self.weight(n_out, scale=0.1))

    def layer_norm(self, x: str, width: int, name: str = "") -> str:
        return self("LayerNormalization", x, self.about_one(width), self.weight(width, scale=0.1), name=name)

    def model(self, *outputs: str) -> onnx.ModelProto:
        element = helper.np_dtype_to_tensor_dtype
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info(n, element(np.dtype(d)), s) for n, (d, s) in self.inputs.items()],
            [onnx.ValueInfoProto(name=name) for name in outputs],
            self.weights,
        )
        opsets = [helper.make_opsetid(domain, v) for domain, v in (("", self.opset), ("ai.onnx.ml", 3), ("own", 1))]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=self.functions)
        inferred = onnx.shape_inference.infer_shapes(model)
        del inferred.graph.value_info[:]
        return inferred


def resnet(seed: int) -> onnx.ModelProto:
    net = Net(seed, image=(np.float32, "N", 3, 16, 16))
    x = net("Relu", net.norm(net.conv("image", 3, 8, name="stem"), 8, "stem_norm"))
    x = net("MaxPool", x, name="pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for block in range(2):
        y = net("Relu", net.norm(net.conv(x, 8, 8, name=f"conv{block}a"), 8, f"norm{block}a"))
        y = net.norm(net.conv(y, 8, 8, name=f"conv{block}b"), 8)
        x = net("Relu", net("Add", x, y, name=f"residual{block}"))
    x = net("AveragePool", x, name="average", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = net("Flatten", net("GlobalAveragePool", x))
    return net.model(net("Gemm", x, net.weight(8, 8), net.weight(8, scale=0.1), name="head", transB=1, alpha=0.5))


def mobilenet(seed: int) -> onnx.ModelProto:
    net = Net(seed, image=(np.float32, "N", 3, 16, 16))
    x = net("Div", net("Sub", "image", net.about_one(1, 3, 1, 1)), net.about_one(1, 3, 1, 1), name="scaling")
    x = net("HardSwish", net.conv(x, 3, 8, name="stem", strides=[2, 2]))
    for block in range(2):
        y = net("Clip", net.conv(x, 8, 16, 1), net.const(0.0), net.const(1.0), name=f"relu{block}")
        y = net.conv(y, 16, 16, name=f"depthwise{block}", group=16)
        squeezed = net("Relu", net.conv(net("GlobalAveragePool", y), 16, 4, 1))
        gate = net("HardSigmoid", net.conv(squeezed, 4, 16, 1), name=f"gate{block}", alpha=1 / 6)
        y = net.conv(net("Mul", y, gate), 16, 8, 1, name=f"project{block}")
        grouped = net("Reshape", y, net.const([0, 2, 4, 8, 8], INT64), name=f"groups{block}")
        shuffled = net("Transpose", grouped, perm=[0, 2, 1, 3, 4], name=f"shuffle{block}")
        x = net("Add", x, net("Reshape", shuffled, net.const([0, 8, 8, 8], INT64)))
    return net.model(net.linear(net("Flatten", net("GlobalAveragePool", x)), 8, 5, "head"))


def bert(seed: int) -> onnx.ModelProto:
    """Heads and positions are both 4, so that a wrong permutation still fits."""
    net = Net(seed, tokens=(INT64, "N", 4), mask=(np.float32, "N", 4))
    width, heads = 16, 4
    x = net("Gather", net.weight(50, width, scale=1), "tokens", name="embedding")
    x = net.layer_norm(net("Add", x, net.weight(4, width, scale=1)), width, "norm")
    ones = net("Unsqueeze", net("Sub", net.const(1.0), "mask", name="inverted"), net.const([1, 2], INT64))
    bias = net("Mul", ones, net.const(-1e4), name="bias")
    for layer in range(2):
        split = net.const([0, 4, heads, width // heads], INT64)
        q, k, v = (net("Reshape", net.linear(x, width, width), split) for _ in range(3))
        q = net("Transpose", q, perm=[0, 2, 1, 3])
        k = net("Transpose", k, perm=[0, 2, 3, 1], name=f"keys{layer}")
        v = net("Transpose", v, perm=[0, 2, 1, 3], name=f"values{layer}")
        scores = net("Div", net("MatMul", q, k, name=f"scores{layer}"), net.const(2.0), name=f"scale{layer}")
        weights = net("Softmax", net("Add", scores, bias), axis=-1, name=f"softmax{layer}")
        y = net("Transpose", net("MatMul", weights, v), perm=[0, 2, 1, 3])
        y = net.linear(net("Reshape", y, net.const([0, 4, width], INT64)), width, width)
        x = net.layer_norm(net("Add", x, y), width)
        y = net("Gelu", net.linear(x, width, 32, name=f"up{layer}"), name=f"gelu{layer}")
        x = net.layer_norm(net("Add", x, net.linear(y, 32, width)), width)
    pooled = net("Gather", x, net.const(0, INT64), axis=1, name="first")
    return net.model(net("Tanh", net.linear(pooled, width, width)))


def gpt(seed: int) -> onnx.ModelProto:
    """Layer norms of their parts, a causal mask, one head, and logits of the last position."""
    net = Net(seed, opset=17, tokens=(INT64, 2, 8))
    width = 8
    x = net("Gather", net.weight(30, width, scale=1), "tokens")
    positions = net("Slice", net.weight(12, width, scale=1), *(net.const([n], INT64) for n in (0, 8, 0)), name="table")
    x = net("Add", x, positions)
    causal = net("Trilu", net.const(np.full((8, 8), -1e9)), net.const(1, INT64), upper=1, name="causal")
    for layer in range(2):
        centred = net("Sub", x, net("ReduceMean", x, axes=[-1], name=f"mean{layer}"), name=f"centred{layer}")
        variance = net("ReduceMean", net("Mul", centred, centred), axes=[-1], name=f"variance{layer}")
        y = net("Div", centred, net("Sqrt", net("Add", variance, net.const(1e-5), name=f"epsilon{layer}")))
        q, k, v = net("Split", net.linear(y, width, 3 * width), axis=-1, outputs=3, name=f"split{layer}")
        scores = net("MatMul", q, net("Transpose", k, perm=[0, 2, 1]), name=f"scores{layer}")
        weights = net("Softmax", net("Add", scores, causal), axis=-1)
        x = net("Add", x, net.linear(net("MatMul", weights, v), width, width))
        up = net.linear(x, width, 16)
        cubed = net("Mul", net("Pow", up, net.const(3.0), name=f"cube{layer}"), net.const(0.044715))
        inner = net("Mul", net("Add", up, cubed), net.const(0.7978846), name=f"root{layer}")
        gelu = net("Mul", net("Mul", up, net.const(0.5)), net("Add", net("Tanh", inner), net.const(1.0)))
        x = net("Add", x, net.linear(gelu, 16, width))
    bounds = (net.const([n], INT64) for n in (-1, 2**31, 1))
    return net.model(net.linear(net("Slice", x, *bounds, name="last"), width, 30))


def recurrent(seed: int) -> onnx.ModelProto:
    net = Net(seed, x=(np.float32, 6, "N", 5))
    hidden = 4

    def cell(op: str, x: str, size: int, gates: int, **attributes: Any) -> tuple[str, str]:
        weights = net.weight(1, gates * hidden, size), net.weight(1, gates * hidden, hidden)
        bias = net.weight(1, 2 * gates * hidden, scale=0.3)
        made = net(op, x, *weights, bias, outputs=2, name=op.lower(), hidden_size=hidden, **attributes)
        return net("Squeeze", made[0], net.const([1], INT64)), made[1]

    x, _ = cell("LSTM", net("Tanh", net.linear("x", 5, 5)), 5, 4)
    x, _ = cell("GRU", x, hidden, 3, linear_before_reset=1)
    x, last = cell("RNN", x, hidden, 1)
    total = net("CumSum", x, net.const(0, INT64), name="total")
    return net.model(net.linear(net("Softplus", total), hidden, 3), last)


def unet(seed: int) -> onnx.ModelProto:
    net = Net(seed, image=(np.float32, 2, 4, 8, 8))
    padded = net("Pad", "image", net.const([0, 0, 1, 1, 0, 0, 1, 1], INT64), mode="reflect", name="pad")
    x = net("LeakyRelu", net.conv(padded, 4, 8, pads=[0] * 4), alpha=0.1, name="leaky")
    down = net.conv(x, 8, 8, strides=[2, 2], name="down")
    scaled = (net.about_one(8), net.weight(8, scale=0.1))
    down = net("PRelu", net("InstanceNormalization", down, *scaled, name="instance"), net.weight(8, 1, 1, scale=0.3))
    sizes = net.const([1, 1, 2, 2])
    smooth = net("Resize", down, "", sizes, mode="linear", name="smooth")
    blocky = net("Resize", net.conv(down, 8, 8), "", net.const([1, 1, 1.75, 1.75]), mode="nearest", name="blocky")
    blocky = net("Pad", blocky, net.const([0, 0, 0, 0, 0, 0, 1, 1], INT64))
    pads = {"strides": [2, 2], "kernel_shape": [4, 4], "pads": [1, 1, 1, 1]}
    learned = net("ConvTranspose", down, net.weight(8, 8, 4, 4), name="up", **pads)
    shuffled = net("DepthToSpace", net.conv(down, 8, 32, 1), blocksize=2, name="pixels")
    joined = net("Concat", x, net("Add", smooth, blocky), net("Mul", learned, shuffled), axis=1, name="joined")
    return net.model(net("Sigmoid", net.conv(joined, 24, 3)))


def quantized(seed: int) -> onnx.ModelProto:
    """Convolutions between QuantizeLinear and DequantizeLinear, then one in integers."""
    net = Net(seed, image=(np.float32, 2, 4, 8, 8))

    def steps(x: str, scale: float, zero: int, name: str = "") -> str:
        grid = net.const(scale), net.const(zero, np.uint8)
        return net("DequantizeLinear", net("QuantizeLinear", x, *grid, name=name), *grid)

    x = steps("image", 0.03, 128, "quantize")
    for layer in range(3):
        weight = net.const(net.rng.integers(-127, 128, (4, 4, 3, 3)), np.int8)
        dense = net("DequantizeLinear", weight, net.const(0.002), net.const(0, np.int8), name=f"weight{layer}")
        x = net("Relu", net("Conv", x, dense, net.weight(4, scale=0.1), pads=[1] * 4, name=f"conv{layer}"))
        x = steps(x, 0.02, 0, f"quantize{layer}")
    quantity, scale, zero = net("DynamicQuantizeLinear", net("Flatten", x), outputs=3)
    matrix = net.const(net.rng.integers(0, 256, (256, 6)), np.uint8)
    product = net("MatMulInteger", quantity, matrix, zero, net.const(128, np.uint8), name="integers")
    return net.model(net("Mul", net("Cast", product, to=TensorProto.FLOAT), net("Mul", scale, net.const(0.002))))


def half(seed: int) -> onnx.ModelProto:
    net = Net(seed, x=(np.float32, "N", 16))
    x = net("Cast", "x", to=TensorProto.FLOAT16)
    for layer in range(3):
        x = net("MatMul", x, net.weight(16, 16, dtype=np.float16), name=f"dense{layer}")
        x = net("Add", net("Relu", x), net.weight(16, dtype=np.float16), name=f"bias{layer}")
    large = net("Mul", x, net.const(16.0, np.float16), name="large")
    small = net("Div", net("Mul", large, net.const(32.0, np.float16), name="larger"), net.const(512.0, np.float16))
    return net.model(net("Cast", net("Softmax", small, axis=-1), to=TensorProto.FLOAT))


def discrete(seed: int) -> onnx.ModelProto:
    """Rounding, sorting, indices and sequences."""
    net = Net(seed, x=(np.float32, 3, 8))
    x = net("Mul", net.linear("x", 8, 8), net.const(4.0))
    rounded = net("Cast", net("Round", x, name="round"), to=TensorProto.INT64, name="cast")
    rest = net("Mod", rounded, net.const(5, INT64), name="rest")
    hot = net("OneHot", rest, net.const(5, INT64), net.const([0.0, 1.0]), axis=-1)
    counts = net("ReduceSum", hot, net.const([1], INT64), keepdims=0, name="counts")
    values, indices = net("TopK", x, net.const([3], INT64), outputs=2, name="best")
    picked = net("GatherElements", x, indices, axis=1)
    order = net("ArgMin", x, axis=1, keepdims=1, name="least")
    spread = net("ScatterElements", x, order, net.const(np.zeros((3, 1))), axis=1, name="scatter")
    outer = net("Einsum", net("Slice", x, *(net.const([n], INT64) for n in (0, 3, 1))), values, equation="ij,jk->ik")
    parts = net("SequenceConstruct", picked, values, outer, name="parts")
    joined = net("ConcatFromSequence", parts, axis=0, name="join")
    return net.model(counts, spread, net("Reshape", joined, net.const([3, 9], INT64)))


def control_flow(seed: int) -> onnx.ModelProto:
    """A Loop that uses a weight from outside, a Scan and an If."""
    net = Net(seed, x=(np.float32, 3, 4))
    start, matrix = net("Tanh", net.linear("x", 4, 4)), net.weight(4, 4)
    info, array = helper.make_tensor_value_info, numpy_helper.from_array
    step = helper.make_graph(
        [
            helper.make_node("MatMul", ["state", matrix], ["turned"]),
            helper.make_node("LeakyRelu", ["turned"], ["bent"], alpha=0.2),
            helper.make_node("Mul", ["bent", "damping"], ["next"]),
            helper.make_node("Identity", ["go"], ["go_on"]),
        ],
        "step",
        [info("i", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("state", 1, [3, 4])],
        [info("go_on", TensorProto.BOOL, []), info("next", 1, [3, 4])],
        [array(np.float32(0.9), "damping")],
    )
    looped = net("Loop", net.const(4, INT64), net.const(True, np.bool_), start, name="loop", body=step)
    add = helper.make_graph(
        [helper.make_node("Add", ["sum", "row"], ["out"]), helper.make_node("Identity", ["out"], ["kept"])],
        "add",
        [info("sum", 1, [4]), info("row", 1, [4])],
        [info("out", 1, [4]), info("kept", 1, [4])],
    )
    zeros = net.const(np.zeros(4))
    _, sums = net("Scan", zeros, looped, outputs=2, name="scan", body=add, num_scan_inputs=1)

    def branch(op: str, **attributes: Any) -> onnx.GraphProto:
        return helper.make_graph([helper.make_node(op, [sums], ["b"], **attributes)], op, [], [info("b", 1, [3, 4])])

    positive = net("Greater", net("ReduceMax", net("Abs", sums), keepdims=0), net.const(1e-3))
    branches = {"then_branch": branch("Elu", alpha=0.5), "else_branch": branch("Neg")}
    return net.model(net.linear(net("If", positive, name="if", **branches), 4, 2))


def functions(seed: int) -> onnx.ModelProto:
    """Calls of a function of the model's own, after the op of another domain."""
    net = Net(seed, x=(np.float32, "N", 4))
    offset = {"offset": net.rng.normal(size=4).tolist(), "scale": net.rng.uniform(0.5, 1.5, 4).tolist()}
    x = net("Scaler", "x", name="scaler", domain="ai.onnx.ml", **offset)
    for block in range(3):
        x = net("Block", x, net.weight(4, 4), name=f"block{block}", domain="own", alpha=0.3)
    slope = onnx.AttributeProto(name="alpha", type="FLOAT", ref_attr_name="alpha")
    body = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Elu", ["y"], ["z"])]
    body[1].attribute.append(slope)
    opsets = [helper.make_opsetid("", 20)]
    net.functions.append(helper.make_function("own", "Block", ["x", "w"], ["z"], body, opsets, ["alpha"]))
    return net.model(net("Softmax", x))
