"""The program in a .pt2 file: what of it would be executed, and the program without that."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from onward.errors import InvalidModelError
from onward.formats.pt2.expressions import NotASize, checked

NAME = re.compile(r"[^\W\d]\w*|", re.ASCII)
"""Names of values and arguments: they are written into Python code that PyTorch generates."""
PATH = re.compile(r"(?!.*(^|\.)__)[^\"'\\\x00-\x1f{}]*")
"""Places of weights and modules, and texts, which such code holds in quotation marks."""
OP = re.compile(r"torch\.ops\.(?P<space>\w+)\.(?P<name>\w+)\.(?P<overload>\w+)", re.ASCII)
SPACES = {"aten", "prims", "quantized_decomposed", "torchvision"}
"""Where ops are that only compute."""
FILES = {"from_file", "_print", "set_", "_test_string_default"}
"""Ops that do more: from_file maps any file into memory, and makes it."""
HIGHER_ORDER = {
    *("cond", "while_loop", "while_loop_stack_output", "scan", "associative_scan", "map_impl", "out_dtype", "wrap"),
    *("wrap_with_set_grad_enabled", "wrap_with_autocast", "wrap_activation_checkpoint", "tag_activation_checkpoint"),
    *("strict_mode", "hints_wrapper", "invoke_subgraph", "auto_functionalized", "auto_functionalized_v2"),
    *("with_effects", "flex_attention"),
}
"""Those that call graphs of the file, or ops that are checked as others are."""
PLAIN = {
    *(f"torch.ops.higher_order.{name}" for name in HIGHER_ORDER),
    *(f"torch.sym_{name}" for name in ("not", "int", "float", "ite", "max", "min", "sqrt", "sum")),
    *(f"math.{name}" for name in ("trunc", "ceil", "floor")),
    *(f"_operator.{name}" for name in ("eq", "ne", "le", "ge", "lt", "gt", "neg", "pos", "mul", "add", "sub")),
    *(f"_operator.{name}" for name in ("floordiv", "mod", "pow", "truediv", "and_", "or_", "lshift", "rshift")),
    *("_operator.getitem", "_operator.not_"),
}
STRUCTURES = {
    *(f"builtins.{name}" for name in ("tuple", "list", "dict")),
    *(f"collections.{name}" for name in ("OrderedDict", "deque")),
}
"""What inputs and outputs are nested in."""
DROPPED: dict[str, Any] = {"guards_code": [], "metadata": {}, "treespec_namedtuple_fields": {}}
"""What of a program is not needed: conditions on inputs, which are code, and what debuggers show."""
TEXTS = {"as_string", "as_strings", "torch_version"}
"""Where any text may be: it is only compared, or given to an op as it is."""
PLACES = {"fqn", "parameter_name", "buffer_name", "tensor_constant_name"}
MAPS = {
    *("tensor_values", "sym_int_values", "sym_bool_values", "sym_float_values"),
    *("as_string_to_argument", "opset_version"),
}
"""What has values by their names, where others have fields."""
RANGE = re.compile(r"[a-z]+\d{1,6}|[\w +*/()-]*[^\w][\w +*/()-]*", re.ASCII)
"""What a range of sizes is given for: PyTorch counts up to the number of a symbol."""


class Program:
    """A program as it may be opened, and what would be executed if it were opened as it is."""

    def __init__(self, content: bytes) -> None:
        self.dangers: list[str] = []
        try:
            self.content = json.dumps(self._clean(json.loads(content), "")).encode()
        except (ValueError, RecursionError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise InvalidModelError(f"the program in it cannot be read: {error}") from error

    def _clean(self, part: Any, key: str) -> Any:
        """A part of the program without what would be executed; `key` says which."""
        if key in DROPPED:
            return DROPPED[key]
        if key in CHECKS:
            return CHECKS[key](self, part)
        if key in MAPS and isinstance(part, dict):
            return {self._text(name, key): self._clean(value, "") for name, value in part.items()}
        if isinstance(part, dict):
            return {self._text(name, key): self._clean(value, name) for name, value in part.items()}
        if isinstance(part, list):
            return [self._clean(value, key) for value in part]
        return self._text(part, key) if isinstance(part, str) else part

    def _text(self, text: str, key: str) -> str:
        known = key in TEXTS or (PATH if key in PLACES else NAME).fullmatch(text)
        return text if known else self._danger(f"the name {text[:80]!r} in it is code")

    def _danger(self, what: str) -> str:
        self.dangers.append(what)
        return "refused"

    def _size(self, text: Any) -> str:
        try:
            return checked(text)
        except NotASize:
            return self._danger(f"the size {str(text)[:80]!r} in it is evaluated as Python code")

    def _target(self, target: Any) -> str:
        if isinstance(target, str) and (target in PLAIN or _only_computes(target)):
            return target
        return self._danger(f"it calls {str(target)[:80]!r}, which is none of the ops that only compute")

    def _structure(self, text: Any) -> str:
        """How inputs or outputs are nested."""
        protocol, spec = json.loads(text)
        return json.dumps([protocol, self._nesting(spec)])

    def _inputs(self, text: Any) -> str:
        """Those that are given by name, which are the second part, are arguments of generated code."""
        for part in json.loads(text)[1]["children_spec"][1:]:
            for name in json.loads(part["context"] or "null") or ():
                self._text(str(name), "name")
        return self._structure(text)

    def _nesting(self, spec: dict[str, Any]) -> dict[str, Any]:
        kind, context = spec["type"], spec["context"]
        if kind is None:
            return {"type": None, "context": None, "children_spec": []}
        if kind not in STRUCTURES:
            self._danger(f"inputs or outputs of it are objects of {str(kind)[:80]}")
        keys = json.loads(context) if isinstance(context, str) else context
        if not (keys is None or isinstance(keys, int | list)):
            self._danger("the nesting of inputs or outputs in it is code")
        for one in keys if isinstance(keys, list) else ():
            if not isinstance(one, str | int) or not PATH.fullmatch(str(one)):
                self._danger(f"the name {str(one)[:80]!r} in it is code")
        return {
            "type": kind,
            "context": json.dumps(keys),
            "children_spec": [self._nesting(child) for child in spec["children_spec"]],
        }

    def _ranges(self, part: Any) -> Any:
        for name in part:
            if not RANGE.fullmatch(name):
                self._danger(f"the name {name[:80]!r} in it is code")
        return {name: self._clean(value, "") for name, value in part.items()}

    def _object(self, part: Any) -> Any:
        return self._danger("it holds objects that are no tensors") if part else part


CHECKS: dict[str, Callable[[Program, Any], Any]] = {
    "expr_str": Program._size,
    "target": Program._target,
    "as_operator": Program._target,
    "range_constraints": Program._ranges,
    "in_spec": Program._inputs,
    "out_spec": Program._structure,
    "custom_obj": Program._object,
    "as_custom_obj": Program._object,
    "custom_obj_values": Program._object,
}


def _only_computes(target: str) -> bool:
    found = OP.fullmatch(target)
    if found is None or found["space"] not in SPACES or found["name"] in FILES:
        return False
    overload = "" if found["overload"] == "default" else f".{found['overload']}"
    return f"{found['space']}::{found['name']}{overload}" in _ops()


@cache
def _ops() -> set[str]:
    """What has kernels: TorchScript has more under the same names, such as one that writes files."""
    import torch

    names: Iterable[str] = torch._C._dispatch_get_all_op_names()
    return set(names)
