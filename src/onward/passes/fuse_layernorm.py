"""Layer normalisation and its root-mean-square variant, written out by exporters before ONNX had names for them."""

from __future__ import annotations

from collections.abc import Container

import onnx_ir as ir

from onward.graph.facts import Facts
from onward.graph.replace import constant, graphs, is_op, made_by, new_node, only_user, shape_of, take_over
from onward.passes.products import scalar

BOTH = ("LayerNormalization", "RMSNormalization")
MEANS = ("ReduceMean", "GlobalAveragePool")
"""What means are written with; a pool over all but the first two axes is one."""


def fuse_layernorm(model: ir.Model, only: Container[str] = BOTH) -> int:
    """Rewrites in place, to these operators only; returns how many were found."""
    facts, count = Facts(), 0
    for graph in graphs(model):
        for node in list(graph):
            if is_op(node, "Div", "Mul"):
                count += _fuse(node, facts, only)
            elif is_op(node, "Add") and "LayerNormalization" in only:
                count += _fuse_multiplied_out(node, facts)
    return count


def _fuse(node: ir.Node, facts: Facts, only: Container[str]) -> bool:
    """`node` divides by the root of a mean of squares, in single precision.

    The operator computes narrower types in single precision too, so what is written out in them is something else.
    """
    found = _divided(node, facts)
    if found is None:
        return False
    numerator, mean, epsilon = found
    x, axes = numerator, _axes(mean, facts)
    subtract = made_by(numerator, "Sub")
    square_of = _squared(mean.inputs[0], facts)
    if axes is None or square_of is None:
        return False
    centred = subtract is not None and _is_centred(subtract, axes, facts)
    if centred and subtract is not None:
        assert subtract.inputs[0] is not None
        x = subtract.inputs[0]
        other = made_by(square_of, "Sub")
        if square_of is not numerator and not (
            other is not None and other.inputs[0] is x and _is_centred(other, axes, facts)
        ):
            return False
    elif square_of is not numerator:
        return False
    op_type = "LayerNormalization" if centred else "RMSNormalization"
    shape = shape_of(x)
    if op_type not in only or shape is None or axes != list(range(-len(axes), 0)) or x.dtype != ir.DataType.FLOAT:
        return False
    x, normalised = _uncast(x, node.outputs[0])
    scale, scaled = _constant_operand(normalised, "Mul", shape[-len(axes) :])
    if scale is None or scaled is None:
        return False
    bias, shifted = _constant_operand(scaled.outputs[0], "Add", shape[-len(axes) :])
    if not centred:
        bias, shifted = None, None
    last = shifted or scaled
    attributes = {"axis": -len(axes), "epsilon": epsilon, "stash_type": 1}
    new = new_node(op_type, [x, scale] + ([] if bias is None else [bias]), attributes, last, last)
    take_over(last.outputs[0], new.outputs[0])
    return True


