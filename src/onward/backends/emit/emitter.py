"""From a canonical graph to statements: asks the backend's rule for each node and keeps what the rules need to know.

A rule is a function `rule(e, *inputs, **attributes) -> expression(s)`: inputs are `Arg`s (None where an optional input
is absent), attributes come with their defaults filled in. `e` answers what is known about a value: `e.const`, `e.host`,
`e.dtype`, `e.rank`, `e.shape`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.expr import Device, Expr, Lazy, Ref, Var, lift
from onward.backends.emit.host import FLOATS, HostNumbers
from onward.backends.emit.names import path_of
from onward.backends.emit.scopes import has_scope, scope_of
from onward.backends.emit.statements import Assign, Block, Compound, Define, Do, Group, Keyword, Scope, Statement
from onward.backends.emit.target import Target
from onward.backends.emit.weights import Part, Weights, text
from onward.errors import ConversionError, OnwardError, UnsupportedError
from onward.graph.origin import origin
from onward.graph.trained import role
from onward.graph.values import INTEGERS, LIMIT, constant_items
from onward.graph.weight_names import is_automatic
from onward.hub.stored import in_place
from onward.plugins.advice import LEFT_TO_RUNTIME, divided, next_step
from onward.spec.meaning import parameters

Array = np.ndarray[Any, Any]
FALLBACK = "onward::OnnxPart"
"""The op of a backend that can leave a part of the model to ONNX Runtime."""


class Arg(Lazy):
    """An input of a node inside a rule's expression: the tensor, wherever it comes from."""

    __slots__ = ("_emitter", "_forced", "_node", "_value")

    def __init__(self, emitter: Emitter, value: ir.Value) -> None:
        self._emitter = emitter
        self._value = value
        self._node = emitter.node
        self._forced: Expr | None = None

    def _force(self) -> Expr:
        if self._forced is None:
            scope = scope_of(self._node) if self._node is not None else ()
            self._forced = self._emitter.tensor_of(self._value, scope)
        return self._forced


@dataclass(frozen=True)
class Unpack:
    """One expression that yields all outputs of a node as a tuple or list."""

    value: Expr
    roles: tuple[str, ...] = ()
    """What the outputs are called inside modules."""


@dataclass(frozen=True)
class Hosted:
    """An output of a rule that is Python numbers, not a tensor."""

    items: Array


