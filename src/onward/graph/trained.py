"""Which constants of a model are weights, and which of those training changes.

Frontends know, and record it in the metadata of the model; torch.export writes its parameters and buffers down; of any
other file its form tells. The answer is put into the `meta` of each value before anything is rewritten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.names import PROCESSING
from onward.graph.walk import all_graphs
from onward.graph.weight_names import Signature, holds_parameters, is_automatic, signature
from onward.hub.types import FLOATING

RECORD = "onward.trained"
"""Of the model's metadata: the name of each variable of the original, and whether it is trained, as JSON."""
HALF = "first half"
"""In that record, of a bias of a recurrent layer: the second half is zeros, which are not trained."""
MARK = "onward.weight"
"""Of the `meta` of a value: its `Role`."""

NO_PARAMETERS = {
    "BatchNormalization": (3, 4),
    "Clip": (1, 2),
    "RNN": (5,),
    "GRU": (5,),
    "LSTM": (5, 6),
    "RotaryEmbedding": (1, 2),
    "com.microsoft::RotaryEmbedding": (2, 3),
    "com.microsoft::MRotaryEmbedding": (2, 3),
    "com.microsoft::GroupQueryAttention": (7, 8, 12, 13),
    "com.microsoft::SparseAttention": (9, 10),
}
"""Inputs that are no parameters though they are floats: running statistics, bounds, initial states, angles, scales."""
SIZES = {"Resize", "Upsample", "Range", "Expand", "Tile", "Pad", "OneHot", "Dropout", "ConstantOfShape"}
"""Ops whose float inputs besides the first say how, not what."""
_QUANTISED = re.compile(r"^Q[A-Z]|Quant|Integer|NBits|Bnb4")
"""Ops that compute with integers: their floats are scales."""
_LAYERS = {
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "Gemm": (1, 2),
    "MatMul": (1,),
    "RNN": (1, 2, 3),
    "GRU": (1, 2, 3),
    "LSTM": (1, 2, 3, 7),
    "BatchNormalization": (1, 2),
    "InstanceNormalization": (1, 2),
    "LayerNormalization": (1, 2),
    "GroupNormalization": (1, 2),
    "RMSNormalization": (1,),
    "PRelu": (1,),
}
"""Inputs that are the weights of a layer, wherever they are held."""
_PRODUCTS = ("MatMul", "Conv", "ConvTranspose")
_NAMED_AS_WEIGHTS = re.compile(r".[./](weight|bias|gamma|beta|alpha)(:\d+)?$")
_FAR = 1e4
"""Numbers beyond this one are added to hide something: they are masks."""


@dataclass(frozen=True)
class Role:
    """What a weight is for."""

    trained: bool
    name: str
    """The one that a person gave it, or those whom it was made of; none where an exporter made one up."""
    by_half: bool = False
    """Whether only the first half of its last axis is trained: Keras adds one bias where ONNX adds two."""


def role(value: ir.Value) -> Role | None:
    """What a value is as a weight; None for what is computed, and for numbers of a formula."""
    found: Role | None = value.meta.get(MARK)
    return found


def is_trained(value: ir.Value) -> bool:
    found = role(value)
    return found is not None and found.trained


def is_processing(value: ir.Value) -> bool:
    """Whether a constant is read by data processing alone."""
    return bool(value.uses()) and all((node.name or "").startswith(PROCESSING) for node, _ in value.uses())


def computes_with_integers(op_type: str) -> bool:
    """Whether the floats that an op reads beside its data are scales of integers."""
    return _QUANTISED.search(op_type) is not None


def inherit(value: ir.Value, *sources: ir.Value) -> None:
    """Make a constant what those are that it was made of: a weight if all of them are."""
    roles = [role(source) for source in sources]
    known = [found for found in roles if found is not None]
    if known and len(known) == len(roles):
        names = {found.name for found in known}
        value.meta[MARK] = Role(all(found.trained for found in known), names.pop() if len(names) == 1 else "")


def record(model: ir.Model, variables: Mapping[str, bool | str]) -> None:
    """Write down which variables there are and whether they are trained, or HALF, as far as the model holds them."""
    held = {name for graph in all_graphs(model.graph) for name in graph.initializers}
    model.metadata_props[RECORD] = json.dumps({name: yes for name, yes in variables.items() if name in held})


def recorded(model: ir.Model) -> dict[str, bool | str] | None:
    """What a frontend wrote down; None where there is nothing, or something else."""
    try:
        found = json.loads(model.metadata_props.get(RECORD, "null"))
    except (ValueError, RecursionError):
        return None
    return (
        {name: HALF if yes == HALF else yes is True for name, yes in found.items()} if isinstance(found, dict) else None
    )


def mark_weights(model: ir.Model) -> None:
    """Give every constant that is a weight its role."""
    judge = _Judge(model)
    for value in _constants(model.graph):
        found = judge.role(value)
        if found is not None:
            value.meta[MARK] = found


