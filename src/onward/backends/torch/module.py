"""Prints the module tree as Python classes: equal modules share a class, what differs between them is an argument."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any

from onward.backends.emit.expr import Call, Device, Expr, Helper, Literal, Name, Ref, Weight, lift, render, walk
from onward.backends.emit.names import identifier, singular
from onward.backends.emit.printer import FunctionPrinter, drop_unread, wrap
from onward.backends.emit.statements import Scope, expressions
from onward.backends.emit.tree import Function, TreeNode
from onward.backends.emit.weights import Tensor
from onward.backends.torch.target import DTYPES, np_

POSITIONAL = {
    "nn.Conv1d": ("in_channels", "out_channels", "kernel_size"),
    "nn.Conv2d": ("in_channels", "out_channels", "kernel_size"),
    "nn.Conv3d": ("in_channels", "out_channels", "kernel_size"),
    "nn.ConvTranspose1d": ("in_channels", "out_channels", "kernel_size"),
    "nn.ConvTranspose2d": ("in_channels", "out_channels", "kernel_size"),
    "nn.ConvTranspose3d": ("in_channels", "out_channels", "kernel_size"),
    "nn.Linear": ("in_features", "out_features"),
    "nn.Embedding": ("num_embeddings", "embedding_dim"),
    "nn.BatchNorm1d": ("num_features",),
    "nn.BatchNorm2d": ("num_features",),
    "nn.BatchNorm3d": ("num_features",),
    "nn.LayerNorm": ("normalized_shape",),
    "nn.GroupNorm": ("num_groups", "num_channels"),
    "nn.LSTM": ("input_size", "hidden_size"),
    "nn.GRU": ("input_size", "hidden_size"),
    "nn.RNN": ("input_size", "hidden_size"),
}
"""What PyTorch calls the positional arguments of its constructors; shared classes name their own after these."""

RESERVED = frozenset({
    "self", "torch", "nn", "F", "np", "math", "Tensor", "Any", "Path", "load", "fill", "load_file",
    "TorchFunctionMode", "Uninitialized",
})  # fmt: skip


@dataclass
class Slot:
    """A number in `__init__` that may differ between modules that are otherwise equal."""

    name: str
    value: Any


@dataclass
class Plan:
    """A class to be: its `__init__` lines with slots left open, and its `forward`."""

    node: TreeNode
    init: list[list[str | Slot]] = field(default_factory=list)
    forward: list[str] = field(default_factory=list)

    @property
    def key(self) -> Any:
        lines = tuple(tuple(p if isinstance(p, str) else None for p in line) for line in self.init)
        return lines, tuple(self.forward), tuple(type(s.value) for s in self.slots())

    def slots(self) -> Iterator[Slot]:
        return (piece for line in self.init for piece in line if isinstance(piece, Slot))


@dataclass
class ModuleWriter:
    """Collects the classes of a model and the helpers they call."""

    root: TreeNode
    class_names: dict[Scope, str] = field(default_factory=dict)
    """Names that the original classes had, by module path."""
    ties: dict[Scope, Scope] = field(default_factory=dict)
    freeze: bool | list[str] = False
    """Which parameters a training step leaves alone: all, none, or those of these names."""
    classes: list[str] = field(default_factory=list)
    helpers: set[str] = field(default_factory=set)
    _constructors: dict[Scope, Expr] = field(default_factory=dict)
    _parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=lambda: {"Model"})

    def write(self, title: str) -> str:
        """The text of all classes, parts before the whole."""
        levels: dict[int, list[TreeNode]] = defaultdict(list)
        _heights(self.root, levels)
        for height in sorted(levels):
            groups: dict[Any, list[Plan]] = defaultdict(list)
            for node in levels[height]:
                if self._is_class(node):
                    plan = self._plan(node)
                    groups[(node is self.root, plan.key)].append(plan)
            for plans in groups.values():
                self._class(plans, title)
        return "\n\n\n".join(self.classes)

    def _is_class(self, node: TreeNode) -> bool:
        return node.leaf is None and not node.is_container and not node.is_parameter_list

    # Classes

    def _plan(self, node: TreeNode) -> Plan:
        plan = Plan(node)
        for attribute, tensor in node.tensors.items():
            plan.init.append(_declare(attribute, tensor))
        for attribute, array in node.arrays.items():
            text = render(np_.array(array.tolist(), dtype=Name("object")), _no_leaf)
            plan.init.append([f"self.{attribute} = {text}"])
        if node.sequential:
            members = [self._construct(child) for child in node.children.values()]
            plan.init.append(["super().__init__(", *_joined(members), ")"])
            return plan
        for attribute, child in node.children.items():
            if attribute.isdigit():
                plan.init.append([f'self.add_module("{attribute}", ', *self._construct(child), ")"])
            else:
                plan.init.append([f"self.{attribute} = ", *self._construct(child)])
        if node.forward is not None:
            plan.forward = self._forward(node, node.forward)
        return plan

    def _class(self, plans: list[Plan], title: str) -> None:
        first = plans[0]
        is_root = first.node is self.root
        name = "Model" if is_root else self._class_name(first.node.path)
        columns = list(zip(*([s.value for s in p.slots()] for p in plans), strict=True))
        parameters: dict[tuple[Any, ...], str] = {}
        for slot, column in zip(first.slots(), columns, strict=True):
            if any(v != column[0] for v in column) and column not in parameters:
                parameters[column] = _unused(slot.name, set(parameters.values()))
        lines = self._init_lines(first, columns, parameters)
        doc = f"{title}, converted from ONNX." if is_root else _places([p.node.path for p in plans])
        signature = ", ".join(["self", *(f"{p}: {_type(c[0])}" for c, p in parameters.items())])
        body = [f'"""{doc}"""', "", *wrap(f"def __init__({signature}) -> None:"), *("    " + line for line in lines)]
        if is_root:
            body += self._root_extras()
        if first.forward:
            body += ["", *first.forward]
        base = "nn.Sequential" if first.node.sequential else "nn.Module"
        self.classes.append("\n".join([f"class {name}({base}):", *("    " + b if b else "" for b in body)]))
        for i, plan in enumerate(plans):
            arguments: dict[str, Expr] = {p: Literal(column[i]) for column, p in parameters.items()}
            positional = len(arguments) <= 3
            self._constructors[plan.node.path] = Call(
                Name(name), tuple(arguments.values()) if positional else (), {} if positional else arguments
            )
        self._parameters[name] = tuple(parameters.values())

    def _root_extras(self) -> list[str]:
        """What only the whole model does: freeze parameters, share weights."""
        lines: list[str] = []
        if self.freeze is True:
            lines.append("    self.requires_grad_(False)")
        elif self.freeze:
            names = render(lift(tuple(self.freeze)), _no_leaf)
            lines += ["    " + line for line in wrap(f"for name in {names}:")]
            lines.append("        self.get_parameter(name).requires_grad = False")
        if self.ties:
            shared = [f"    {access(self.root, a)} = {access(self.root, b)}" for a, b in self.ties.items()]
            lines += ["    self.tie_weights()", "", "def tie_weights(self) -> None:"]
            lines += ['    """Weights that stand in several places are one tensor."""', *shared]
        return lines

    def _init_lines(self, plan: Plan, columns: list[Any], parameters: dict[tuple[Any, ...], str]) -> list[str]:
        lines = [] if plan.node.sequential else ["super().__init__()"]
        remaining = iter(columns)
        for pieces in plan.init:
            text = ""
            for piece in pieces:
                if isinstance(piece, Slot):
                    column = next(remaining)
                    text += parameters.get(column) or render(Literal(piece.value), _no_leaf)
                else:
                    text += piece
            lines += wrap(text)
        return lines

    def _class_name(self, path: Scope) -> str:
        wish = self.class_names.get(path) or class_name(path)
        if wish in RESERVED or wish in self.helpers:
            wish += "Module"
        name = _unused(wish, self._taken)
        self._taken.add(name)
        return name

    def _construct(self, node: TreeNode) -> list[str | Slot]:
        """The expression that makes a child, as text with slots."""
        if node.leaf is not None:
            return self._slotted(node.leaf.constructor)
        if node.is_parameter_list:
            return ["nn.ParameterList([", *_joined([_parameter(tensor) for tensor in node.tensors.values()]), "])"]
        if not self._is_class(node):
            return self._container(node)
        return self._slotted(self._constructors[node.path])

    def _container(self, node: TreeNode) -> list[str | Slot]:
        kind = "nn.Sequential" if node.sequential else "nn.ModuleList"
        if not node.is_numbered:
            items = [[f'"{name}": ', *self._construct(child)] for name, child in node.children.items()]
            return ["nn.ModuleDict({", *_joined(items), "})"]
        items = [self._construct(node.children[str(i)]) for i in range(len(node.children))]
        runs = [list(run) for _, run in itertools.groupby(items, key=_plain_text)]
        if len(runs) == 1 and len(items) > 1 and not node.sequential:
            return [kind, "(", *_repeated(runs[0]), ")"]
        parts = [part for run in runs for part in ([["*(", *_repeated(run), ")"]] if len(run) >= SHORTEST_RUN else run)]
        open_, close = ("(", ")") if node.sequential else ("([", "])")
        return [kind, open_, *_joined(parts), close]

    def _slotted(self, constructor: Expr) -> list[str | Slot]:
        """A constructor call with its integer arguments as slots; what is nested deeper is text."""
        if not isinstance(constructor, Call):
            return [render(constructor, _no_leaf)]
        function = render(constructor._fn, _no_leaf)
        names = self._parameters.get(function) or POSITIONAL.get(function, ())
        items: list[list[str | Slot]] = []
        for i, argument in enumerate(constructor._args):
            items.append([_slot(names[i] if i < len(names) else "size", argument)])
        for key, argument in constructor._kwargs.items():
            items.append([f"{key}=", _slot(key, argument)])
        return [f"{function}(", *_joined(items), ")"]

    # Forward

    def _forward(self, node: TreeNode, function: Function) -> list[str]:
        drop_unread(function.block, function.results)
        is_root = node is self.root
        device: list[str] = []

        def outer(leaf: Expr) -> str:
            match leaf:
                case Weight():
                    if leaf._path in function.foreign:
                        return printer.name_of(function.foreign[leaf._path])
                    return access(node, leaf._path)
                case Helper():
                    self.helpers.add(leaf._name)
                    return leaf._name
                case Device():
                    return device[0] if device else 'torch.device("cpu")'
            raise TypeError(type(leaf).__name__)

        printer = FunctionPrinter(outer, RESERVED | _called(function), use_hints=is_root)
        arguments = []
        for i, var in enumerate(function.arguments):
            name = printer.argument(
                var, "x" if i == 0 and not is_root and var.kind == "tensor" else None, pinned=is_root
            )
            if var.kind == "tensor" and not device:
                device.append(f"{name}.device")
            arguments.append(f"{name}: {_annotation(var.kind)}")
        lines = printer.function(function.block, function.results)
        results = ", ".join(printer.text(r) for r in function.results)
        returns = "Tensor" if len(function.results) == 1 and _is_tensor(function.results[0]) else "Any"
        header = wrap(f"def forward({', '.join(['self', *arguments])}) -> {returns}:")
        return [*header, *("    " + line for line in [*lines, *wrap(f"return {results}")])]


def access(node: TreeNode, path: Scope) -> str:
    """How code in the class of `node` gets at what stands at `path` below it."""
    text, here = "self", node
    for part in path[len(node.path) :]:
        child = here.children.get(part)
        if part.isdigit() and here.is_parameter_list:
            text += f"[{part}]"
        elif part.isdigit() and not here.is_container:
            kind = "submodule" if child is not None else "parameter" if here.tensors[part].parameter else "buffer"
            text += f'.get_{kind}("{part}")'
        elif part.isdigit():
            text += f"[{part}]" if here.is_numbered else f'["{part}"]'
        else:
            text += f".{part}"
        if child is None:
            break
        here = child
    return text


def class_name(path: Scope) -> str:
    """`('layer1', '0')` → Layer1Block, `('blocks', '0')` → Block."""
    words = [p for p in path if not p.isdigit()]
    base = identifier(words[-1] if words else "block")
    member = singular(base) if path and path[-1].isdigit() else base
    camel = "".join(w[:1].upper() + w[1:] for w in member.split("_") if w) or "Part"
    if path and path[-1].isdigit() and member == base:
        return camel + "Block"
    return camel + "Part" if iskeyword(camel) else camel


def _heights(node: TreeNode, levels: dict[int, list[TreeNode]]) -> int:
    height = 1 + max((_heights(c, levels) for c in node.children.values()), default=0)
    levels[height].append(node)
    return height


def _called(function: Function) -> set[str]:
    """Names of helpers used in the function, so that no variable hides one."""
    return {
        leaf._name
        for statement in function.block.body
        for expr in expressions(statement)
        for leaf in walk(expr)
        if isinstance(leaf, Helper)
    }


def _slot(name: str, argument: Expr) -> str | Slot:
    if isinstance(argument, Literal) and isinstance(argument._value, int) and not isinstance(argument._value, bool):
        return Slot(re.sub(r"\W", "", name), argument._value)
    return render(argument, _no_leaf)


SHORTEST_RUN = 3
"""Two equal members of a list are written out; more are a comprehension."""


def _repeated(run: list[list[str | Slot]]) -> list[str | Slot]:
    return [*run[0], f" for _ in range({len(run)})"]


def _joined(items: list[list[str | Slot]]) -> list[str | Slot]:
    out: list[str | Slot] = []
    for i, item in enumerate(items):
        out += [", "] if i else []
        out += item
    return out


def _plain_text(pieces: list[str | Slot]) -> str:
    return "".join(p if isinstance(p, str) else repr(p.value) for p in pieces)


def _unused(wish: str, taken: set[str]) -> str:
    name, n = wish, 1
    while name in taken:
        n += 1
        name = f"{wish}{n}"
    return name


def _places(paths: list[Scope]) -> str:
    """Where instances of a class stand, for its docstring."""
    names = [".".join(p) for p in paths]
    if len(names) <= 2:
        return " and ".join(names) + "."
    return f"{names[0]}, {names[1]}, … {names[-1]}: {len(names)} in all."


def _type(value: Any) -> str:
    return type(value).__name__


def _is_tensor(expr: Expr) -> bool:
    return not isinstance(expr, Ref) or expr._var.kind == "tensor"


def _annotation(kind: str) -> str:
    return {"tensor": "Tensor", "host": "int"}.get(kind, "Any")


def _declare(attribute: str, tensor: Tensor) -> list[str | Slot]:
    """`self.scale = nn.Parameter(torch.empty(64))`, with the sizes as slots."""
    if tensor.parameter and attribute.isdigit():
        return [f'self.register_parameter("{attribute}", ', *_parameter(tensor), ")"]
    if tensor.parameter:
        return [f"self.{attribute} = ", *_parameter(tensor)]
    persistent = ")" if tensor.persistent else ", persistent=False)"
    return [f'self.register_buffer("{attribute}", ', *_empty(tensor), persistent]


def _parameter(tensor: Tensor) -> list[str | Slot]:
    return ["nn.Parameter(", *_empty(tensor), ")"]


def _empty(tensor: Tensor) -> list[str | Slot]:
    dims: list[list[str | Slot]] = [[Slot("size", n)] for n in tensor.shape] or [["()"]]
    dtype = DTYPES[tensor.dtype]
    return ["torch.empty(", *_joined(dims), ")" if dtype == "float32" else f", dtype=torch.{dtype})"]


def _no_leaf(leaf: Expr) -> tuple[str, int]:
    raise TypeError(f"{type(leaf).__name__} in a constructor")
