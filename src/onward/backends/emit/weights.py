"""The weights of a generated model: which tensor of the file stands at which path of the module tree."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.emit.expr import Expr, Weight, render
from onward.backends.emit.names import path_of
from onward.backends.emit.scopes import scope_of
from onward.backends.emit.statements import Scope
from onward.graph.trained import role
from onward.graph.weight_names import Signature, is_automatic, is_named
from onward.hub.stored import in_place
from onward.hub.types import FLOATING

Array = np.ndarray[Any, Any]
Transform = Callable[[Array], Array]

SMALL = 4096
"""Constants of up to so many elements are repeated rather than shared between modules."""


_OP = re.compile(r"(?<=.)[./](?:MatMul|MatMulNBits|Add)(?=[./]\w*(?:weight|bias|scales|zp|zeros|zero_points)\w*$)")
"""The op between a layer and its weight, where ONNX Runtime GenAI names it: `attn.q_proj.MatMul.weight`."""
_KERNEL = re.compile(r"(.+)[/_](?:kernel|embeddings|gamma|beta)")
"""What Keras calls the weights of a layer: `dense/kernel`, `separable_conv2d/depthwise_kernel`."""


_RANDOM = {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
"""Types that frameworks have random numbers of."""
_SCALES = ("weight", "scale", "gamma", "gain")
"""What the names of vectors end with that something is multiplied by."""


@dataclass
class Tensor:
    """A parameter or buffer. `read` gives its data when the weights are written, not before; they are to be copied."""

    path: Scope
    read: Callable[[], Array]
    shape: tuple[int, ...]
    dtype: ir.DataType
    parameter: bool
    trained: bool = True
    """Whether a parameter is trained unless something else is asked for."""
    added: bool = False
    """Whether it is no weight of the original, but a number of its formulas."""
    onnx_name: str = ""
    running: bool = False
    """Whether training changes it though it has no gradient."""

    @property
    def is_trained(self) -> bool:
        """Whether training changes it by its gradient."""
        return self.parameter and self.trained

    @property
    def start(self) -> str:
        """What a parameter is in a new model: matrices "random" small numbers, scales "ones", others "zeros"."""
        if sum(n != 1 for n in self.shape) > 1 and self.dtype in _RANDOM:
            return "random"
        return "ones" if self.path[-1].endswith(_SCALES) else "zeros"

    @property
    def is_held(self) -> bool:
        """Whether it is a weight of the original that is not trained."""
        return not self.parameter and not self.added and self.dtype in FLOATING


@dataclass
class Module:
    """A framework module such as `nn.Conv2d(…)` that stands at `path` and owns tensors by attribute."""

    path: Scope
    constructor: Expr
    tensors: dict[str, Tensor] = field(default_factory=dict)
    class_name: str = ""


@dataclass(frozen=True)
class Part:
    """Where a module's tensor comes from: an input of the node, perhaps rearranged, or an array made by the rule."""

    source: Any  # an Arg, an ir.Value or a numpy array
    transform: Transform | None = None
    key: str = ""
    """Names the transform, so that two modules that use it on one weight are seen to share it."""

    second_half: bool = False
    """Whether it is the second half of a bias."""

    @property
    def is_trained(self) -> bool:
        """Whether training changes it: an array made by the rule is of weights, too."""
        value = _ir_value(self.source)
        found = None if value is None else role(value)
        return value is None or (found is not None and found.trained and not (found.by_half and self.second_half))