def _constants(graph: ir.Graph) -> Iterator[ir.Value]:
    for each in list(all_graphs(graph)):
        yield from each.initializers.values()
        yield from (n.outputs[0] for n in each if n.op_type == "Constant" and n.domain in ("", "ai.onnx"))


class _Judge:
    def __init__(self, model: ir.Model) -> None:
        held = {name: value for graph in all_graphs(model.graph) for name, value in graph.initializers.items()}
        self._record = recorded(model)
        self._state: Signature = signature(model.graph)
        self._is_complete = holds_parameters(self._state, held)
        """Whether all other constants are something else."""
        self._is_torch = model.producer_name == "pytorch"
        self._has_initializers = any(value.dtype in FLOATING for value in held.values())

    def role(self, value: ir.Value) -> Role | None:
        name = value.name or ""
        if is_processing(value):
            return None
        if value.dtype not in FLOATING:
            tensor = ir.convenience.get_const_tensor(value)
            if tensor is None or tensor.dtype not in FLOATING:
                return None
        if self._record is not None:
            yes = self._record.get(name)
            return None if yes is None else Role(bool(yes), name, yes == HALF)
        if name in self._state:
            is_buffer, persistent = self._state[name]
            return Role(not is_buffer, name) if persistent else None
        if self._is_complete:
            return None
        if self._state or (not value.is_initializer() and self._has_initializers):
            return Role(True, "") if _is_of_layer(value) else None
        is_named = value.is_initializer() and not is_automatic(name)
        single = _size(value) == 1
        if single and not self._is_weight_of_one(value, is_named):
            return None
        if is_parameter(value) and (is_named or not (_is_mask(value) or _stands_for_none(value))):
            return Role(True, name if is_named else "")
        return Role(False, name) if is_named and not single else None

    def _is_weight_of_one(self, value: ir.Value, is_named: bool) -> bool:
        """Whether a single number is a weight: those of formulas have no name, or none that says where they belong."""
        name = value.name or ""
        if _NAMED_AS_WEIGHTS.search(name) or (is_named and (self._is_torch or "." in name)):
            return True
        return bool(value.shape) and any(reads_weight(*use) for use in value.uses())


def is_parameter(value: ir.Value) -> bool:
    """Whether training usually changes a float that is read as this one is, or as what is computed of it alone is."""
    for node, index in value.uses():
        if _is_constant(node) and not is_parameter(node.outputs[0]):
            return False
        if computes_with_integers(node.op_type) and (node.op_type, index) != ("QuantizeLinear", 0):
            return False
        standard = node.domain in ("", "ai.onnx")
        if index in NO_PARAMETERS.get(node.op_type if standard else f"{node.domain}::{node.op_type}", ()):
            return False
        if standard:
            if node.op_type in SIZES and index > 0:
                return False
            if node.op_type == "Gather" and index == 0 and value.shape is not None and value.shape.rank() < 2:
                return False
    return True


def _is_constant(node: ir.Node) -> bool:
    """Whether a node only computes another constant."""
    given = [value for value in node.inputs if value is not None]
    return len(node.outputs) == 1 and all(ir.convenience.get_const_tensor(value) is not None for value in given)


def _is_of_layer(value: ir.Value) -> bool:
    """Whether a constant is the weight of a layer, and not zeros or ones that stand for none."""
    return (
        _size(value) > 1
        and is_parameter(value)
        and any(reads_weight(*use) for use in value.uses())
        and not _is_neutral(value)
    )


def reads_weight(node: ir.Node, index: int) -> bool:
    """Whether an input of a node is the weight of a layer, be it a bias that is added after it."""
    if node.domain not in ("", "ai.onnx"):
        return False
    if node.op_type == "Add":
        other = node.inputs[1 - index]
        maker = None if other is None else other.producer()
        return maker is not None and maker.op_type in _PRODUCTS
    return index in _LAYERS.get(node.op_type, ())


def _stands_for_none(value: ir.Value) -> bool:
    """Whether an exporter wrote it since a normalisation wants a scale: those that are trained have names."""
    return all(node.op_type.endswith("Normalization") for node, _ in value.uses()) and _is_neutral(value)


def _is_neutral(value: ir.Value) -> bool:
    array = _array(value)
    return array is not None and array.ndim == 1 and bool((array == array[0]).all()) and float(array[0]) in (0.0, 1.0)


def _is_mask(value: ir.Value) -> bool:
    """Whether some of its numbers hide what they are added to, or chosen instead of."""
    if not any(node.op_type in ("Add", "Where", "Sum") for node, _ in value.uses()):
        return False
    array = _array(value)
    return array is not None and not bool((np.abs(array.astype(np.float32)) < _FAR).all())


def _array(value: ir.Value) -> np.ndarray[Any, Any] | None:
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None or tensor.size == 0 else tensor.numpy()


def _size(value: ir.Value) -> int:
    tensor = ir.convenience.get_const_tensor(value)
    return 0 if tensor is None else tensor.size
