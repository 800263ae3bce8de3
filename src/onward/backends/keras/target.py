"""What generated Keras code is made of: layers where one means exactly the same, and TensorFlow's words elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Set
from functools import partial
from typing import Any

import onnx_ir as ir

from onward.backends.emit.custom_ops.rules import custom_rules
from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Call, Expr, Name, lift
from onward.backends.emit.target import Rule
from onward.backends.emit.weights import Part
from onward.backends.tensorflow.target import TARGET as TENSORFLOW
from onward.backends.tensorflow.target import TensorFlowTarget
from onward.registry import Registry

layers = Name("layers")

LAYERS: Registry[Rule] = Registry("Keras layer")
"""Rules as TensorFlow's that answer with layers, or None where no layer means exactly the same."""

_TYPED: dict[ir.DataType, dict[str, str]] = {ir.DataType.FLOAT: {}, ir.DataType.DOUBLE: {"dtype": "float64"}}
"""The dtypes that layers compute in as ONNX does, and what tells a layer so: it casts what it gets to its own."""


_CUSTOM = custom_rules("keras", "onward.backends.tensorflow.runtime")


class LayerCall(Call):
    """A layer that is called: `layers.ReLU()(x)`. The layer is a constructor, or the path of one with weights."""

    __slots__ = ("_node",)

    def __init__(self, layer: Expr, inputs: tuple[Expr, ...], node: ir.Node) -> None:
        super().__init__(layer, inputs, {})
        self._node = node


class _Rules(Registry[Rule]):
    """TensorFlow's rules, with those of layers before them; the bodies of loops and branches have no layers."""

    def __init__(self, without: Set[ir.Node]) -> None:
        super().__init__("Keras rule")
        self._without = without

    def get(self, key: str) -> Rule | None:
        plain, layered = _CUSTOM(key) or TENSORFLOW.rules.get(key), LAYERS.get(key)
        return plain if plain is None or layered is None else partial(self._either, layered, plain)

    def _either(self, layered: Rule, plain: Rule, e: Emitter, *inputs: Expr | None, **attributes: Any) -> Any:
        if e.block.parent is None and e.node not in self._without:
            found = layered(e, *inputs, **attributes)
            if found is not None:
                return found
        return plain(e, *inputs, **attributes)


class KerasTarget(TensorFlowTarget):
    """Keras' layers, but for the nodes that are to go `without` one; if it `trains`, for those that merge weights."""

    name = "keras"

    def __init__(self, without: Set[ir.Node] = frozenset(), trains: bool = False) -> None:
        self.rules = _Rules(without)
        self.trains = trains


def is_tensor(e: Emitter, *inputs: Expr | None) -> bool:
    """Whether all are tensors, of known rank and of floats, that are computed when the model runs."""
    return all(
        x is not None and e.dtype(x) in _TYPED and e.rank(x) and e.const(x) is None and e.host(x) is None
        for x in inputs
    )


def rule(*keys: str) -> Callable[[Rule], Rule]:
    """Register a layer for ops whose first input is such a tensor."""

    def register(f: Rule) -> Rule:
        @LAYERS.register(*keys)
        def guarded(e: Emitter, *inputs: Expr | None, **attributes: Any) -> Any:
            return f(e, *inputs, **attributes) if inputs and is_tensor(e, inputs[0]) else None

        return f

    return register


def typed(e: Emitter, x: Expr) -> dict[str, str]:
    """`dtype=…` of a layer that computes with `x`, where it has to be said."""
    dtype = e.dtype(x)
    assert dtype is not None
    return _TYPED[dtype]


def applied(e: Emitter, layer: Expr, *inputs: Any) -> Expr:
    """A layer called with tensors, or lists of them."""
    return LayerCall(layer, tuple(map(lift, inputs)), e.node)


def made(e: Emitter, of: Expr, name: str, *arguments: Any, **options: Any) -> Expr:
    """The constructor of a layer that computes in the dtype of a tensor."""
    constructor: Expr = getattr(layers, name)
    return constructor(*arguments, **options, **typed(e, of))


def owns(e: Emitter, *weights: Expr | None) -> bool:
    """Whether a layer can own these weights of the current node: constants that only layers equal to it use."""
    for weight in weights:
        if weight is None:
            continue
        if not isinstance(weight, Arg) or e.const(weight) is None or e.dtype(weight) not in _TYPED:
            return False
        may_be_shared = len(e.shape(weight) or ()) > 1 or not e.weights.is_merged
        if may_be_shared and not all(_is_alike(e.node, use.node) for use in weight._value.uses()):
            return False
    return True


def _is_alike(node: ir.Node, other: ir.Node) -> bool:
    """Whether two nodes are one layer that is called twice."""
    return node is other or (
        node.op_type == other.op_type
        and node.graph is other.graph
        and list(node.inputs[1:]) == list(other.inputs[1:])
        and {k: a.value for k, a in node.attributes.items()} == {k: a.value for k, a in other.attributes.items()}
    )


def owning(e: Emitter, constructor: Expr, hint: str, **parts: Expr | Part | None) -> Expr:
    """A layer with weights, these in Keras' order; running statistics are no parameters."""
    return e.module(constructor, hint, ("running_mean", "running_var"), **parts)