def _uncast(x: ir.Value, normalised: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Both ends of a normalisation, in the narrower type if it is only computed in single precision.

    That is what the operator does with narrower numbers: it scales after they have their own type back.
    """
    before, after = made_by(x, "Cast"), only_user(normalised)
    if before is None or before.inputs[0] is None or after is None or not is_op(after, "Cast"):
        return x, normalised
    narrow = before.inputs[0]
    is_back = narrow.dtype in _NARROW and after.attributes.get_int("to", 0) == narrow.dtype
    return (narrow, after.outputs[0]) if is_back else (x, normalised)


_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def _fuse_multiplied_out(add: ir.Node, facts: Facts) -> bool:
    """x · s + (bias - mean · s) with s = scale / √(variance + ε), as TensorFlow writes it."""
    for index, other in ((0, 1), (1, 0)):
        product, rest = made_by(add.inputs[index], "Mul"), made_by(add.inputs[other], "Sub")
        shift = made_by(rest.inputs[1], "Mul") if rest is not None else None
        if product is None or rest is None or shift is None:
            continue
        for x, s in (product.inputs, product.inputs[::-1]):
            mean = _partner(shift, s)
            if x is not None and mean is not None and _is_mean(mean, x, facts):
                return _fuse_shifted(add, x, mean, s, rest.inputs[0], facts)
    return False


def _fuse_shifted(
    add: ir.Node, x: ir.Value, mean: ir.Value, s: ir.Value | None, bias: ir.Value | None, facts: Facts
) -> bool:
    scaled = made_by(s, "Mul")
    average = made_by(mean, *MEANS)
    axes = None if average is None else _axes(average, facts)
    shape = shape_of(x)
    if scaled is None or not axes or shape is None or x.dtype != ir.DataType.FLOAT:
        return False
    if axes != list(range(-len(axes), 0)):
        return False
    for inverse, scale in (scaled.inputs, scaled.inputs[::-1]):
        reciprocal = made_by(inverse, "Reciprocal")
        found = None if reciprocal is None else _root_of_mean(made_by(reciprocal.inputs[0], "Sqrt"), facts)
        if found is None or any(_shape(v) != shape[-len(axes) :] for v in (scale, bias)):
            continue
        variance, epsilon = found
        difference = made_by(_squared(variance.inputs[0], facts), "Sub")
        if difference is None or list(difference.inputs) != [x, mean] or _axes(variance, facts) != axes:
            continue
        attributes = {"axis": -len(axes), "epsilon": epsilon, "stash_type": 1}
        new = new_node("LayerNormalization", [x, scale, bias], attributes, add, add)
        take_over(add.outputs[0], new.outputs[0])
        return True
    return False


def _partner(product: ir.Node, factor: ir.Value | None) -> ir.Value | None:
    """What a factor is multiplied by."""
    a, b = product.inputs
    return b if a is factor else a if b is factor else None


def _is_mean(value: ir.Value, x: ir.Value, facts: Facts) -> bool:
    mean = made_by(value, *MEANS)
    return mean is not None and mean.inputs[0] is x and _axes(mean, facts) is not None


def _shape(value: ir.Value | None) -> tuple[int, ...] | None:
    """The shape of a constant."""
    tensor = constant(value)
    return None if tensor is None else tuple(tensor.shape.numpy())


def _root_of_mean(root: ir.Node | None, facts: Facts) -> tuple[ir.Node, float] | None:
    """The mean that a root is taken of, and the small number that is added to it before."""
    add = None if root is None else made_by(root.inputs[0], "Add")
    if add is None:
        return None
    for index, other in ((0, 1), (1, 0)):
        mean = made_by(add.inputs[index], *MEANS)
        epsilon = scalar(add.inputs[other], add.inputs[index], facts)
        if mean is not None and isinstance(epsilon, float) and epsilon > 0:
            return mean, epsilon
    return None


def _divided(node: ir.Node, facts: Facts) -> tuple[ir.Value, ir.Node, float] | None:
    """What is divided, the mean whose root (with a small number added) it is divided by, and that number."""
    if node.op_type == "Div":
        choices = [(node.inputs[0], made_by(node.inputs[1], "Sqrt", "Pow"))]
    else:
        pairs = [(node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])]
        choices = []
        for numerator, inverse in pairs:
            reciprocal = made_by(inverse, "Reciprocal", "Div", "Pow")
            if reciprocal is None:
                continue
            if reciprocal.op_type == "Pow":
                choices.append((numerator, reciprocal))
            elif reciprocal.op_type == "Reciprocal":
                choices.append((numerator, made_by(reciprocal.inputs[0], "Sqrt")))
            elif scalar(reciprocal.inputs[0], reciprocal.inputs[1], facts) == 1:
                choices.append((numerator, made_by(reciprocal.inputs[1], "Sqrt")))
    for numerator, root in choices:
        if numerator is None or root is None:
            continue
        exponent = 0.5 if node.op_type == "Div" else -0.5
        if root.op_type == "Pow" and scalar(root.inputs[1], root.inputs[0], facts) != exponent:
            continue
        found = _root_of_mean(root, facts)
        if found is not None:
            return numerator, *found
    return None


def _squared(value: ir.Value | None, facts: Facts) -> ir.Value | None:
    """x for a value that is x²."""
    node = made_by(value, "Pow", "Mul")
    if node is None:
        return None
    if node.op_type == "Pow":
        return node.inputs[0] if scalar(node.inputs[1], node.inputs[0], facts) == 2 else None
    return node.inputs[0] if node.inputs[0] is node.inputs[1] else None


def _is_centred(subtract: ir.Node, axes: list[int], facts: Facts) -> bool:
    """Whether a subtraction is x minus its mean over those axes."""
    mean = made_by(subtract.inputs[1], *MEANS)
    return mean is not None and mean.inputs[0] is subtract.inputs[0] and _axes(mean, facts) == axes


def _axes(mean: ir.Node, facts: Facts) -> list[int] | None:
    """The axes a mean that keeps its dimensions is taken over, counted from the end."""
    x = mean.inputs[0]
    if is_op(mean, "GlobalAveragePool"):
        return None if x is None or x.shape is None else list(range(2 - len(x.shape), 0))
    axes = facts.ints(mean.inputs[1]) if len(mean.inputs) > 1 else mean.attributes.get_ints("axes", None)
    if x is None or x.shape is None or not axes or mean.attributes.get_int("keepdims", 1) != 1:
        return None
    rank = len(x.shape)
    return sorted(a - rank if a >= 0 else a for a in axes)


def _constant_operand(
    value: ir.Value, op_type: str, shape: tuple[int | None, ...]
) -> tuple[ir.Value | None, ir.Node | None]:
    """The constant of exactly that shape that is all a value is combined with, and the node that does it."""
    user = only_user(value)
    if not is_op(user, op_type) or user is None:
        return None, None
    other = user.inputs[1] if user.inputs[0] is value else user.inputs[0]
    return (other, user) if _shape(other) == shape else (None, None)
