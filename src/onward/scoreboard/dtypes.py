"""Dtype coverage: a small model for every op and every type that its schema allows, and what it ought to give.

A model is made from a template by changing the type of all that a type parameter of the schema stands for. It counts
only if ONNX's checker, with its type inference, finds it valid.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, ValueInfoProto, helper

from onward.scoreboard import types
from onward.scoreboard.templates import Template, templates
from onward.verification.compare import Error, measure

RANDOM = ("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
"""Ops whose output no reference can foretell."""

SPELLING = "the standard leaves open how a number is spelled"
ROUNDING = "the standard leaves open how interpolated integers are rounded"
FILLING = "the standard leaves open with which text strings are padded"
OPEN = {(op, "T2", "tensor(string)"): SPELLING for op in ("Cast", "CastLike")} | {
    ("GridSample", "T1", f"tensor({sign}int{bits})"): ROUNDING for sign in ("", "u") for bits in (8, 16, 32, 64)
}
OPEN |= {(op, parameter, "tensor(string)"): FILLING for op, parameter in (("CenterCropPad", "T"), ("GridSample", "T1"))}
"""Results of which there is more than one right form, and why."""

DTYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "output_datatype", "stash_type")
"""Attributes that hold a dtype, in the ops of ai.onnx."""

EIGHT_BITS = ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0")
NARROW = ("float16", "bfloat16", "float4e2m1", *EIGHT_BITS)
"""Floats whose result is computed in float32 and rounded, where that can be done."""


SINGLE = Error(float(np.finfo(np.float32).eps), float(np.finfo(np.float32).eps))
"""The noise of single precision."""


@dataclass(frozen=True)
class Cell:
    """An op with one of its type parameters standing for one type."""

    op: str
    since: int
    """The version of the op."""
    parameter: str
    """As the schema names it: T, T1, V."""
    type: str
    """As the schema writes it: `seq(tensor(float16))`."""
    template: str = ""
    model: bytes = b""
    """Empty where no valid model could be made."""
    inputs: tuple[Any, ...] = ()
    expected: tuple[Any, ...] = ()
    truth: str = ""
    """Where `expected` is from; '' where there is nothing to compare with."""
    why: str = ""
    """Why there is nothing."""
    noise: dict[str, Error] = field(default_factory=dict)
    """By output, how far off the type itself makes a result: it widens the tolerance."""

    @property
    def key(self) -> str:
        return f"{self.op} {self.parameter} {self.type}"


@cache
def ops(opset: int) -> dict[str, onnx.defs.OpSchema]:
    """All ops of ai.onnx: the newest version of each up to `opset`, or the oldest of those that came later."""
    found: dict[str, onnx.defs.OpSchema] = {}
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version):
        if not schema.domain and (schema.since_version <= opset or schema.name not in found):
            found[schema.name] = schema
    return {name: found[name] for name in sorted(found) if not found[name].deprecated}


def keys(op: str, opset: int) -> list[str]:
    """The keys of what `cells` gives."""
    return [cell.key for cell in _empty(ops(opset)[op])]


def _empty(schema: onnx.defs.OpSchema) -> list[Cell]:
    return [
        Cell(schema.name, schema.since_version, constraint.type_param_str, kind)
        for constraint in schema.type_constraints
        if len(constraint.allowed_type_strs) > 1
        for kind in sorted(constraint.allowed_type_strs)
    ]


def cells(op: str, opset: int) -> list[Cell]:
    """All cells of an op, each with its model, its data and what onnx's reference evaluator says."""
    schema = ops(opset)[op]
    return [_cell(cell, schema, max(opset, schema.since_version)) for cell in _empty(schema)]


def _cell(cell: Cell, schema: onnx.defs.OpSchema, opset: int) -> Cell:
    """The first template that gives a valid model with a known result; else the first that gives a valid model."""
    if cell.op in RANDOM:
        return replace(cell, why="its output is random")
    if why := OPEN.get((cell.op, cell.parameter, cell.type)):
        return replace(cell, why=why)
    best = replace(cell, why="no case of the suite can be written in this type")
    for template in sorted(templates(cell.op), key=lambda template: _rare(template, schema, cell.parameter)):
        for linked in (False, True):
            made = _instance(cell, schema, template, opset, linked)
            if made is None:
                continue
            made = _with_truth(made, schema, template, opset, linked)
            if made.truth:
                return made
            best = best if best.model else made
            break
    return best


def _rare(template: Template, schema: onnx.defs.OpSchema, parameter: str) -> int:
    """How many inputs and outputs have a rare dtype and keep it, which may be what a runner refuses."""
    kinds = {info.name: types.kind_of(info.type) for info in (*template.inputs, *template.outputs)}
    formals = [
        *zip(template.node.input, _formals(schema.inputs, len(template.node.input)), strict=False),
        *zip(template.node.output, _formals(schema.outputs, len(template.node.output)), strict=False),
    ]
    kept = [kinds[name] for name, kind in formals if kind != parameter and kinds.get(name)]
    return sum(types.leaf(kind) not in types.COMMON for kind in kept)


