"""The text of a generated Keras model: layers of its own, and the function that puts all layers together."""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from onward.backends.emit.classes import ClassWriter, class_name, no_leaf
from onward.backends.emit.expr import (
    Attr,
    Call,
    Expr,
    Literal,
    Name,
    Ref,
    Var,
    Weight,
    forced,
    lift,
    literal_text,
    render,
)
from onward.backends.emit.expr import Sequence as Display
from onward.backends.emit.names import identifier
from onward.backends.emit.parameters import Pieces
from onward.backends.emit.printing.language import wrap
from onward.backends.emit.printing.printer import FunctionPrinter
from onward.backends.emit.statements import Assign, Block, Scope, Statement
from onward.backends.emit.tree import TreeNode
from onward.backends.emit.weights import Array, Module, Tensor, Weights
from onward.backends.keras.parts import Piece, weights_of
from onward.backends.keras.target import LayerCall
from onward.backends.tensorflow.target import DTYPES

Freeze = bool | list[str]
"""Which parameters a training step leaves alone: all, none, or those of these names."""

RESERVED = frozenset({"self", "tf", "np", "math", "Any", "keras", "layers", "build", "options", "PACKAGE"}) | {
    "Activation",
    "Add",
    "Concatenate",
    "Dense",
    "Dropout",
    "ELU",
    "Embedding",
    "Flatten",
    "GRU",
    "LSTM",
    "LeakyReLU",
    "Multiply",
    "PReLU",
    "Permute",
    "ReLU",
    "Reshape",
    "SimpleRNN",
    "Softmax",
    "Subtract",
}
"""Names that no class of our own has: those of the generated module, and of Keras' layers."""

# fmt: off
OWN = frozenset([
    "activity_regularizer", "add_loss", "add_metric", "add_variable", "add_weight", "autocast", "build",
    "build_from_config", "built", "call", "call_signature_parameters", "compute_dtype", "compute_mask",
    "compute_output_shape", "compute_output_spec", "count_params", "dtype", "dtype_policy", "from_config",
    "get_build_config", "get_config", "get_weights", "input", "input_dtype", "input_spec", "load_own_variables",
    "losses", "metrics", "metrics_variables", "name", "non_trainable_variables", "non_trainable_weights", "output",
    "path", "quantization_mode", "quantize", "quantized_build", "quantized_call", "rematerialized_call",
    "save_own_variables", "set_weights", "stateless_call", "supports_jit", "supports_masking", "symbolic_call",
    "trainable", "trainable_variables", "trainable_weights", "variable_dtype", "variables", "weights",
])
# fmt: on
"""What every layer has already."""


