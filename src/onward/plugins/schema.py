"""The schema of a custom op: from the words of a `CustomOp` to what the onnx package checks and infers by."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import onnx

from onward.plugins.kinds import TensorKind, number_of, read, written

_Schema = onnx.defs.OpSchema
_KINDS = {int: "INT", float: "FLOAT", str: "STRING", bool: "INT"}
_OPTIONS = {"": "Single", "?": "Optional", "*": "Variadic"}


class Formal(NamedTuple):
    """An input or output: `a:T`, `b:T?` that may be left out, `c:T*` any number of them."""

    name: str
    type: str
    option: str


@dataclass(frozen=True)
class Attribute:
    """An attribute by its default, or by its type where a node has to give it."""

    name: str
    kind: type
    is_list: bool
    default: Any
    required: bool

    def plain(self, given: Any) -> Any:
        """A value as functions of the plugin get it."""
        if given is None:
            return None
        if self.is_list:
            return [self._one(item) for item in given]
        return self._one(given)

    def _one(self, given: Any) -> Any:
        if isinstance(given, bytes):  # what is no text, such as the model of a tokenizer, stays as it is
            return given.decode(errors="surrogateescape")
        return self.kind(given)


def formals(text: str) -> list[Formal]:
    """`"a:T b:T?"`."""
    found = []
    for word in text.split():
        name, _, kind = word.partition(":")
        option = kind[-1:] if kind[-1:] in "?*" else ""
        if not name.isidentifier() or not kind.removesuffix(option):
            raise ValueError(f"{word!r} is no input or output: write it as name:type, such as a:T, b:T? or c:float*")
        found.append(Formal(name, kind.removesuffix(option), option))
    return found


def attribute(name: str, given: Any) -> Attribute:
    """What an entry of `attributes` says: a default, or a type, perhaps with `| None`."""
    required = not isinstance(given, types.UnionType)
    if isinstance(given, types.UnionType):
        given = next(part for part in typing.get_args(given) if part is not type(None))
    if isinstance(given, type) or typing.get_origin(given) is list:
        is_list = typing.get_origin(given) is list
        kind = typing.get_args(given)[0] if is_list else given
        return Attribute(name, _checked(name, kind), is_list, None, required)
    is_list = isinstance(given, list | tuple)
    if is_list and not given:
        raise ValueError(f"attribute {name!r}: an empty list does not tell its type; give list[int] | None")
    kind = type(given[0] if is_list else given)
    return Attribute(name, _checked(name, kind), is_list, list(given) if is_list else given, False)


def _checked(name: str, kind: Any) -> type:
    if kind not in _KINDS:
        raise ValueError(f"attribute {name!r} is an int, float, str, bool, or a list of these; it is {kind!r}")
    return typing.cast(type, kind)


def make(
    domain: str,
    name: str,
    version: int,
    inputs: Sequence[Formal],
    outputs: Sequence[Formal],
    constraints: Mapping[str, Sequence[str]],
    attributes: Sequence[Attribute],
    doc: str,
    infer: Callable[[Any], None],
) -> onnx.defs.OpSchema:
    schema = _Schema(
        name,
        domain,
        version,
        doc,
        inputs=[_formal(one, constraints) for one in inputs],
        outputs=[_formal(one, constraints) for one in outputs],
        type_constraints=[(t, [f"tensor({_known(d)})" for d in dtypes], "") for t, dtypes in constraints.items()],
        attributes=[_attribute(one) for one in attributes],
    )
    schema.set_type_and_shape_inference_function(infer)
    return schema


def _known(dtype: str) -> str:
    number_of(dtype)
    return dtype


def _formal(one: Formal, constraints: Mapping[str, Sequence[str]]) -> Any:
    kind = one.type if one.type in constraints else f"tensor({_known(one.type)})"
    option = getattr(_Schema.FormalParameterOption, _OPTIONS[one.option])
    return _Schema.FormalParameter(one.name, kind, param_option=option)


def _attribute(one: Attribute) -> Any:
    if one.default is not None:
        plain = int if one.kind is bool else one.kind
        default = [plain(v) for v in one.default] if one.is_list else plain(one.default)
        return _Schema.Attribute(one.name, onnx.helper.make_attribute(one.name, default))
    kind = getattr(_Schema.AttrType, _KINDS[one.kind] + ("S" if one.is_list else ""))
    return _Schema.Attribute(one.name, kind, "", required=one.required)


Infer = Callable[..., TensorKind | Sequence[TensorKind]]


def inference(
    inputs: Sequence[Formal],
    outputs: Sequence[Formal],
    attributes: Sequence[Attribute],
    infer: Callable[[], Infer | None],
) -> Callable[[Any], None]:
    """What the onnx package calls for each node; `infer` gives the plugin's own function, once there is one."""

    def run(context: Any) -> None:
        kinds = [_input(context, i) for i in range(context.get_num_inputs())]
        by_type = {_at(inputs, i).type: kind.dtype for i, kind in reversed(list(enumerate(kinds))) if kind is not None}
        count = context.get_num_outputs()
        for i in range(count):
            one = _at(outputs, i)
            dtype = by_type.get(one.type) or ("" if one.type in {f.type for f in inputs} else one.type)
            if dtype:
                _set(context, i, TensorKind(dtype))
        function = infer()
        present = [i for i in range(len(kinds)) if context.has_input(i)]
        if function is None or any(kinds[i] is None for i in present):
            return
        given = {a.name: a.plain(_value(context.get_attribute(a.name))) for a in attributes}
        given |= {a.name: a.default for a in attributes if given[a.name] is None}
        try:
            found = function(*kinds, **given)
        except Exception:
            if all(kind is None or kind.shape is not None for kind in kinds):
                raise
            return  # a function that looks at dimensions has nothing to say where there are none
        for i, kind in enumerate([found] if isinstance(found, TensorKind) else found):
            if i < count:
                _set(context, i, kind)

    return run


def _input(context: Any, index: int) -> TensorKind | None:
    return read(context.get_input_type(index), context.get_input_data(index)) if context.has_input(index) else None


def _set(context: Any, index: int, kind: TensorKind) -> None:
    context.set_output_type(index, written(kind))


def _value(proto: Any) -> Any:
    return None if proto is None else onnx.helper.get_attribute_value(proto)


def _at(formal: Sequence[Formal], index: int) -> Formal:
    return formal[min(index, len(formal) - 1)]