class Weights:
    """All tensors and modules of one model, by path."""

    def __init__(self) -> None:
        self.tensors: dict[Scope, Tensor] = {}
        self.modules: dict[Scope, Module] = {}
        self.arrays: dict[Scope, Array] = {}
        """String arrays, which no weights file holds: written into the source."""
        self.ties: dict[Scope, Scope] = {}
        """Path of a shared tensor → path of the one it shares with."""
        self.signature: Signature = {}
        self.is_merged = False
        """Whether the exporter may have kept one of equal vectors."""
        self.named_paths: set[Scope] = set()
        """Of modules and tensors: the paths that the file's own names ask for."""
        self.population: dict[Scope, int] = {}
        """How many nodes live in a scope, those below it included."""
        self._by_source: dict[tuple[Any, str], Scope] = {}
        self._by_content: dict[Any, Scope] = {}
        self._taken: set[Scope] = set()
        self._prefixes: set[Scope] = set()
        self._reserved: set[Scope] = set()
        self._late: dict[Any, tuple[Weight, Callable[[], Array], tuple[int, ...], ir.DataType, str]] = {}
        self._keep: list[Any] = []  # objects whose id() is a key

    def bare(self, value: ir.Value, scope: Scope) -> Expr:
        """A weight or constant of the file that no module owns."""
        known = self._by_source.get((value, ""))
        if known is not None:
            return Weight(known)
        name, found = value.name or "", role(value)
        tensor = ir.convenience.get_const_tensor(value)
        assert tensor is not None
        shape = tuple(tensor.shape.numpy())
        if found is None and not self.is_named(value):
            # A small constant that modules share is not worth passing around: each has its own.
            source = (value, scope) if tensor.size <= SMALL else (value, ())
            return self._unnamed(_reader(tensor), shape, tensor.dtype, (*scope, "constant"), source, name)
        path = self._by_source[value, ""] = self._path(value, scope)
        return self._store(_reader(tensor), shape, tensor.dtype, path, value)

    def _path(self, value: ir.Value, scope: Scope) -> Scope:
        """Where a weight that no module owns stands: under its name, or as the weight of the module that reads it."""
        if not self.is_named(value):
            while scope in self.modules:
                scope = scope[:-1]
            return self.claim((*scope, "weight"))
        name = self._place(value)
        wish = path_of(name)
        if wish[-1].isdigit() and (name not in self.signature or len(wish) == 1):
            wish = (*wish[:-1], f"p{wish[-1]}")  # a number is no attribute
        if wish[:-1] in self.modules and not self.signature:
            wish = _beside(wish)
        return self.claim(wish, named=True)

    def _name(self, value: ir.Value) -> str:
        """What a weight is called in the original, or else in the file."""
        found = role(value)
        return found.name if found is not None and found.name else value.name or ""

    def _place(self, value: ir.Value) -> str:
        """The name that says where a weight stands."""
        return self._name(value) if self.signature else _OP.sub("", self._name(value))

    def arranged(self, value: ir.Value, transform: Transform, key: str) -> Expr:
        """A named weight in another arrangement, which it is written in; `key` names the transform."""
        known = self._by_source.get((value, key))
        if known is not None:
            return Weight(known)
        tensor = ir.convenience.get_const_tensor(value)
        assert tensor is not None
        path = self._by_source[value, key] = self.claim(path_of(self._place(value)), named=True)
        read, shape = _arrangement(tensor, transform)
        return self._store(read, shape, tensor.dtype, path, value)

    def running(self, value: ir.Value, owner: ir.Node) -> Expr:
        """A constant that training changes, such as a running mean; each node has its own."""
        tensor = ir.convenience.get_const_tensor(value)
        assert tensor is not None
        key = f"running {id(owner)}"
        known = self._by_source.get((value, key))
        if known is None:
            self._keep.append(owner)
            path = self._by_source[value, key] = self.claim(path_of(self._name(value) or "statistic"), named=True)
            shape = tuple(tensor.shape.numpy())
            self._store(_reader(tensor), shape, tensor.dtype, path, value)
            self.tensors[path].parameter = False
            self.tensors[path].running = True
            return Weight(path)
        return Weight(known)

    def owned(self, parts: dict[str, Part], scope: Scope, hint: str) -> dict[str, Expr]:
        """Weights of a layer that no one named, as parameters beside each other: `lstm.weight`, `lstm.bias`."""
        prefix, named = self._module_path(parts, scope, hint)
        if prefix != scope:
            prefix = next(
                p for n in itertools.count() if (p := _numbered(prefix, n)) not in self._prefixes | self._taken
            )
        found: dict[str, Expr] = {}
        for attribute, part in parts.items():
            path = self._by_source.get((part.source, part.key))
            if path is None:
                tensor = ir.convenience.get_const_tensor(part.source)
                assert tensor is not None
                path = self._by_source[part.source, part.key] = self.claim((*prefix, attribute), named=named)
                read, shape = _arrangement(tensor, part.transform)
                self._store(read, shape, tensor.dtype, path, part.source)
            found[attribute] = Weight(path)
        return found

    def constant(self, data: Array, scope: Scope, hint: str, parameter: bool = False) -> Expr:
        """An array that a rule made, such as a table of tree nodes."""
        self._keep.append(data)
        dtype = ir.DataType.from_numpy(data.dtype) if data.dtype.kind not in "OUS" else ir.DataType.STRING
        return self._unnamed(lambda: data, data.shape, dtype, (*scope, hint), (id(data), scope), "")

    def _unnamed(
        self, read: Callable[[], Array], shape: tuple[int, ...], dtype: ir.DataType, wish: Scope, source: Any, name: str
    ) -> Expr:
        """A constant whose path is chosen by `finish`, after everything that has a name of its own."""
        if source not in self._late:
            self._late[source] = (Weight(wish), read, shape, dtype, name)
        return self._late[source][0]

    def finish(self) -> None:
        """Give the unnamed constants their paths."""
        for weight, read, shape, dtype, name in self._late.values():
            scope = weight._path[:-1]
            while scope in self.modules:
                scope = scope[:-1]
            weight._path = self.claim((*scope, weight._path[-1]))
            self._store(read, shape, dtype, weight._path, None, name)

    def _store(
        self,
        read: Callable[[], Array],
        shape: tuple[int, ...],
        dtype: ir.DataType,
        path: Scope,
        value: ir.Value | None,
        name: str = "",
    ) -> Expr:
        """A tensor that no module owns: a parameter if it is trained."""
        if dtype == ir.DataType.STRING:
            self.arrays[path] = text(read())
            return Weight(path)
        name = name if value is None else self._name(value)
        found = None if value is None else role(value)
        parameter = found is not None and found.trained
        _, is_held = self.signature.get(name, (False, not self.signature and not is_automatic(name)))
        added = not is_held if found is None else not found.name
        self.tensors[path] = Tensor(path, read, shape, dtype, parameter, parameter, added, name)
        return Weight(path)

    def reserve(self, names: Iterable[str]) -> None:
        """Keep the paths that the file's own names ask for free of made-up ones."""
        for name in names:
            if not is_automatic(name):
                path = path_of(name)
                self._reserved |= {path, path[:-1]}

    @cached_property
    def state_paths(self) -> set[Scope]:
        """The paths of the original's state dict."""
        return {path_of(name) for name in self.signature}

    def is_named(self, value: ir.Value) -> bool:
        """Whether a constant is a weight that a person gave a name, rather than a number some exporter wrote down."""
        found = role(value)
        return is_named(value, self.signature) if found is None else bool(found.name)

    def module(
        self, constructor: Expr, parts: dict[str, Part], scope: Scope, hint: str, buffers: tuple[str, ...] = ()
    ) -> Expr:
        """A framework module that owns the tensors `parts`; the same module again is the same path."""
        own = scope if self.population.get(scope) == 1 else ()
        key = (own, tuple((a, _key(p)) for a, p in parts.items()), _text(constructor))
        if key in self._by_content:
            return Weight(self._by_content[key])
        wish, named = self._module_path(parts, scope, hint)
        path = self.claim(wish, named=named)
        self._by_content[key] = path
        module = self.modules[path] = Module(path, constructor)
        for attribute, part in parts.items():
            self._module_tensor(module, attribute, part, parameter=attribute not in buffers)
        return Weight(path)

    def _module_tensor(self, module: Module, attribute: str, part: Part, parameter: bool) -> None:
        path = (*module.path, attribute)
        value = _ir_value(part.source)
        source = _key(part)
        # Exporters merge equal vectors, such as fresh scales and biases: each module gets its own again.
        is_merged = self.is_merged and value is not None and value.shape is not None and len(value.shape) <= 1
        known = self.tensors.get(self._by_source.get(source, ()))
        if known is not None and known.parameter and parameter and not is_merged:
            self.ties[path] = known.path
            return
        if known is None or (parameter and not known.parameter):
            self._by_source[source] = path
        self._keep.append(part.source)
        if value is None:
            data = np.asarray(part.source)
            read: Callable[[], Array] = lambda: data  # noqa: E731
            shape, dtype, name = data.shape, ir.DataType.from_numpy(data.dtype), ""
        else:
            tensor = ir.convenience.get_const_tensor(value)
            assert tensor is not None
            shape, dtype, name = tuple(tensor.shape.numpy()), tensor.dtype, self._name(value)
            read = _reader(tensor)
        if part.transform is not None:
            transform, plain = part.transform, read
            read = lambda: np.ascontiguousarray(transform(plain()))  # noqa: E731
            shape = transform(np.broadcast_to(np.zeros((), np.int8), shape)).shape
        parameter = parameter and dtype in FLOATING
        trained = parameter and part.is_trained
        added = value is not None and role(value) is None and parameter
        module.tensors[attribute] = self.tensors[path] = Tensor(
            path, read, shape, dtype, parameter, trained, added, name
        )
        self._taken.add(path)

    def move(self, old: Scope, new: Scope) -> None:
        """Put what stands at `old`, a module or a tensor, at `new`."""
        module = self.modules.pop(old, None)
        if module is None:
            tensor = self.tensors[new] = self.tensors.pop(old)
            tensor.path = new
            return
        self.modules[new] = module
        module.path = new
        for attribute, tensor in module.tensors.items():
            self.tensors[(*new, attribute)] = self.tensors.pop(tensor.path)
            tensor.path = (*new, attribute)

    def _module_path(self, parts: dict[str, Part], scope: Scope, hint: str) -> tuple[Scope, bool]:
        if self.population.get(scope) == 1:
            # A shared weight has the name of one of its owners: which one this is, the scope tells.
            shared = [a for a, p in parts.items() if (v := _ir_value(p.source)) is not None and len(v.uses()) > 1]
            if any((*scope, attribute) in self.state_paths for attribute in shared):
                return scope, True
            if any(self._is_of_another(value, scope) for value in map(_ir_value, (parts[a].source for a in shared))):
                return scope, True
        for attribute, part in parts.items():
            value = _ir_value(part.source)
            name = self._place(value) if value is not None else ""
            if value is not None and self.is_named(value) and _key(part) not in self._by_source:
                for ending in (f".{attribute}", f"/{attribute}", f".weight_{attribute}"):
                    if name.endswith(ending) and len(name) > len(ending):
                        return path_of(name[: -len(ending)]), True
                if layer := _KERNEL.fullmatch(name):
                    return path_of(layer[1]), True
        if scope and self.population.get(scope) == 1:
            return scope, True
        return (*scope, hint), False

    def _is_of_another(self, value: ir.Value | None, scope: Scope) -> bool:
        """Whether a shared weight has the name of another layer that reads it."""
        if value is None or not self.is_named(value):
            return False
        owner = path_of(self._place(value))[:-1]
        layers = [use.node for use in value.uses() if use.node.op_type != "Gather"]
        return bool(owner) and owner != scope and any(scope_of(node) == owner for node in layers)

    def claim(self, wish: Scope, *, named: bool = False) -> Scope:
        """A free path like `wish`: nothing stands there, no part of it is a tensor or a framework's module.

        A path that the file's own names ask for is given to what has that name only.
        """
        parts = list(wish)
        for i in range(1, len(parts)):
            while (
                tuple(parts[:i]) in self.tensors or tuple(parts[:i]) in self.modules or tuple(parts[:i]) in self.arrays
            ):
                parts[i - 1] = f"part_{parts[i - 1]}" if parts[i - 1].isdigit() else f"{parts[i - 1]}_"
        path, n = tuple(parts), 1
        while path in self._taken or path in self._prefixes or (not named and path in self._reserved):
            n += 1
            path = (*parts[:-1], f"{parts[-1]}_{n}" if not parts[-1].isdigit() else f"part_{parts[-1]}_{n}")
        self._taken.add(path)
        if named:
            self.named_paths.add(path)
        for i in range(1, len(path)):
            self._prefixes.add(path[:i])
        return path