class Names:
    """The names of layers, each of which is there once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def unique(self, path: Scope) -> str:
        wish = ".".join(path).lstrip("_") or "layer"
        name, n = wish, 1
        while name in self._taken:
            n += 1
            name = f"{wish}_{n}"
        self._taken.add(name)
        return name


@dataclass
class LayerWriter(ClassWriter):
    """Writes layers of our own: the parts of a model that no layer of Keras computes."""

    freeze: Freeze = False
    reserved: frozenset[str] = RESERVED
    call = "call"
    decorators = ("@keras.saving.register_keras_serializable(PACKAGE)",)
    init_call = "super().__init__(name=name, autocast=False, **options)"
    suffix = "Layer"
    init_arguments: tuple[str, ...] = ("name: str | None = None", "**options: Any")
    """Keras keeps the name of a layer in a file only where its constructor says that it has one."""
    _attributes: dict[Scope, dict[Scope, str]] = field(default_factory=dict)
    """By layer: the attributes that its weights have there."""

    def base(self, node: TreeNode) -> str:
        return "layers.Layer"

    def node(self, piece: Piece, path: Scope, weights: Weights) -> TreeNode:
        """A part as a layer of the tree, its weights in the order in which Keras will have them."""
        assert piece.function is not None
        own = [p for p in weights_of(piece) if p not in piece.function.foreign]
        own.sort(key=lambda p: p not in weights.tensors or not self._is_trained(weights.tensors[p]))
        attributes = self._attributes[path] = _attributes(own)
        node = TreeNode(path, forward=piece.function)
        node.tensors = {attributes[p]: weights.tensors[p] for p in own if p in weights.tensors}
        node.arrays = {attributes[p]: weights.arrays[p] for p in own if p in weights.arrays}
        return node

    def write_layers(self, nodes: list[TreeNode]) -> dict[Scope, str]:
        """Write the classes; gives the name of that of each layer."""
        groups: dict[Any, list[Any]] = defaultdict(list)
        for node in nodes:
            plan = self.plan(node)
            groups[plan.key].append(plan)
        for plans in groups.values():
            self._class(plans, "")
        return {
            path: render(constructor, no_leaf).partition("(")[0] for path, constructor in self._constructors.items()
        }

    def declare(self, attribute: str, tensor: Tensor) -> Pieces:
        dtype = DTYPES[tensor.dtype]
        options = "" if dtype == "float32" else f', dtype="{dtype}"'
        options += "" if self._is_trained(tensor) else ", trainable=False"
        shape = literal_text(tuple(tensor.shape))
        start = "zeros" if not self._is_trained(tensor) else tensor.start
        start = "truncated_normal" if start == "random" else start
        return [f'self.{attribute} = self.add_weight({shape}, "{start}"{options}, name="{attribute}")']

    def declare_strings(self, attribute: str, array: Array) -> Pieces:
        return [f"self.{attribute} = tf.constant({render(lift(array.tolist()), no_leaf)})"]

    def annotation(self, kind: str) -> str:
        return {"tensor": "tf.Tensor", "flag": "bool"}.get(kind, "Any")

    def argument(self, name: str, kind: str, is_root: bool) -> str:
        return super().argument(name, kind, is_root) + (" = False" if kind == "flag" else "")

    def access(self, node: TreeNode, path: Scope) -> str:
        attribute = self._attributes[node.path][path]
        return f"self.{attribute}" if attribute in node.arrays else f"self.{attribute}.value"

    def _is_trained(self, tensor: Tensor) -> bool:
        return tensor.parameter and not tensor.running and not is_frozen(tensor, self.freeze)


def is_frozen(tensor: Tensor, freeze: Freeze) -> bool:
    return freeze if isinstance(freeze, bool) else ".".join(tensor.path) in freeze


def partly_frozen(pieces: Iterable[Piece], weights: Weights, freeze: Freeze) -> set[ir.Node]:
    """Nodes whose layers of Keras would have both weights that are trained and weights that are not.

    Keras freezes whole layers: a layer of our own says it of each weight.
    """
    called = [found for piece in pieces if piece.call is not None for found in owners(piece.call, weights)]
    return {call._node for call, owner in called if len(_fixed(weights.modules[owner], freeze)) > 1}


def owners(call: LayerCall, weights: Weights) -> Iterator[tuple[LayerCall, Scope]]:
    """The layers with weights in a call, and in those inside it."""
    layer = forced(call._fn)
    if not isinstance(layer, Call):
        yield call, _owner(layer, weights)
    for argument in map(forced, call._args):
        if isinstance(argument, LayerCall):
            yield from owners(argument, weights)


def _owner(layer: Expr, weights: Weights) -> Scope:
    """The path of a layer with weights: of the first one, where several are one and the same."""
    assert isinstance(layer, Weight)
    return next((tied[:-1] for path, tied in weights.ties.items() if path[:-1] == layer._path), layer._path)


def _fixed(module: Module, freeze: Freeze) -> set[bool]:
    """Whether a training step leaves its parameters alone: both, if some of them."""
    return {is_frozen(tensor, freeze) for tensor in module.tensors.values() if tensor.parameter}


def _attributes(paths: list[Scope]) -> dict[Scope, str]:
    """A short name for each weight of a layer."""
    found: dict[Scope, str] = {}
    for path in paths:
        part = path[-1].lstrip("_") or "weight"
        wish = f"p{part}" if part[:1].isdigit() else f"{part}_" if part in OWN else part
        name, n = wish, 1
        while name in found.values():
            n += 1
            name = f"{wish}_{n}"
        found[path] = name
    return found


class Builder:
    """Writes the function that makes the model: a line for each layer."""

    def __init__(self, weights: Weights, names: Names, freeze: Freeze) -> None:
        self.layers: dict[str, list[Tensor]] = {}
        """The weights of each layer, in the order in which Keras has them."""
        self.kinds: set[str] = set()
        """The classes of layers that are made."""
        self._weights, self._names, self._freeze = weights, names, freeze
        self._statements: list[Statement] = []
        self._vars: dict[Var, Var] = {}
        self._shared: dict[Scope, Expr] = {}
        self._uses: Counter[Scope] = Counter()

    def input(self, var: Var, value: ir.Value, name: str, order: Sequence[int] | None) -> None:
        assert value.shape is not None and value.dtype is not None
        dims = [d if isinstance(d, int) else None for d in value.shape]
        dims = dims if order is None else [dims[axis] for axis in order]
        dtype = DTYPES[value.dtype]
        typed = {} if dtype == "float32" else {"dtype": dtype}
        made = Attr(Name("keras"), "Input")(batch_shape=tuple(dims), **typed, name=name)
        self._assign([self._new(var, name)], made)

    def pieces(self, pieces: list[Piece], writer: LayerWriter, outputs: Mapping[Var, str]) -> None:
        """Call all layers. A layer of no name of its own that gives one of `outputs` is called as this is."""
        for piece in pieces:
            if piece.call is not None:
                self._uses.update(owner for _, owner in owners(piece.call, self._weights))
        paths = [None if p.call is not None else self._path(p, outputs, writer.class_names) for p in pieces]
        nodes = [writer.node(p, path, self._weights) for p, path in zip(pieces, paths, strict=True) if path is not None]
        classes = writer.write_layers(nodes)
        tensors = {node.path: list(node.tensors.values()) for node in nodes}
        for piece, path in zip(pieces, paths, strict=True):
            if path is None:
                assert piece.call is not None
                scope = _scope(piece)
                wish = next((outputs[v] for v in piece.outputs if v is not None and v in outputs), None)
                made = self._call(piece.call, scope, None if wish is None else (wish,))
            else:
                name = ".".join(path)
                self.layers[name] = tensors[path]
                made = Name(classes[path])(name=name)(*(Ref(self._vars[var]) for var in piece.inputs))
            origins = {statement.origin for statement in piece.statements if statement.origin}
            origin = origins.pop() if len(origins) == 1 else ""
            self._assign([var and self._new(var) for var in piece.outputs], made, origin)

    def lines(self, inputs: list[Var], outputs: Mapping[str, Var], name: str, taken: Iterable[str]) -> list[str]:
        """The whole function; no variable is called as one of `taken`."""
        printer = FunctionPrinter(_no_outer, taken)
        given: list[Expr] = [Ref(self._vars[var]) for var in inputs]
        results: dict[str, Expr] = {key: Ref(self._vars[var]) for key, var in outputs.items()}
        lines = printer.function(Block(body=self._statements), [*given, *results.values()])
        listed = ", ".join(map(printer.text, given))
        if len(results) == 1:
            named = printer.text(next(iter(results.values())))
        else:
            named = f"{{{', '.join(f'{literal_text(k)}: {printer.text(v)}' for k, v in results.items())}}}"
        made = wrap(f'return keras.Model({listed if len(given) == 1 else f"[{listed}]"}, {named}, name="{name}")')
        lines += printer.returned(made, [*given, *results.values()])
        return ["def build() -> keras.Model:", *("    " + line for line in lines)]

    def _path(self, piece: Piece, outputs: Mapping[Var, str], class_names: dict[Scope, str]) -> Scope:
        """The name of a layer of our own, as a path: its class is called as the module it stands for, or as its op."""
        scope = _scope(piece)
        operations = [s.origin.partition(" ")[0].rpartition(".")[2] for s in piece.statements if _computes(s)]
        wish = scope or ("part",)
        kind = class_names.get(scope) or class_name(wish)
        if len(operations) == 1 and operations[0]:
            wish, kind = (*scope, _snake(operations[0])), identifier(operations[0])
        named = [outputs[v] for v in piece.outputs if v is not None and v in outputs]
        path = tuple(self._names.unique((named[0],) if named else wish).split("."))
        class_names[path] = kind
        return path

    def _call(self, call: LayerCall, scope: Scope, wish: Scope | None = None) -> Expr:
        arguments = [self._argument(a, scope) for a in call._args]
        return Call(self._layer(forced(call._fn), scope, wish), tuple(arguments), {})

    def _argument(self, argument: Expr, scope: Scope) -> Expr:
        argument = forced(argument)
        if isinstance(argument, Display):
            return Display(tuple(self._argument(a, scope) for a in argument._items), argument._brackets)
        if isinstance(argument, LayerCall):
            made = self._call(argument, scope)
            var = Var("", "tensor", fixed=True)
            self._assign([var], made)
            return Ref(var)
        assert isinstance(argument, Ref)
        return Ref(self._vars[argument._var])

    def _layer(self, layer: Expr, scope: Scope, wish: Scope | None) -> Expr:
        """A layer's constructor with its name; the variable that holds it where it is called more than once."""
        if isinstance(layer, Call):
            kind = render(layer._fn, no_leaf).rpartition(".")[2]
            return self._named(layer, self._names.unique(wish or (*scope, _snake(kind))))
        path = _owner(layer, self._weights)
        if path in self._shared:
            return self._shared[path]
        module = self._weights.modules[path]
        constructor = module.constructor
        assert isinstance(constructor, Call)
        if True in _fixed(module, self._freeze):
            constructor = Call(constructor._fn, constructor._args, {**constructor._kwargs, "trainable": Literal(False)})
        name = self._names.unique(path)
        self.layers[name] = list(module.tensors.values())
        named = self._named(constructor, name)
        if self._uses[path] > 1:
            var = Var(path[-1], "object", fixed=True)
            self._assign([var], named)
            named = self._shared[path] = Ref(var)
        return named

    def _named(self, constructor: Call, name: str) -> Expr:
        self.kinds.add(render(constructor._fn, no_leaf))
        return Call(constructor._fn, constructor._args, {**constructor._kwargs, "name": Literal(name)})

    def _new(self, var: Var, hint: str | None = None) -> Var:
        """A variable of the function, which is never written in another's place: a layer has its line."""
        made = self._vars[var] = Var(var.hint if hint is None else hint, "tensor", fixed=True)
        return made

    def _assign(self, targets: list[Var | None], value: Expr, origin: str = "") -> None:
        self._statements.append(Assign(targets, value, origin=origin))


def _scope(piece: Piece) -> Scope:
    """The module in which all of a piece lies; a change of layout, which is named after a tensor, is of no other."""
    scopes = [s.scope for s in piece.statements if _computes(s) and s.scope is not None]
    shared = itertools.takewhile(lambda parts: len(set(parts)) == 1, zip(*scopes, strict=False))
    found = tuple(parts[0] for parts in shared)
    return found[:-1] if found and found[-1].endswith(("_nhwc", "_nchw")) else found


def _computes(statement: Statement) -> bool:
    """Whether it computes tensors, not only numbers for others."""
    return not isinstance(statement, Assign) or any(t is None or t.kind != "host" for t in statement.targets)


def _snake(name: str) -> str:
    """`MaxPooling2D` → `max_pooling2d`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z])", "_", name).lower()


def _no_outer(leaf: Expr) -> str:
    raise TypeError(f"{type(leaf).__name__} outside a layer")
