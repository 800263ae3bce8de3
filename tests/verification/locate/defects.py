"""Forty models, each with one node changed in a way that happens: by a converter, by an exporter, by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nets
import numpy as np
import onnx
from onnx import helper, numpy_helper

Change = Callable[[onnx.ModelProto, onnx.NodeProto], None]


@dataclass(frozen=True)
class Defect:
    """A network, the name of one of its nodes, and what is done to it."""

    what: str
    net: Callable[[int], onnx.ModelProto]
    node: str
    change: Change
    seed: int = 0

    def models(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        """The network, and a copy that is broken."""
        good = self.net(self.seed)
        bad = onnx.ModelProto()
        bad.CopyFrom(good)
        self.change(bad, next(node for node in bad.graph.node if node.name == self.node))
        return good, bad

    def inputs(self) -> dict[str, Any]:
        """Two of everything."""
        rng = np.random.default_rng(self.seed)
        made = {}
        graph = self.net(self.seed).graph
        weights = {tensor.name for tensor in graph.initializer}
        for value in (value for value in graph.input if value.name not in weights):
            shape = [dim.dim_value or 2 for dim in value.type.tensor_type.shape.dim]
            if value.type.tensor_type.elem_type == onnx.TensorProto.INT64:
                made[value.name] = rng.integers(0, 30, shape)
            elif value.name == "mask":
                made[value.name] = (np.arange(shape[1]) < rng.integers(2, 4, (shape[0], 1))).astype(np.float32)
            else:
                made[value.name] = rng.standard_normal(shape).astype(np.float32)
        return made


def digits(seed: int) -> onnx.ModelProto:
    return onnx.load(Path(__file__).parents[3] / "examples/digits/digits.onnx")


def squeezenet(seed: int) -> onnx.ModelProto:
    """The network that comes with onnx, with weights; there they are all alike."""
    model = onnx.load(Path(onnx.__file__).parent / "backend/test/data/light/light_squeezenet.onnx")
    rng = np.random.default_rng(seed)
    sizes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept = [node for node in model.graph.node if node.op_type != "ConstantOfShape"]
    for node in model.graph.node:
        if node.op_type == "ConstantOfShape":
            shape = sizes[node.input[0]]
            values = rng.normal(0, np.sqrt(2 / max(np.prod(shape[1:]), 1)), shape).astype(np.float32)
            model.graph.initializer.append(numpy_helper.from_array(values, node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


def set_to(**attributes: Any) -> Change:
    def change(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
        kept = [attribute for attribute in node.attribute if attribute.name not in attributes]
        del node.attribute[:]
        node.attribute.extend([*kept, *(helper.make_attribute(name, value) for name, value in attributes.items())])

    return change


def weight(position: int, edit: Callable[[Any], Any]) -> Change:
    """Replace a weight, for this node only."""

    def change(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
        tensor = next(tensor for tensor in model.graph.initializer if tensor.name == node.input[position])
        array = numpy_helper.to_array(tensor)
        node.input[position] = f"{tensor.name}.changed"
        edited = np.asarray(edit(array.copy()), array.dtype)
        model.graph.initializer.append(numpy_helper.from_array(edited, node.input[position]))

    return change


def both(first: Change, second: Change) -> Change:
    def change(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
        first(model, node)
        second(model, node)

    return change


def swap(first: int = 0, second: int = 1) -> Change:
    def change(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
        node.input[first], node.input[second] = node.input[second], node.input[first]

    return change


def drop(position: int) -> Change:
    def change(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
        del node.input[position:]

    return change


def op(name: str) -> Change:
    def change(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
        node.op_type = name

    return change


def inside(position: int, **attributes: Any) -> Change:
    """Change a node of the graph that a node holds."""

    def change(model: onnx.ModelProto, node: onnx.NodeProto) -> None:
        graph = next(attribute.g for attribute in node.attribute if attribute.HasField("g"))
        set_to(**attributes)(model, graph.node[position])

    return change


def one_off(array: Any) -> Any:
    array.flat[7] += 1e-2
    return array


def gates_swapped(array: Any) -> Any:
    """i, o, f, c as i, f, o, c."""
    i, o, f, c = np.split(array, 4, axis=1)
    return np.concatenate([i, f, o, c], axis=1)


def _defects() -> Iterator[Defect]:
    yield Defect("weights 1 % too large", nets.resnet, "conv0a", weight(1, lambda w: w * 1.01))
    yield Defect("one weight off by 1e-2", nets.resnet, "stem", weight(1, one_off))
    yield Defect("padding on the wrong side", nets.resnet, "conv1a", set_to(pads=[0, 0, 2, 2]))
    yield Defect("batch norm's epsilon", nets.resnet, "norm0a", set_to(epsilon=1e-3))
    yield Defect("a pool's ceil_mode", nets.resnet, "pool", set_to(ceil_mode=1))
    yield Defect("padding counted in an average", nets.resnet, "average", set_to(count_include_pad=1))
    yield Defect("a weight not transposed", nets.resnet, "head", set_to(transB=0))
    yield Defect("a bias missing", nets.resnet, "conv1b", drop(2))
    yield Defect("inputs of a division swapped", nets.mobilenet, "scaling", swap())
    yield Defect("the bound of a Clip", nets.mobilenet, "relu1", weight(2, lambda w: w * 0.5))
    yield Defect("the slope of a HardSigmoid", nets.mobilenet, "gate0", set_to(alpha=0.2))
    yield Defect(
        "the number of groups of a shuffle", nets.mobilenet, "groups1", weight(1, lambda w: w[[0, 2, 1, 3, 4]])
    )
    yield Defect("dilation", nets.mobilenet, "depthwise0", set_to(dilations=[2, 2], pads=[2, 2, 2, 2]))
    yield Defect("the axis of a softmax", nets.bert, "softmax0", set_to(axis=-2))
    yield Defect("the permutation of a transpose", nets.bert, "values1", set_to(perm=[0, 1, 2, 3]))
    yield Defect("gelu by its approximation", nets.bert, "gelu0", set_to(approximate="tanh"))
    yield Defect("an index off by one", nets.bert, "first", weight(1, lambda w: w + 1))
    yield Defect("the scale of attention", nets.bert, "scale1", weight(1, lambda w: w * 1.05))
    yield Defect("layer norm's epsilon", nets.bert, "norm", set_to(epsilon=1e-2))
    yield Defect("a causal mask off by one", nets.gpt, "causal", weight(1, lambda w: w + 1))
    yield Defect("inputs of a MatMul swapped", nets.gpt, "scores0", swap())
    later, earlier = weight(1, lambda w: w + 1), weight(1, lambda w: w - 1)
    yield Defect("a slice off by one", nets.gpt, "table", both(later, weight(2, lambda w: w + 1)))
    yield Defect("the end of a slice", nets.gpt, "last", both(earlier, weight(2, lambda w: w * 0 - 1)))
    yield Defect("the axis of a mean", nets.gpt, "variance1", set_to(axes=[1]))
    yield Defect("the order of an LSTM's gates", nets.recurrent, "lstm", weight(1, gates_swapped))
    yield Defect("a GRU's linear_before_reset", nets.recurrent, "gru", set_to(linear_before_reset=0))
    yield Defect("an RNN run backwards", nets.recurrent, "rnn", set_to(direction="reverse"))
    yield Defect(
        "how a resize maps coordinates", nets.unet, "smooth", set_to(coordinate_transformation_mode="asymmetric")
    )
    yield Defect("how a resize rounds", nets.unet, "blocky", set_to(nearest_mode="ceil"))
    yield Defect("the mode of a padding", nets.unet, "pad", set_to(mode="edge"))
    yield Defect("the order of depth to space", nets.unet, "pixels", set_to(mode="CRD"))
    yield Defect("a zero point off by one", nets.quantized, "quantize", weight(2, lambda w: w + 1))
    yield Defect("the scale of a quantised weight", nets.quantized, "weight1", weight(1, lambda w: w * 1.5))
    yield Defect("a zero point left out", nets.quantized, "integers", drop(3))
    yield Defect("float16 overflows", nets.half, "large", weight(1, lambda w: w * 4000))
    yield Defect("rounding mode: down, not to nearest", nets.discrete, "round", op("Floor"))
    yield Defect("an attribute inside a Loop", nets.control_flow, "loop", inside(1, alpha=0.3))
    yield Defect("an attribute of a function's call", nets.functions, "block1", set_to(alpha=0.4))
    yield Defect(
        "weights 1 % too large, as exported from PyTorch", digits, "node_conv2d_7", weight(1, lambda w: w * 1.01)
    )
    yield Defect("padding of a SqueezeNet", squeezenet, "n29", set_to(pads=[0, 0, 2, 2]))


DEFECTS = [Defect(d.what, d.net, d.node, d.change, seed) for seed, d in enumerate(_defects())]