def _instance(
    cell: Cell, schema: onnx.defs.OpSchema, template: Template, opset: int, linked: bool, data: str = ""
) -> Cell | None:
    """The template in the cell's type, or None where that is not valid.

    With `linked`, everything else that has the same dtype in the template changes, too: what is in a sequence and what
    is put into it. Values are made in the dtype `data` first, if it is given.
    """
    node = NodeProto()
    node.CopyFrom(template.node)
    formal = [*zip(node.input, _formals(schema.inputs, len(node.input)), strict=False)]
    bound = {name for name, kind in formal if name and kind == cell.parameter}
    kinds = {info.name: types.kind_of(info.type) for info in template.inputs}
    if any(types.structure(kinds[name]) != types.structure(cell.type) for name in bound if name in kinds):
        return None
    dtype = types.leaf(cell.type)
    old = {types.leaf(kinds[name]) for name in bound if name in kinds} or {"float"}
    if not bound and not linked and not _set_dtype(node, dtype):
        return None
    changed = {name for name, kind in kinds.items() if name in bound or (linked and types.leaf(kind) in old)}
    if linked:
        _change_bodies(node, old, dtype)
    inputs, values = [], []
    for info, value in zip(template.inputs, template.values, strict=True):
        copy = ValueInfoProto()
        copy.CopyFrom(info)
        tensor = types.tensor_of(copy.type)
        if info.name in changed and tensor is not None:
            tensor.elem_type = types.code(dtype)
            value = types.convert(types.convert(value, data) if data else value, dtype)
            value = _in_domain(cell.op, list(node.input).index(info.name) if info.name in node.input else -1, value)
        inputs.append(copy)
        values.append(value)
    model = _model(node, inputs, template.outputs, opset)
    if model is None or not _stands_for(cell, schema, node, model):
        return None
    return replace(cell, template=template.name, model=model.SerializeToString(), inputs=tuple(values))


def _formals(formals: Any, count: int) -> list[str]:
    """The type of each actual parameter; the last formal one may stand for many."""
    kinds = [formal.type_str for formal in formals]
    return kinds + kinds[-1:] * (count - len(kinds))


def _set_dtype(node: NodeProto, dtype: str) -> bool:
    """Ask for the dtype by the attribute that decides it, if there is one."""
    for attribute in node.attribute:
        if attribute.name in DTYPE_ATTRIBUTES:
            attribute.i = types.code(dtype)
            return True
        if attribute.name == "value" and attribute.type == AttributeProto.TENSOR:
            value = types.convert(onnx.numpy_helper.to_array(attribute.t), dtype)
            attribute.t.CopyFrom(onnx.numpy_helper.from_array(value))
            return True
    for name in DTYPE_ATTRIBUTES:
        if name in onnx.defs.get_schema(node.op_type, "").attributes:
            node.attribute.append(helper.make_attribute(name, types.code(dtype)))
            return True
    return False


def _change_bodies(node: NodeProto, old: set[str], dtype: str) -> None:
    def change(graph: GraphProto) -> None:
        for info in (*graph.input, *graph.output, *graph.value_info):
            tensor = types.tensor_of(info.type)
            if tensor is not None and types.leaf(types.kind_of(info.type)) in old:
                tensor.elem_type = types.code(dtype)

    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            change(attribute.g)


def _in_domain(op: str, position: int, value: Any) -> Any:
    """Integers that the op is defined for: no division by 0, no negative power."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu" or position != 1:
        return value
    if op in ("Div", "Mod"):
        return np.where(value == 0, 1, value).astype(value.dtype)
    return np.abs(value) if op == "Pow" else value


def _model(
    node: NodeProto, inputs: list[ValueInfoProto], outputs: tuple[ValueInfoProto, ...], opset: int
) -> ModelProto | None:
    """A valid model, with the types of its outputs inferred; None where there is no such model."""
    untyped = [ValueInfoProto(name=info.name) for info in outputs]
    graph = helper.make_graph([node], "cell", inputs, untyped)
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))
    try:
        model = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        del model.graph.value_info[:]
        for found, wanted in zip(model.graph.output, outputs, strict=True):
            _keep_shape(found, wanted)
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError, ValueError, TypeError):
        return None
    return model if all(types.kind_of(info.type) for info in model.graph.output) else None


def _keep_shape(found: ValueInfoProto, wanted: ValueInfoProto) -> None:
    """Where inference cannot know the shape, because it follows from the data, it is the template's."""
    inferred, known = types.tensor_of(found.type), types.tensor_of(wanted.type)
    if inferred is not None and known is not None and not inferred.HasField("shape"):
        inferred.shape.CopyFrom(known.shape)


