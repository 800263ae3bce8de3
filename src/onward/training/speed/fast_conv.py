"""Convolutions of a training graph in the forms that ONNX Runtime computes fastest, for a session only.

Weights that are trained are no constants, so ONNX Runtime leaves such convolutions as they are. Here they become
products for a whole batch where maps are small, and ONNX Runtime's own blocked kernels where they are large. What is
written here never goes into a file: the blocked kernels are no part of ONNX.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from onward.graph.build import Builder, Tensor
from onward.spec.conv import Conv
from onward.spec.meaning import attributes
from onward.training.autodiff.convolution import Convolution
from onward.training.autodiff.windows import Ints, beginning, spatial

BLOCKED = "com.microsoft.nchwc"
MANY_PLACES, SOME_CHANNELS = 64, 32
"""From where on the blocked kernels are faster: places of a map forwards, and channels of both sides backwards."""


def fast_convolutions(model: ir.Model, *, in_place: bool = False) -> ir.Model:
    """A copy of a model with other forms of its convolutions, or the model itself where there is none to change.

    Outputs called `.grad` may be of another shape, with the same numbers in the same order.
    """
    copy = model if in_place else model.clone()
    graph = copy.graph
    op = Builder(copy)
    changed = False
    for node in list(graph):
        if node.domain or node.op_type not in ("Conv", "ConvTranspose"):
            continue
        changed |= _forward(op, node) if node.op_type == "Conv" else _backward(op, node)
    changed |= _without_last_reshapes(graph)
    if not changed:
        return model
    if block_size():
        copy.opset_imports[BLOCKED] = 1
    graph.sort()
    common.DeduplicateHashedInitializersPass()(copy)
    _share_columns(graph)
    return copy


def _share_columns(graph: ir.Graph) -> None:
    """What is gathered for a convolution serves the gradient of its weights, too."""
    found: dict[tuple[Any, ...], ir.Value] = {}
    for node in list(graph):
        if node.domain or node.op_type not in ("Reshape", "Pad", "Gather"):
            continue
        output = node.outputs[0]
        key = (
            node.op_type,
            *map(id, node.inputs),
            *(f"{name}={a.value}" for name, a in sorted(node.attributes.items())),
        )
        first = found.setdefault(key, output)
        if first is not output and not output.is_graph_output():
            output.replace_all_uses_with(first)
            graph.remove(node, safe=True)


def _without_last_reshapes(graph: ir.Graph) -> bool:
    """Let gradients be given in the shape they are computed in: a Reshape at the end would copy them."""
    changed = False
    for i, output in enumerate(graph.outputs):
        source: ir.Value | None = output
        passed = []
        while (
            source is not None and (node := source.producer()) is not None and node.op_type in ("Reshape", "Identity")
        ):
            passed.append(node)
            source = node.inputs[0]
        if not (output.name or "").endswith(".grad") or not passed or source is None or source.producer() is None:
            continue
        alone = all(len(list(node.outputs[0].uses())) <= 1 for node in passed)
        if alone and not output.uses() and not source.is_graph_output() and source.shape and source.shape.is_static():
            name, output.name = output.name, None
            source.name = name
            graph.outputs[i] = source
            graph.remove(passed, safe=True)
            changed = True
    return changed


@dataclass(frozen=True)
class Sides:
    """A convolution of single precision without groups, of weights that change from step to step."""

    node: ir.Node
    x: Tensor
    w: Tensor
    bias: Tensor | None
    y: Tensor
    attributes: dict[str, Any]

    @property
    def rank(self) -> int:
        return len(self.w.dims or ()) - 2

    @property
    def strides(self) -> set[int]:
        return set(self.attributes.get("strides") or (1,))


def _sides(op: Builder, node: ir.Node) -> Sides | None:
    x, w, bias = (op.tensor(value) if value is not None else None for value in (*node.inputs, None)[:3])
    if x is None or w is None or w.sizes is None or math.prod(w.sizes) == 0 or len(w.sizes) < 3:
        return None
    if x.dtype != ir.DataType.FLOAT or w.value.const_value is not None or node.attributes.get_int("group", 1) != 1:
        return None
    return Sides(node, x, w, bias, op.tensor(node.outputs[0]), attributes(node))


def _forward(op: Builder, node: ir.Node) -> bool:
    c = _sides(op, node)
    if c is None:
        return False
    assert c.w.sizes is not None
    sizes, steps = spatial(c.x, c.rank), spatial(c.y, c.rank)
    kernel = Ints(op, c.w.sizes[2:])
    if sizes.known is None or steps.known is None:
        return False
    win = Conv.of(node).window
    assert win is not None
    form = Convolution(win, kernel, beginning(win, kernel, sizes, steps), 1, c.rank)
    whole = form.whole_batch(sizes, c.y, c.w)
    if whole is not None and form.is_few(c.y, whole):
        _replace(op, node, whole.to_small(c.x, c.w, c.bias))
        return True
    around = form.padding(sizes, form.full(c.y))
    if around is None or min(around[1]) < 0 or math.prod(steps.known) < MANY_PLACES or c.strides != {1}:
        return False
    if not _is_blocked(c.w.sizes):
        return False
    relu = _only_relu(node)
    ends = {"pads": [*around[0], *around[1]], "dilations": list(win.dilations), "activation": "Relu" if relu else None}
    _replace(op, relu or node, _blocked(c.x, _blocked_weights(c.w, block_size()), c.bias, **ends))
    return True


def _backward(op: Builder, node: ir.Node) -> bool:
    """A transposed convolution of stride 1 is a convolution with turned weights."""
    c = _sides(op, node)
    plain = ("strides", "pads", "dilations", "group", "auto_pad", "kernel_shape")
    if c is None or c.bias is not None or c.strides != {1} or set(c.attributes) - {*plain}:
        return False
    assert c.w.sizes is not None
    places = spatial(c.y, c.rank).known
    if c.attributes.get("auto_pad", "NOTSET") != "NOTSET" or set(c.attributes.get("dilations") or (1,)) != {1}:
        return False
    if places is None or math.prod(places) < MANY_PLACES or min(c.w.sizes[:2]) < SOME_CHANNELS:
        return False
    pads = [k - 1 - p for k, p in zip(c.w.sizes[2:] * 2, c.attributes.get("pads") or [0] * 2 * c.rank, strict=True)]
    if min(pads) < 0 or not _is_blocked(c.w.sizes):
        return False
    _replace(op, node, _blocked(c.x, _blocked_weights(c.w, block_size(), turned=True), None, pads=pads))
    return True


def _is_blocked(sizes: list[int]) -> bool:
    """Whether the blocked kernels take weights of these sizes."""
    block = block_size()
    return bool(block) and len(sizes) == 4 and not any(n % block for n in sizes[:2])


def _blocked_weights(w: Tensor, block: int, turned: bool = False) -> Tensor:
    """[outputs, channels, height, width] in blocks of channels and outputs; `turned`: for the way back.

    The kernel that brings channels of images into blocks is made to do most of it: it is much faster than Transpose.
    """
    op = w.op
    assert w.sizes is not None
    outputs, channels, *kernel = w.sizes
    taps, rows, columns = math.prod(kernel), outputs // block, channels // block
    if turned:
        inner = _in_blocks(w)
        apart = op.Reshape(inner, op.ints([rows, block, columns, taps, block]))
        pieces = op.Transpose(apart, perm=[2, 0, 3, 1, 4])
        back = op.Gather(op.Reshape(pieces, op.ints([rows * columns, taps, -1])), op.ints(range(taps)[::-1]), axis=1)
        return op.Reshape(back, op.ints([channels, outputs, *kernel]))
    image = op.Reshape(w, op.ints([rows, block, channels, taps]))
    inner = _in_blocks(image)
    apart = op.Reshape(inner, op.ints([rows * columns, block, taps, block]))
    return op.Reshape(op.Transpose(apart, perm=[0, 2, 1, 3]), op.ints(w.sizes))


def _blocked(x: Tensor, weights: Tensor, bias: Tensor | None, **attributes: Any) -> Tensor:
    op = x.op
    assert weights.sizes is not None
    outputs, _, *kernel = weights.sizes
    inside = _in_blocks(x)
    found = op.many("Conv", 1, inside, weights, bias, domain=BLOCKED, kernel_shape=kernel, **attributes)[0]
    return op.many("ReorderOutput", 1, found, domain=BLOCKED, channels=outputs)[0]


def _in_blocks(x: Tensor) -> Tensor:
    found = x.op.many("ReorderInput", 1, x, domain=BLOCKED)[0]
    found.value.type, found.value.shape = x.value.type, x.value.shape
    return found


def _only_relu(node: ir.Node) -> ir.Node | None:
    """The Relu behind a node, if nothing else reads what the node gives."""
    uses, output = list(node.outputs[0].uses()), node.outputs[0]
    if len(uses) != 1 or output.is_graph_output():
        return None
    reader = uses[0].node
    return reader if reader.op_type == "Relu" and not reader.domain else None


def _replace(op: Builder, node: ir.Node, result: Tensor) -> None:
    """Put a new value in the place of what a node gives; a convolution before it that nothing reads is removed, too."""
    old, new = node.outputs[0], result.value
    new.type, new.shape = old.type, old.shape
    name, old.name = old.name, None
    new.name = name
    old.replace_all_uses_with(new, replace_graph_outputs=True)
    before = node.inputs[0].producer() if node.op_type == "Relu" and node.inputs[0] is not None else None
    op.graph.remove([node, before] if before is not None else [node], safe=True)


@cache
def block_size() -> int:
    """Channels in a block of the blocked kernels on this machine, found by trying; 0 where there are none."""
    return next((size for size in (16, 8) if _works(size)), 0)


def _works(block: int) -> bool:
    import onnxruntime

    from onward.model import Model

    rng = np.random.default_rng(0)
    feeds = {"x": rng.normal(size=(2, 32, 5, 5)), "w": rng.normal(size=(48, 32, 3, 3))}
    values = [
        ir.Value(name=name, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(array.shape))
        for name, array in feeds.items()
    ]
    imports = {"": 21, BLOCKED: 1}
    model = ir.Model(ir.Graph(values, [], nodes=[], name="blocks", opset_imports=imports), ir_version=10)
    op = Builder(model)
    x, w = (op.tensor(value) for value in values)
    for result in (_blocked(x, _blocked_weights(w, block), None, pads=[1, 1, 1, 1]), op.Conv(x, w, pads=[1, 1, 1, 1])):
        result.value.type, result.value.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape([2, 48, 5, 5])
        model.graph.outputs.append(result.value)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(Model(model).to_proto().SerializeToString(), options)
        ours, plain = session.run(None, {name: array.astype(np.float32) for name, array in feeds.items()})
    except Exception:  # another ONNX Runtime may refuse in any way
        return False
    return bool(np.allclose(ours, plain, rtol=1e-3, atol=1e-3))
