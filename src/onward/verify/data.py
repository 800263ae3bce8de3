"""Plausible inputs for a model, read off its graph: sizes that fit, values that the consumers can take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.model import Model
from onward.verify.sizes import Slot, candidates, slots

Array = np.ndarray[Any, np.dtype[Any]]
Inputs = dict[str, Any]
"""Arrays by input name; a list of arrays for a sequence."""

# fmt: off
VALUE_KEEPING = {
    "Reshape", "Unsqueeze", "Squeeze", "Transpose", "Cast", "Identity", "Slice", "Expand", "Concat",
    "Flatten", "Tile", "TopK", "Split", "Pad", "Gather", "GatherElements", "GatherND",
}
# fmt: on
MASK_NAME = re.compile("mask", re.IGNORECASE)
LENGTH_NAME = re.compile(r"len|width|height|size|num|count", re.IGNORECASE)


def make_inputs(model: Model, seed: int = 0, dims: Mapping[str, int] | None = None) -> Inputs:
    """One set of inputs that the model runs on; the same seed gives the same inputs.

    `dims` fixes dynamic dimensions by name. For the rest, sizes are tried in turn until ONNX Runtime runs
    them and no output is empty.
    """
    return next(input_sets(model, seed, dims))


def input_sets(model: Model, seed: int = 0, dims: Mapping[str, int] | None = None) -> Iterator[Inputs]:
    """Sets of inputs that the model runs on, each of other sizes; a single one where nothing is dynamic."""
    inputs = slots(model.ir)
    options = list(candidates(inputs, dims))
    runs = _runs_on_onnxruntime(model) if len(options) > 1 else lambda feeds: True
    found = False
    for number, sizes in enumerate(options):
        if runs(feeds := fill(inputs, sizes, seed + number)):
            found = True
            yield feeds
    if not found:
        names = sorted({dim for slot in inputs for dim in slot.dims if isinstance(dim, str)} - set(dims or {}))
        raise UnsupportedError(
            f"no sizes found on which {model.name} runs: {len(options)} tried for the dynamic dimensions "
            f"{', '.join(names)}. Give them by name, for example dims={{{names[0]!r}: 16}}."
        )


def fill(inputs: list[Slot], sizes: Mapping[str, int], seed: int) -> Inputs:
    """Values for the inputs, their dynamic dimensions having the given sizes."""
    rng = np.random.default_rng(seed)
    longest = max((size for name, size in sizes.items() if name != "batch"), default=8)
    feeds: Inputs = {}
    for slot in inputs:
        shape = tuple(sizes[dim] if isinstance(dim, str) else dim for dim in slot.dims)
        made = _values(slot, shape, _Clues.of(slot.value), longest, rng)
        feeds[slot.name] = [made, made] if slot.is_sequence else made
    return feeds


def _runs_on_onnxruntime(model: Model) -> Callable[[Inputs], bool]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    source = str(model.path) if model.path else model.to_proto().SerializeToString()
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    def accepts(feeds: Inputs) -> bool:
        try:
            outputs = session.run(None, feeds)
        except Exception:  # ONNX Runtime's errors share no narrower base class
            return False
        return all(np.size(output) for output in outputs)

    return accepts


@dataclass
class _Clues:
    """What the nodes that read an input say about its values."""

    bounds: list[int] = field(default_factory=list)
    choices: list[Any] = field(default_factory=list)
    is_mask: bool = False
    is_length: bool = False
    is_positive: bool = False
    is_pixels: bool = False
    thresholds: dict[int, list[float]] = field(default_factory=dict)
    affine: tuple[Array, Array] | None = None

    @classmethod
    def of(cls, value: ir.Value) -> _Clues:
        clues = cls()
        for node, index in _readers(value):
            if rule := _CLUES.get(node.op_type):
                rule(clues, node, index)
        return clues


def _readers(value: ir.Value) -> Iterator[tuple[ir.Node, int]]:
    """Every (node, input number) that the values reach unchanged, subgraphs included."""
    pending, seen = [value], {id(value)}
    while pending:
        for node, index in pending.pop().uses():
            yield node, index
            if node.op_type in VALUE_KEEPING and (index == 0 or node.op_type == "Concat"):
                fresh = [output for output in node.outputs if id(output) not in seen]
                seen.update(map(id, fresh))
                pending += fresh


def _gather(clues: _Clues, node: ir.Node, index: int) -> None:
    table = node.inputs[0]
    if index == 1 and table is not None and table.shape is not None:
        size = table.shape[node.attributes.get_int("axis", 0)]
        if isinstance(size, int):
            clues.bounds.append(size)


def _one_hot(clues: _Clues, node: ir.Node, index: int) -> None:
    depth = _constant(node.inputs[1])
    if index == 0 and depth is not None:
        clues.bounds.append(int(depth.reshape(-1)[0]))


def _embed(clues: _Clues, node: ir.Node, index: int) -> None:
    tables = {0: 2, 1: 4}
    table = node.inputs[tables[index]] if index in tables else None
    if table is not None and table.shape is not None and isinstance(size := table.shape[0], int):
        clues.bounds.append(size)
    clues.is_mask |= index == 7


def _equal(clues: _Clues, node: ir.Node, index: int) -> None:
    constant = _constant(node.inputs[1 - index])
    if constant is not None:
        clues.choices += list(constant.reshape(-1))


def _label_encoder(clues: _Clues, node: ir.Node, index: int) -> None:
    attributes = node.attributes
    clues.choices += [*attributes.get_strings("keys_strings", ()), *attributes.get_ints("keys_int64s", ())]
    clues.choices += [*attributes.get_strings("cats_strings", ()), *attributes.get_ints("cats_int64s", ())]
    clues.choices += attributes.get_strings("pool_strings", ())


def _recurrent(clues: _Clues, node: ir.Node, index: int) -> None:
    clues.is_length |= index == 4


def _condition(clues: _Clues, node: ir.Node, index: int) -> None:
    clues.is_mask |= index == 0


def _subtract(clues: _Clues, node: ir.Node, index: int) -> None:
    constant = _constant(node.inputs[1 - index])
    if constant is not None and constant.size:
        clues.is_mask |= index == 1 and bool(np.all(constant == 1))
        clues.is_pixels |= index == 0 and bool(np.all(constant > 50) and np.all(constant < 200))


def _divide(clues: _Clues, node: ir.Node, index: int) -> None:
    constant = _constant(node.inputs[1 - index])
    clues.is_positive |= index == 1
    clues.is_pixels |= index == 0 and constant is not None and constant.size == 1 and 127 <= constant.max() <= 256


def _positive(clues: _Clues, node: ir.Node, index: int) -> None:
    clues.is_positive = True


def _trees(clues: _Clues, node: ir.Node, index: int) -> None:
    splits = node.attributes.get_tensor("nodes_splits") if "nodes_splits" in node.attributes else None
    values = splits.numpy() if splits is not None else node.attributes.get_floats("nodes_values", ())
    for feature, value in zip(node.attributes.get_ints("nodes_featureids", ()), values, strict=False):
        if np.isfinite(value):
            clues.thresholds.setdefault(feature, []).append(float(value))


def _scaler(clues: _Clues, node: ir.Node, index: int) -> None:
    offset = np.asarray(node.attributes.get_floats("offset", (0.0,)))
    scale = np.asarray(node.attributes.get_floats("scale", (1.0,)))
    clues.affine = offset, np.divide(1, scale, out=np.ones_like(scale), where=scale != 0)


_CLUES: dict[str, Callable[[_Clues, ir.Node, int], None]] = {
    "Gather": _gather,
    "OneHot": _one_hot,
    "EmbedLayerNormalization": _embed,
    "Equal": _equal,
    "LabelEncoder": _label_encoder,
    "CategoryMapper": _label_encoder,
    "OneHotEncoder": _label_encoder,
    "TfIdfVectorizer": _label_encoder,
    "LSTM": _recurrent,
    "GRU": _recurrent,
    "RNN": _recurrent,
    "Where": _condition,
    "Not": _condition,
    "If": _condition,
    "Sub": _subtract,
    "Div": _divide,
    "Log": _positive,
    "Sqrt": _positive,
    "TreeEnsemble": _trees,
    "TreeEnsembleClassifier": _trees,
    "TreeEnsembleRegressor": _trees,
    "Scaler": _scaler,
}


def _constant(value: ir.Value | None) -> Array | None:
    """The contents of a small constant, whether an initializer or a Constant node."""
    if value is None:
        return None
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None or tensor.size > 4096 else tensor.numpy()


def _values(slot: Slot, shape: tuple[int, ...], clues: _Clues, longest: int, rng: np.random.Generator) -> Array:
    if slot.dtype == ir.DataType.STRING:
        words = [c for c in clues.choices if isinstance(c, str)] or ["a", "b", "onward", ""]
        return np.asarray(rng.choice(np.asarray(words, dtype=object), shape), dtype=object)
    dtype = slot.dtype.numpy()
    is_mask = clues.is_mask and slot.dtype.is_integer()
    if slot.dtype == ir.DataType.BOOL or is_mask or MASK_NAME.search(slot.name):
        return _prefix_mask(shape, rng).astype(dtype)
    if slot.dtype.is_integer():
        return _integers(slot, shape, clues, longest, rng).astype(dtype)
    return _floats(shape, clues, rng).astype(dtype)


def _prefix_mask(shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Ones, then zeros, along the last axis, as padding leaves them; at least half are ones."""
    if not shape:
        return np.asarray(True)
    lengths = rng.integers((shape[-1] + 1) // 2, shape[-1] + 1, shape[:-1])
    return np.asarray(np.arange(shape[-1]) < lengths[..., None])


def _integers(slot: Slot, shape: tuple[int, ...], clues: _Clues, longest: int, rng: np.random.Generator) -> Array:
    if clues.bounds:
        return rng.integers(0, max(1, min(clues.bounds)), shape)
    if choices := [c for c in clues.choices if isinstance(c, int | np.integer)]:
        return rng.choice(np.asarray(choices), shape)
    if clues.is_length or (len(shape) <= 1 and LENGTH_NAME.search(slot.name)):
        lengths = np.sort(rng.integers((longest + 1) // 2, longest + 1, shape), axis=None)[::-1].reshape(shape)
        return np.where(np.arange(lengths.size).reshape(shape) == 0, longest, lengths)
    if slot.dtype.bitwidth <= 8:
        return rng.integers(*_integer_range(slot.dtype), shape, endpoint=True)
    return rng.integers(0, 4, shape)


def _integer_range(dtype: ir.DataType) -> tuple[int, int]:
    if dtype.is_signed():
        return -(2 ** (dtype.bitwidth - 1)), 2 ** (dtype.bitwidth - 1) - 1
    return 0, 2**dtype.bitwidth - 1


def _floats(shape: tuple[int, ...], clues: _Clues, rng: np.random.Generator) -> Array:
    if clues.is_pixels:
        return rng.uniform(0, 255, shape).round()
    if clues.is_positive:
        return rng.uniform(0.5, 1.5, shape)
    values = rng.standard_normal(shape)
    if clues.affine is not None:
        offset, deviation = clues.affine
        return values * deviation + offset
    for feature, thresholds in clues.thresholds.items():
        if len(shape) == 2 and feature < shape[1]:
            spread = float(np.std(thresholds)) or abs(thresholds[0]) or 1.0
            values[:, feature] = rng.choice(thresholds, shape[0]) + rng.normal(0, 0.1 * spread, shape[0])
    return values