def _numbered(path: Scope, n: int) -> Scope:
    """`lstm`, `lstm_2`, `lstm_3` …"""
    return (*path[:-1], f"{path[-1]}_{n + 1}") if n else path


def text(data: Array) -> Array:
    """Strings as Python's, where the file's are bytes."""
    if data.dtype.kind not in "OS":
        return data
    out = np.empty(data.shape, dtype=object)
    out.reshape(-1)[:] = [s.decode() if isinstance(s, bytes) else str(s) for s in data.reshape(-1)]
    return out


def _beside(path: Scope) -> Scope:
    """A place beside the module that has the other weights, and beside the list where that is one of a list."""
    start = len(path) - 2
    while start > 0 and path[start].isdigit():
        start -= 1
    name = "_".join(path[start:])
    return (*path[:start], f"p{name}" if name[0].isdigit() else name)


def _ir_value(source: Any) -> ir.Value | None:
    found = getattr(source, "_value", None) if isinstance(source, Expr) else source
    return found if isinstance(found, ir.Value) else None


def _arrangement(tensor: ir.TensorProtocol, transform: Transform | None) -> tuple[Callable[[], Array], tuple[int, ...]]:
    """How a tensor is read in another arrangement, and its shape there."""
    shape = tuple(tensor.shape.numpy())
    read = _reader(tensor)
    if transform is None:
        return read, shape
    found = transform(np.broadcast_to(np.zeros((), np.int8), shape)).shape
    return lambda: np.ascontiguousarray(transform(read())), found


def _reader(tensor: ir.TensorProtocol) -> Callable[[], Array]:
    """Gives the elements of a tensor to whoever copies them: into a file, or to a framework."""
    return lambda: in_place(tensor)


def _key(part: Part) -> tuple[Any, str]:
    value = _ir_value(part.source)
    return (id(part.source) if value is None else value, part.key)


def _text(constructor: Expr) -> str:
    return render(constructor, lambda leaf: (repr(leaf), 14))