def _stands_for(cell: Cell, schema: onnx.defs.OpSchema, node: NodeProto, model: ModelProto) -> bool:
    """Whether the type parameter has the cell's type in the model."""
    kinds = {info.name: types.kind_of(info.type) for info in (*model.graph.input, *model.graph.output)}
    actual = [
        kinds.get(name)
        for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs))
        for name, kind in zip(names, _formals(formals, len(names)), strict=False)
        if name and kind == cell.parameter
    ]
    return bool(actual) and set(actual) <= {cell.type} | ({None} if len(set(actual)) > 1 else set())


def _with_truth(cell: Cell, schema: onnx.defs.OpSchema, template: Template, opset: int, linked: bool) -> Cell:
    """With what the reference evaluator gives, in the type itself or, for narrow floats, rounded from a wider one."""
    narrow, why = reference(cell)
    dtype = types.leaf(cell.type)
    wide = None
    if dtype in NARROW:
        wider = replace(cell, type=types.with_leaf(cell.type, "float"))
        made = _instance(wider, schema, template, opset, linked, data=dtype)
        if made is not None:
            wide = _rounded(reference(made)[0], cell)
    if wide is not None and narrow is None:
        return with_answer(cell, wide, "reference in float32")
    if wide is not None and narrow is not None:
        noise = _noise(cell, wide, narrow)
        if all(np.isfinite(error.worst) for error in noise.values()):
            return replace(with_answer(cell, wide, "reference in float32"), noise=noise)
    if narrow is not None:
        return replace(with_answer(cell, narrow, "reference"), noise=_single(cell, narrow))
    return replace(cell, why=why)


def with_answer(cell: Cell, expected: tuple[Any, ...], truth: str) -> Cell:
    return replace(cell, expected=expected, truth=truth, why="")


def _noise(cell: Cell, wide: tuple[Any, ...], narrow: tuple[Any, ...]) -> dict[str, Error]:
    """By output, how far the reference itself is off in the narrow type; infinite where the two do not compare."""
    names = [info.name for info in onnx.load_from_string(cell.model).graph.output]
    return measure(dict(zip(names, wide, strict=True)), dict(zip(names, narrow, strict=True)))


def _single(cell: Cell, values: tuple[Any, ...]) -> dict[str, Error]:
    """The noise of single precision for outputs that hold no more than that, though they are doubles."""
    names = [info.name for info in onnx.load_from_string(cell.model).graph.output]
    arrays = {name: np.asarray(value) for name, value in zip(names, values, strict=True) if not isinstance(value, list)}
    doubles = {name: array for name, array in arrays.items() if array.dtype == np.float64}
    return {
        name: SINGLE
        for name, array in doubles.items()
        if np.array_equal(array, array.astype(np.float32).astype(np.float64), equal_nan=True)
    }


def _rounded(values: tuple[Any, ...] | None, cell: Cell) -> tuple[Any, ...] | None:
    if values is None:
        return None
    kinds = [types.kind_of(info.type) for info in onnx.load_from_string(cell.model).graph.output]
    try:
        return tuple(_cast(value, types.leaf(kind)) for value, kind in zip(values, kinds, strict=True))
    except (TypeError, ValueError):
        return None


def _cast(value: Any, dtype: str) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return [_cast(item, dtype) for item in value]
    array = np.asarray(value)
    return array if dtype == "string" else array.astype(types.numpy_dtype(dtype))


def reference(cell: Cell) -> tuple[tuple[Any, ...] | None, str]:
    """What onnx's reference evaluator gives, or None and why."""
    from onnx.reference import ReferenceEvaluator

    model = onnx.load_from_string(cell.model)
    feeds = {info.name: value for info, value in zip(model.graph.input, cell.inputs, strict=True)}
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            values = tuple(ReferenceEvaluator(model).run(None, feeds))
    except Exception as error:
        return None, " ".join(f"the reference evaluator: {type(error).__name__}: {error}".split())[:300]
    return checked(model, values, "the reference evaluator")


def checked(model: ModelProto, values: tuple[Any, ...], who: str) -> tuple[tuple[Any, ...] | None, str]:
    """The values, if they are of the types that the model declares."""
    for info, value in zip(model.graph.output, values, strict=True):
        kind = types.kind_of(info.type)
        if not _shaped(kind, value):
            return None, f"{who} does not give {kind}"
        for array in _arrays(value):
            if not types.has_dtype(array, types.leaf(kind)):
                return None, f"{who} gives {array.dtype} instead of {types.leaf(kind)}"
    return values, ""


def _shaped(kind: str, value: Any) -> bool:
    """Whether a value is a list where the type is a sequence, and only there."""
    if kind.startswith("optional"):
        return value is None or _shaped(kind.removeprefix("optional(")[:-1], value)
    if kind.startswith("seq"):
        return isinstance(value, list | tuple) and all(_shaped(kind.removeprefix("seq(")[:-1], item) for item in value)
    return value is not None and not isinstance(value, list | tuple)


def _arrays(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)
    elif value is not None:
        yield np.asarray(value)
