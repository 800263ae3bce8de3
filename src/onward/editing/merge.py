"""`onward.merge`: two models as one, the second behind the first."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import TypeAlias

import onnx
import onnx_ir as ir

from onward.advice.nearest import meant
from onward.advice.options import option
from onward.editing.levelled import levelled
from onward.editing.metadata import merge_metadata, tidy
from onward.editing.weights import dtype_name
from onward.errors import LeftOutWarning, OnwardError
from onward.formats.dataframe.schema import KEY as COLUMNS
from onward.graph.append import Renamed, moved, set_apart
from onward.graph.build import Builder
from onward.graph.infer import infer
from onward.graph.walk import all_graphs
from onward.hub.wording import quote
from onward.model import Model, load
from onward.training.info.combined import values_of
from onward.training.info.names import all_names, renamed
from onward.training.recipe.described import KEY as RECIPE
from onward.training.recipe.described import recipes

Join: TypeAlias = Mapping[str, str | Sequence[str]]
Given: TypeAlias = Model | str | os.PathLike[str] | bytes | onnx.ModelProto


def merge(first: Given, second: Given, join: Join, *, prefix: str | None = None) -> Model:
    """One model that gives values of the first to inputs of the second.

    `join` is by the name of a value of the first, which may be any of its main graph, the input of the second that it
    feeds, or several, such as {"features": "x"}. What the first gives out beside that, it goes on to give out, and
    inputs of the second that are not fed are inputs of the whole. The types of what is joined have to be equal, and the
    sizes where both are known. Names that both have get `prefix` in the second, "<name of its file>/" unless given;
    functions of one name and other bodies, too. The model of the older opset is upgraded.

    >>> import onward
    >>> model = onward.load("examples/digits/digits.onnx")
    >>> head = onward.extract(model, inputs="relu_4", outputs="logits")
    >>> body = onward.extract(model, outputs="relu_4")
    >>> [value.name for value in onward.merge(body, head, {"relu_4": "relu_4"}).ir.graph.outputs]
    ['logits']
    """
    one, other = load(first), load(second)
    made, remarks = merged(one, other, join, prefix)
    for remark in remarks:
        warnings.warn(remark, LeftOutWarning, stacklevel=2)
    return made


def merged(one: Model, other: Model, join: Join, prefix: str | None = None) -> tuple[Model, list[str]]:
    """The model, and what it is without, a sentence each."""
    first, second = levelled(one, other)
    prefix = f"{other.name}/" if prefix is None else prefix
    pairs = _pairs(first, second, join)
    bound = {entry.value for info in first.training_info for entry in info.update_binding}
    joined = {value for value, _ in pairs}
    graph = first.ir.graph
    kept = [value for value in graph.outputs if value not in joined or value.name in bound]
    had_columns = COLUMNS in first.ir.metadata_props or COLUMNS in second.ir.metadata_props
    _name_sizes(first.ir, second.ir, pairs, prefix)
    made = behind(Builder(first.ir), first, second, {target: value for value, target in pairs}, prefix)
    graph.outputs[:] = [*kept, *made]
    tidy(first.ir)
    first.validate()
    lost = had_columns and COLUMNS not in first.ir.metadata_props
    return first, ["what the columns of the data processing are is left out: onward.pipeline keeps it"] if lost else []


def behind(
    op: Builder, first: Model, second: Model, feeds: Mapping[ir.Value, ir.Value], prefix: str = ""
) -> list[ir.Value]:
    """Write all of the second model into the first, in place, with what it knows of itself; gives what its outputs are.

    `feeds` are by input of the second what it is fed; other inputs become inputs of the first. Both are of the same
    opsets; the second is of no use afterwards.
    """
    op.names.reserve(name for info in first.training_info for name in all_names(info))
    own = {name for info in second.training_info for name in all_names(info)}
    names = set_apart(op.names, first.ir, second.ir, prefix, but=feeds, also=own)
    merge_metadata(first.ir, second.ir, names, prefix)
    wanted = [value.name or "" for value in second.ir.graph.outputs]
    inputs = {v: v if v.is_initializer() else _like(v) for v in second.ir.graph.inputs if v not in feeds}
    new = {value: made for value, made in inputs.items() if value is not made}
    outputs = moved(op, second.ir, {**feeds, **new})
    op.graph.inputs.extend(inputs.values())
    fed = {value.name or "": source.name or "" for value, source in feeds.items()}
    _training(first, second, Renamed({**names.values, **fed}, names.functions))
    first.path = None
    first.ir_version = max(first.ir_version, second.ir_version)
    first.data_files = list(dict.fromkeys([*first.data_files, *second.data_files]))
    given = set(feeds.values())
    return [_named(op, v, name) if v in given else v for v, name in zip(outputs, wanted, strict=True)]


def _named(op: Builder, value: ir.Value, name: str) -> ir.Value:
    """What the second gives out as it was fed, under the name that it has there."""
    same = op.Identity(op.tensor(value)).value
    same.name = op.names.value(name)
    return same


def _like(value: ir.Value) -> ir.Value:
    made = ir.Value(name=value.name, type=value.type, shape=value.shape, doc_string=value.doc_string)
    made.metadata_props.update(value.metadata_props)
    return made


def _training(first: Model, second: Model, names: Renamed) -> None:
    known = recipes(second.ir.metadata_props)
    for index, info in enumerate(second.training_info):
        if index in known:
            number = len(first.training_info)
            first.ir.metadata_props[f"{RECIPE}{number}"] = known[index].renamed(names.values).dumps()
        first.training_info.append(renamed(info, names.values, names.functions))
    first.held |= second.held


def _pairs(first: Model, second: Model, join: Join) -> list[tuple[ir.Value, ir.Value]]:
    """What is given to what, checked by type and size."""
    if not join:
        raise OnwardError(
            f"nothing is joined: name a value of the first model and an input of the second, {option('join')}"
        )
    values, inputs = values_of(first.ir.graph), {v.name or "": v for v in second.ir.graph.inputs}
    found: list[tuple[ir.Value, ir.Value]] = []
    wanted = ((name, [given] if isinstance(given, str) else given) for name, given in join.items())
    for source, target in ((name, each) for name, given in wanted for each in given):
        if source not in values:
            raise OnwardError(f"the first model has no value {quote(source)}{meant(source, values)}")
        if target not in inputs:
            raise OnwardError(f"the second model has no input {quote(target)}{meant(target, inputs)}")
        if any(inputs[target] is known for _, known in found):
            raise OnwardError(f"the input {quote(target)} is given two values")
        found.append((values[source], inputs[target]))
    if any(value.type is None or value.shape is None for value, _ in found):
        typed = first.ir.clone()
        infer(typed)
        known = values_of(typed.graph)
        for value, _ in found:
            value.type = value.type or known[value.name or ""].type
            value.shape = value.shape if value.shape is not None else known[value.name or ""].shape
    for pair in found:
        _check_fits(*pair)
    return found


def _check_fits(value: ir.Value, target: ir.Value) -> None:
    words = f"{quote(value.name or '')} cannot be given to {quote(target.name or '')}"
    if value.type is not None and target.type is not None and value.type != target.type:
        raise OnwardError(f"{words}: it is of type {_typed(value)}, and {_typed(target)} is taken")
    if value.shape is None or target.shape is None:
        return
    fits = len(value.shape) == len(target.shape) and all(
        a == b for a, b in zip(value.shape, target.shape, strict=True) if isinstance(a, int) and isinstance(b, int)
    )
    if not fits:
        raise OnwardError(f"{words}: it is of shape {value.shape}, and {target.shape} is taken")


def _typed(value: ir.Value) -> str:
    return dtype_name(value.dtype) if isinstance(value.type, ir.TensorType) and value.dtype else str(value.type)


def _name_sizes(first: ir.Model, second: ir.Model, pairs: list[tuple[ir.Value, ir.Value]], prefix: str) -> None:
    """Sizes of the second that are those of the first get their names; others, with a name that both have, the prefix.

    A name says that sizes are equal, and the two models did not know of each other.
    """
    taken = {dim.value for value in _values(first) for dim in value.shape or () if isinstance(dim, ir.SymbolicDim)}
    known: dict[str | None, int | str] = {}
    for value, target in pairs:
        for ours, theirs in zip(value.shape or (), target.shape or (), strict=False):
            if not isinstance(theirs, int) and theirs.value is not None:
                size = ours if isinstance(ours, int) else ours.value
                if size is not None:
                    known.setdefault(theirs.value, size)
    for value in _values(second):
        if value.shape is None or value.const_value is not None or value.shape.is_static():
            continue
        sizes: list[int | str | None] = []
        for dim in value.shape:
            name = dim if isinstance(dim, int) else dim.value
            if isinstance(name, str):
                name = known.get(name, f"{prefix}{name}" if name in taken else name)
            sizes.append(name)
        value.shape = ir.Shape(sizes)


def _values(model: ir.Model) -> list[ir.Value]:
    graphs = list(all_graphs(model.graph))
    return [v for g in graphs for v in (*g.inputs, *(output for node in g for output in node.outputs))]