class Emitter:
    """Holds the state of one conversion: the block being written, variables, host values, weights."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.block = Block()
        self.weights = Weights()
        self.nonnegative: set[Var] = set()
        self.producer = ""
        """Who wrote the file: some ops can be said more plainly when it was this very framework."""
        self.flags: dict[str, Var] = {}
        """Arguments of the model that are not in the file, such as `training`."""
        self.bounds: Mapping[str, int] = {}
        """How many results there are at most, by name, where only data decide: see `bound`."""
        self.open: list[str] = []
        """Names of those that were asked for: of nodes, and of their outputs."""
        self.counts: dict[ir.Node, Expr] = {}
        """For each node with a bound, how many results there are: the function gives them after its outputs."""
        self.node: ir.Node = None  # type: ignore[assignment]  # the node whose rule runs
        self._vars: dict[ir.Value, Var] = {}
        self._exprs: dict[ir.Value, Expr] = {}
        self._hosts: dict[ir.Value, Array] = {}
        self._host_numbers = HostNumbers(self)
        self._dims: dict[tuple[ir.Value, int, Scope], tuple[Block, Expr]] = {}
        self._constants: dict[ir.Value, Array] = {}
        self._same: dict[ir.Value, ir.Value] = {}

    # What is known about a value

    def const(self, x: Expr | None) -> Array | None:
        """The constant value of an input, or None if it is not a constant."""
        return None if x is None else self.constant_of(_value(x))

    def host(self, x: Expr | None) -> Array | None:
        """An object array of numbers and expressions where the input is computed from shapes and constants."""
        return None if x is None else self.host_of(_value(x))

    def dtype(self, x: Expr | ir.Value) -> ir.DataType | None:
        value = x if isinstance(x, ir.Value) else _value(x)
        return value.dtype

    def shape(self, x: Expr | ir.Value) -> tuple[int | None, ...] | None:
        """The static shape, None for each unknown dimension, or None where not even the rank is known."""
        value = x if isinstance(x, ir.Value) else _value(x)
        constant = self.constant_of(value)
        if constant is not None:
            return tuple(constant.shape)
        if value.shape is None:
            return None
        return tuple(d if isinstance(d, int) else None for d in value.shape)

    def rank(self, x: Expr | ir.Value) -> int | None:
        shape = self.shape(x)
        return None if shape is None else len(shape)

    def type(self, x: Expr | ir.Value) -> ir.TypeProtocol | None:
        """The ONNX type: tells tensors from sequences and optionals."""
        return (x if isinstance(x, ir.Value) else _value(x)).type

    def used(self, index: int) -> bool:
        """Whether anyone reads output `index` of the current node."""
        outputs = self.node.outputs
        return (
            index < len(outputs)
            and bool(outputs[index].name)
            and (bool(outputs[index].uses()) or outputs[index].is_graph_output())
        )

    def is_weight(self, x: Expr) -> bool:
        """Whether the input is a floating-point weight of the file, as opposed to a number in the computation."""
        return role(_value(x)) is not None

    def named_otherwise(self, **parts: Expr | None) -> bool:
        """Whether the original's state dict has one of these under a name that a module's attribute cannot have."""
        names = {attribute: _value(part).name for attribute, part in parts.items() if part is not None}
        known = self.weights.signature
        return any(name in known and path_of(name)[-1] != attribute for attribute, name in names.items() if name)

    def in_state_dict(self, x: Expr) -> bool:
        """Whether the original's state dict has it: under its name, and in its shape."""
        return _value(x).name in self.weights.signature

    def bound(self) -> int | None:
        """The most results of the current node, whose number depends on data, where the user has said one.

        It is called as errors call the node, or as one of its outputs is called.
        """
        names = [name for name in (origin(self.node).name, *(value.name for value in self.node.outputs)) if name]
        self.open += names
        return next((self.bounds[name] for name in names if name in self.bounds), None)

    # Inputs as Python numbers

    def scalar(self, x: Expr, rank: int | None = 0) -> Any:
        """The input as one Python number (or expression for one), or None if it is not known to be a number.

        `rank` is the rank of the tensor it is combined with, where known: a one-element array of a higher rank would
        change the result's rank and is no number then.
        """
        value = _value(x)
        if self.is_weight(x):
            return None
        items = self.host_of(value)
        if items is None:
            constant = self.constant_of(value)
            if constant is None or constant.size != 1 or not value.dtype or value.dtype == ir.DataType.STRING:
                return None
            items = constant_items(np.asarray(exact(constant)))
        if items.size != 1 or (items.ndim > 0 and (rank is None or items.ndim > rank)):
            return None
        return printable(items.reshape(-1)[0], value.dtype)

    def numbers(self, x: Expr) -> Any:
        """A one-dimensional input as Python numbers: a list where its length is known, else an expression for one."""
        items = self.host(x)
        if items is None:
            constant = self.const(x)
            if constant is not None:
                return constant.reshape(-1).tolist()
            return self.target.listed(x)
        return items.reshape(-1).tolist()

    def static_ints(self, x: Expr | None) -> list[int] | None:
        """A one-dimensional input whose numbers are all known now, or None."""
        items = self.host(x) if x is not None else None
        if items is None:
            constant = self.const(x)
            return None if constant is None else [int(i) for i in constant.reshape(-1)]
        flat = items.reshape(-1).tolist()
        return None if any(isinstance(i, Expr) for i in flat) else [int(i) for i in flat]

    # Weights

    def module(self, constructor: Expr, hint: str, buffers: tuple[str, ...] = (), **parts: Any) -> Expr:
        """A framework module that owns the given inputs or arrays, to be called: `e.module(nn.Conv2d(…), …)(x)`.

        A part is an input, a numpy array, or `Part(input, transform, key)`; `buffers` names what is no parameter.
        """
        owned = {a: p if isinstance(p, Part) else Part(p) for a, p in parts.items() if p is not None}
        return self.weights.module(constructor, owned, scope_of(self.node), hint, buffers)

    def constant(self, data: Array, hint: str) -> Expr:
        """An array that the rule made, kept as a buffer beside the weights (string arrays: in the source)."""
        return self.weights.constant(np.asarray(data), scope_of(self.node), hint)

    @property
    def device(self) -> Expr:
        """For tensors made in the generated code: the device of the function's inputs."""
        return Device()

    # Writing statements

    def let(self, expr: Any, hint: str = "", kind: str = "tensor") -> Expr:
        """Bind an expression that is mentioned several times; the printer inlines it if it turns out to be once."""
        var = Var(hint, kind)
        self._append(Assign([var], lift(expr)))
        return Ref(var)

    def let_host(self, expr: Expr, hint: str = "n", *, nonnegative: bool = False) -> Expr:
        var = Var(hint, "host")
        if nonnegative:
            self.nonnegative.add(var)
        self._append(Assign([var], expr))
        return Ref(var)

    def unpack(self, expr: Expr, count: int, hint: str = "", kind: str = "tensor") -> list[Expr]:
        """Bind the `count` results of an expression that returns a tuple."""
        targets = [Var(hint, kind) for _ in range(count)]
        self._append(Assign(list(targets), expr))
        return [Ref(t) for t in targets]

    def fresh(self, hint: str = "", kind: str = "tensor") -> Var:
        """A variable that may be assigned more than once, as in loops and branches."""
        return Var(hint, kind, fixed=True)

    def assign(self, targets: Var | Sequence[Var], value: Any) -> None:
        self._append(Assign([targets] if isinstance(targets, Var) else list(targets), lift(value)))

    def do(self, expr: Expr) -> None:
        self._append(Do(expr))

    def keyword(self, word: str) -> None:
        self._append(Keyword(word))

    def compound(self, *clauses: tuple[str, Any, Block], target: Var | None = None) -> None:
        lifted = [(word, None if test is None else lift(test), block) for word, test, block in clauses]
        self._append(Compound(lifted, target))

    def define(self, hint: str, parameters: Sequence[Var], body: Block, results: Sequence[Any]) -> Expr:
        """A function within, of the statements of a block made by `nested`; gives its name."""
        name = Var(hint, "object")
        self._append(Define(name, list(parameters), body, [lift(result) for result in results]))
        return Ref(name)

    @contextmanager
    def nested(self) -> Iterator[Block]:
        """Statements made inside go to a new block, for `compound`."""
        outer, node = self.block, self.node
        self.block = Block(outer)
        try:
            yield self.block
        finally:
            self.block = outer
            if node is not None:
                self.node = node

    @contextmanager
    def together(self) -> Iterator[None]:
        """Statements made inside are never torn apart: they assign the same variables."""
        start = len(self.block.body)
        yield
        inside = self.block.body[start:]
        del self.block.body[start:]
        self._append(Group(inside))

    def _append(self, statement: Statement) -> None:
        node = self.node
        if node is not None:
            statement.scope = scope_of(node) if has_scope(node) else None
            statement.origin = str(origin(node))
        self.block.body.append(statement)

    # Values

    def call(self, **inputs: Expr | None) -> None:
        """Give inputs that are variables the names by which modules know them: `e.call(past_key=x)`."""
        for name, x in inputs.items():
            var = None if x is None else self._vars.get(_value(x))
            if var is not None and not var.role:
                var.role = name

    def bind(self, value: ir.Value, var: Var) -> None:
        self._vars[value] = var

    def values(self) -> dict[Var, ir.Value]:
        """The value that each variable holds, of those that hold one of the graph."""
        named = {expr._var: value for value, expr in self._exprs.items() if isinstance(expr, Ref)}
        return named | {var: value for value, var in self._vars.items()}

    def bind_same(self, value: ir.Value, other: ir.Value) -> None:
        """Make `value` another name of `other`."""
        self._same[value] = self._same.get(other, other)
        items = self.host_of(other)
        if items is not None:
            self._hosts[value] = items

    def bind_host(self, value: ir.Value, items: Array) -> None:
        """Make a value known as Python numbers, e.g. a loop counter."""
        self._hosts[value] = items

    def arg(self, value: ir.Value | None) -> Arg | None:
        return None if value is None or value.name == "" else Arg(self, value)

    def constant_of(self, value: ir.Value) -> Array | None:
        found = self._constants.get(value)
        if found is None:
            tensor = ir.convenience.get_const_tensor(value)
            if tensor is None:
                return None
            found = self._constants[value] = text(in_place(tensor))
        return found

    def host_of(self, value: ir.Value) -> Array | None:
        found = self._hosts.get(value)
        if found is not None:
            return found
        constant = self.constant_of(value)
        if constant is None or constant.size > LIMIT or value.dtype is None:
            return None
        plain = value.dtype in INTEGERS or (value.dtype in FLOATS and constant.size <= 4)
        if not plain or role(value) is not None:
            return None
        return self._hosts.setdefault(value, constant_items(constant))

    def dim(self, x: Expr, axis: int) -> Any:
        """Dimension `axis` of a tensor as a Python number."""
        value = self._same.get(_value(x), _value(x))
        whole = self.host_of(value)
        whole = self.constant_of(value) if whole is None else whole
        if whole is not None:
            return whole.shape[axis]
        scope = scope_of(self.node) if self.node is not None else ()
        known = self._dims.get((value, axis, scope))  # each module asks the tensors that it has
        if known is not None and self._visible(known[0]):
            return known[1]
        symbol = value.shape[axis] if value.shape is not None and axis < len(value.shape) else None
        name = getattr(symbol, "value", None) or ""
        hint = "n" if is_automatic(name) else name
        expr = self.let_host(self.target.dim(Arg(self, value), axis), hint, nonnegative=True)
        self._dims[value, axis, scope] = (self.block, expr)
        return expr

    def note_dim(self, axis: int, number: Any) -> None:
        """Remember that the first result of the node has so many elements along an axis: a number that is there."""
        if isinstance(number, Ref) and not number._var.fixed and number._var in self.nonnegative:
            value = self.node.outputs[0]
            self._dims[value, axis, scope_of(self.node)] = (self.block, number)

    def is_ready(self, value: ir.Value) -> bool:
        """Whether code that computes a value as a tensor is there already."""
        value = self._same.get(value, value)
        return value in self._vars or value in self._exprs

    def _visible(self, block: Block) -> bool:
        here: Block | None = self.block
        while here is not None:
            if here is block:
                return True
            here = here.parent
        return False

    def tensor_of(self, value: ir.Value, scope: Scope = ()) -> Expr:
        """The expression by which code of the module `scope` gets at a value as a tensor (or list, or string array)."""
        value = self._same.get(value, value)
        if value in self._exprs:
            return self._exprs[value]
        if value in self._vars:
            return Ref(self._vars[value])
        if self.constant_of(value) is not None:
            return self.weights.bare(value, scope)
        if value in self._hosts:
            return self.target.tensor(self._hosts[value], value.dtype)
        raise UnsupportedError(f"value {value.name!r} is used before it is computed")

    # Nodes

    def graph(self, graph: ir.Graph) -> list[Arg]:
        """Emit the nodes of a (sub)graph whose inputs are bound; returns its outputs."""
        outer = self.node
        for node in graph:
            self._emit(node)
        if outer is not None:
            self.node = outer
        return [Arg(self, v) for v in graph.outputs]

    def _emit(self, node: ir.Node) -> None:
        self.node = node
        if node.op_type == "Constant" and node.domain == "":
            return
        if self._emit_host(node):
            return
        key = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}::{node.op_type}"
        rule = self.target.rules.get(key)
        if rule is None:
            has_parts = FALLBACK in self.target.rules
            advice = next_step(key, LEFT_TO_RUNTIME if has_parts else divided(self.target.name))
            raise UnsupportedError(f"{origin(node)}: {self.target.name} has no rule for {key}{advice}")
        inputs = [self.arg(v) for v in node.inputs]
        while inputs and inputs[-1] is None:
            inputs.pop()
        try:
            result = rule(self, *inputs, **parameters(node))
        except OnwardError as error:
            where = str(origin(node))
            raise error if where in str(error) else type(error)(f"{where}: {error}") from error
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            raise ConversionError(f"{origin(node)}: the rule for {key} failed: {problem}") from error
        self._store(node, result)

    def _emit_host(self, node: ir.Node) -> bool:
        if node.domain not in ("", "ai.onnx"):
            return False
        found = self._host_numbers.outputs(node)
        self._hosts.update(zip(node.outputs, found or (), strict=False))
        return found is not None

    def _store(self, node: ir.Node, result: Any) -> None:
        outputs = list(node.outputs)
        if isinstance(result, Unpack):
            targets = [self._target(v) if self.used(i) else None for i, v in enumerate(outputs)]
            for target, name in zip(targets, result.roles, strict=False):
                if target is not None:
                    target.role = name
            self._append(Assign(list(targets), result.value))
            return
        results = list(result) if isinstance(result, tuple | list) else [result]
        for index, (value, expr) in enumerate(zip(outputs, results, strict=False)):
            if expr is None:
                if self.used(index):
                    raise UnsupportedError(
                        f"{origin(node)}: {self.target.name} does not compute output {index} of {node.op_type}"
                    )
                continue
            if isinstance(expr, Hosted):
                self._hosts[value] = expr.items
            elif isinstance(expr, Arg):
                self.bind_same(value, expr._value)
            elif isinstance(expr, Ref):
                self._exprs[value] = expr
            else:
                self._append(Assign([self._target(value)], lift(expr)))

    def _target(self, value: ir.Value) -> Var:
        hint = (value.name or "") if value.is_graph_output() else ""
        is_tensor = isinstance(value.type, ir.TensorType) or value.type is None
        kind = "tensor" if is_tensor and value.dtype != ir.DataType.STRING else "object"
        var = self._vars[value] = Var(hint, kind)
        return var


def _value(x: Expr) -> ir.Value:
    if not isinstance(x, Arg):
        raise TypeError("static facts are known of a node's inputs only")
    return x._value


def exact(constant: Array) -> Array:
    """A constant of any number type as Python can print it: floats as doubles."""
    return constant if constant.dtype.kind in "iub" else constant.astype(np.float64)


def printable(number: Any, dtype: ir.DataType | None) -> Any:
    """A single-precision number in its shortest form; the rest as it is."""
    if dtype != ir.DataType.FLOAT or not isinstance(number, float) or abs(number) > 3.4e38:
        return number
    return float(str(np.float32(number)))
