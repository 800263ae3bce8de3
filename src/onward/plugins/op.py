"""A custom op as one object: each part of Onward asks it for what that part needs."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, overload

import numpy as np
import onnx

from onward.errors import OnwardError, UnsupportedError
from onward.plugins import schema
from onward.plugins.kinds import number_of
from onward.plugins.table import file

F = TypeVar("F", bound=Callable[..., Any])
FLOATS = {"T": ("float", "double")}


class CustomOp:
    """An op of another domain: `CustomOp("my.lab::SolveSPD", inputs="a:T b:T", attributes={"ridge": 0.0})`.

    `inputs` and `outputs` are names with their types: a dtype such as `int64`, or a letter that stands for any of
    `types[letter]`, `float` and `double` unless said otherwise; `?` at its end marks what may be left out, `*` any
    number of them. `attributes` are defaults, or a type (`int`, `list[float]`) for what a node has to give,
    `int | None` for what it may leave out. `also` are other domains that call the same op by the same name. A later
    `version` of an op is another `CustomOp` of the same name.

    All functions get inputs in order, None where one is left out, and every attribute as a keyword.
    """

    def __init__(
        self,
        name: str,
        *,
        version: int = 1,
        inputs: str = "x:T",
        outputs: str = "y:T",
        types: Mapping[str, Sequence[str]] | None = None,
        attributes: Mapping[str, Any] | None = None,
        also: Sequence[str] = (),
        doc: str = "",
    ) -> None:
        self.domain, _, self.name = name.rpartition("::")
        if not self.domain or not self.name.isidentifier():
            raise ValueError(f"{name!r} names no custom op: write it as domain::Name, such as my.lab::SolveSPD")
        self.version, self.doc = version, doc
        self.domains = (self.domain, *also)
        self.inputs, self.outputs = schema.formals(inputs), schema.formals(outputs)
        self.attributes = [schema.attribute(key, given) for key, given in (attributes or {}).items()]
        used = {formal.type for formal in (*self.inputs, *self.outputs)}
        given = types if types is not None else FLOATS
        self.types = {letter: tuple(dtypes) for letter, dtypes in given.items() if letter in used}
        self.infers: schema.Infer | None = None
        self.reference: Callable[..., Any] | None = None
        self.sources: dict[str, Callable[..., Any]] = {}
        """By backend: a plain function of the framework, whose source generated code has."""
        self.rules: dict[str, Callable[..., Any]] = {}
        """By backend: a rule that writes expressions."""
        self.gradient: Callable[..., Any] | None = None
        self.broadcasts = self.straight_through = False
        self.without_gradient = ""
        """Why there is no gradient, where there is none."""
        self.functions: list[onnx.FunctionProto] = []
        """The body, if there is one, and the functions that it calls."""
        self.libraries: list[Callable[[], str]] = []
        self.samples: Callable[[np.random.Generator], Any] | None = None
        self.torch_names: dict[str, Callable[..., Any]] = {}
        self.tensorflow_names: dict[str, Callable[..., Any]] = {}
        infer = schema.inference(self.inputs, self.outputs, self.attributes, lambda: self.infers)
        parts = (self.inputs, self.outputs, self.types, self.attributes, doc, infer)
        self.schemas = [schema.make(domain, self.name, version, *parts) for domain in self.domains]
        file(self)

    def __repr__(self) -> str:
        return f"CustomOp({self.key!r}, version={self.version})"

    @property
    def key(self) -> str:
        return f"{self.domain}::{self.name}"

    # What it means

    def infer(self, function: F) -> F:
        """The dtype and dimensions of what it gives, from the `TensorKind` of each input."""
        self.infers = function
        return function

    def numpy(self, function: F) -> F:
        """The reference: what `verify` trusts, and what ONNX Runtime calls where there is neither body nor library."""
        self.reference = function
        return function

    def body(self, function: Any) -> Any:
        """An onnxscript function, or a `FunctionProto`, in terms of other ops: it runs and trains everywhere."""
        called = [] if isinstance(function, onnx.FunctionProto) else _called(function)
        proto = onnx.FunctionProto()
        proto.CopyFrom(function if isinstance(function, onnx.FunctionProto) else function.to_function_proto())
        if len(proto.input) != len(self.inputs) or len(proto.output) != len(self.outputs):
            raise ValueError(f"the body of {self.key} takes {list(proto.input)} and gives {list(proto.output)}")
        proto.name, proto.domain = self.name, self.domain
        self.functions = [proto, *called]
        return function

    def library(self, path: str | os.PathLike[str] | Callable[[], str]) -> None:
        """A library of ONNX Runtime, made with its C API for custom ops, that has a kernel for the op.

        A path is one beside the plugin's file. A function tells where it is when it is needed: where the package that
        has it may not be installed.
        """
        if callable(path):
            self.libraries.append(path)
            return
        whole = (Path(sys._getframe(1).f_globals.get("__file__", "plugin")).absolute().parent / path).resolve()
        if not whole.is_file():
            raise OnwardError(f"{self.key}: there is no library {whole}; build it first")
        self.libraries.append(lambda: str(whole))

    def sample(self, function: F) -> F:
        """Inputs for `onward plugins check`, from a random generator, where those made up by the schema do not do.

        It gives an array, a tuple of arrays, None for one that is left out, or such a tuple and a dict of attributes.
        """
        self.samples = function
        return function

    # What it is in frameworks

    def source(self, backend: str) -> Callable[[F], F]:
        """A plain function of a framework, copied into generated code: `@op.source("torch")` is `@op.torch`."""
        return _filing(self.sources, backend)

    def torch(self, function: F) -> F:
        """What generated code of PyTorch says: a plain function, copied with what it needs."""
        return self.source("torch")(function)

    def tensorflow(self, function: F) -> F:
        """The same for TensorFlow, and for Keras unless there is `@op.keras`."""
        return self.source("tensorflow")(function)

    def keras(self, function: F) -> F:
        """The same for Keras alone."""
        return self.source("keras")(function)

    def jax(self, function: F) -> F:
        """The same for JAX."""
        return self.source("jax")(function)

    def rule(self, backend: str) -> Callable[[F], F]:
        """A rule as Onward's own: it gets the emitter and expressions, and gives what generated code says."""
        return _filing(self.rules, backend)

    def from_torch(self, name: str, function: Callable[..., Any] | None = None) -> Any:
        """An op of `torch.library`, `lab::solve`, becomes this one.

        Its tensors, in order, are the inputs, and its other arguments the attributes of the same names, unless a
        function, also by `@op.from_torch(…)`, says otherwise: it gets what PyTorch's op gets, and calls `op(…)`.
        """
        self.torch_names[name] = function or self._called_by_tensors
        return _filing(self.torch_names, name)

    def from_tensorflow(self, name: str, function: Callable[..., Any] | None = None) -> Any:
        """An op of TensorFlow of this name, or a `tf.function(experimental_implements=name)`, becomes this one.

        As for `from_torch`; the keywords are the attributes of TensorFlow's op.
        """
        self.tensorflow_names[name] = function or self._called_by_tensors
        return _filing(self.tensorflow_names, name)

    def is_called_plainly(self, name: str) -> bool:
        """Whether tensors and other arguments of an op of PyTorch are inputs and attributes as they are."""
        return self.torch_names.get(name) == self._called_by_tensors

    def called_in_tensorflow(self, name: str) -> Callable[..., Any] | None:
        """What writes a call of that name; a function may say that it implements the op by its key."""
        found = self.tensorflow_names.get(name)
        return self._called_by_tensors if found is None and name == self.key else found

    # How it is differentiated

    @overload
    def vjp(self, function: F) -> F: ...

    @overload
    def vjp(self, *, broadcasts: bool = False, straight_through: bool = False) -> Callable[[F], F]: ...

    def vjp(
        self,
        function: Callable[..., Any] | None = None,
        *,
        broadcasts: bool = False,
        straight_through: bool = False,
    ) -> Any:
        """The gradient: `(c, g, *inputs, **attributes)` to one for each input, written in ONNX ops, and in `op(c, …)`.

        `g` is the gradient of the first output, `c.op` writes nodes, `c.gradient(1)` is that of the second output.
        With `broadcasts`, each is summed to the shape of its input afterwards. One that is `straight_through` is an
        estimate by design: `onward plugins check` then asks the frameworks for theirs, and not finite differences.
        """
        if function is None:
            self.broadcasts, self.straight_through = broadcasts, straight_through
            return self.vjp
        self.gradient = function
        return function

    def no_gradient(self, reason: str = "it is constant between steps") -> None:
        """No gradient flows through it."""
        self.without_gradient = reason

    # Use

    def __call__(self, where: Any, *inputs: Any, **attributes: Any) -> Any:
        """Write a node of this op, where a gradient or a frontend writes: `where` is its context, or the builder.

        It gives the tensor that the node does, or a list of them.
        """
        builder = getattr(where, "op", where)
        known = {one.name: one for one in self.attributes}
        if unknown := attributes.keys() - known.keys():
            raise UnsupportedError(f"{self.key} has no attribute {min(unknown)!r}; it has {', '.join(known) or 'none'}")
        given = {key: int(v) if known[key].kind is bool and v is not None else v for key, v in attributes.items()}
        builder.model.opset_imports.setdefault(self.domain, self.version)
        count = sum(1 for one in self.outputs if one.option != "?")
        found = builder.many(self.name, count, *inputs, domain=self.domain, **given)
        return found[0] if len(found) == 1 else found

    def _called_by_tensors(self, builder: Any, *arguments: Any, **named: Any) -> Any:
        """A call in a framework: tensors are inputs, the rest attributes, by the framework's names or in our order."""
        tensors = [value for value in arguments if hasattr(value, "value") or value is None]
        others = [value for value in arguments if not hasattr(value, "value") and value is not None]
        names = [one.name for one in self.attributes if one.name not in named]
        if len(others) > len(names):
            raise UnsupportedError(f"it is called with {len(others)} numbers, of which {self.key} has {len(names)}")
        return self(builder, *tensors, **dict(zip(names, others, strict=False)), **named)

    def keywords(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Every attribute, from those that a node has."""
        known = {one.name for one in self.attributes}
        if unknown := given.keys() - known:
            raise UnsupportedError(f"{self.key} has no attribute {min(unknown)!r}; it has {', '.join(known) or 'none'}")
        found = {one.name: one.plain(given.get(one.name)) for one in self.attributes}
        return {one.name: one.default if found[one.name] is None else found[one.name] for one in self.attributes}

    def run(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[np.ndarray[Any, Any]]:
        """What the reference computes, as a list of arrays of the dtypes that the schema says."""
        if self.reference is None:
            raise UnsupportedError(f"{self.key} has no reference: its plugin has no @op.numpy")
        found = self.reference(*inputs, **self.keywords(attributes))
        results = [np.asarray(one) for one in (found if isinstance(found, tuple | list) else (found,))]
        for formal, array, wanted in zip(self.outputs, results, self._dtypes(inputs), strict=False):
            if wanted is not None and array.dtype != wanted:
                raise OnwardError(
                    f"{self.key}: @op.numpy gives {array.dtype} for {formal.name!r}, where the schema says {wanted}"
                )
        return results

    def _dtypes(self, inputs: Sequence[Any]) -> Iterator[np.dtype[Any] | None]:
        pairs = zip(self.inputs, inputs, strict=False)
        bound = {formal.type: array.dtype for formal, array in pairs if isinstance(array, np.ndarray)}
        for formal in self.outputs:
            if formal.type in self.types:
                yield bound.get(formal.type)
            elif formal.type == "string":
                yield None
            else:
                yield np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number_of(formal.type)))


def _filing(table: dict[str, Callable[..., Any]], key: str) -> Callable[[F], F]:
    def put(function: F) -> F:
        table[key] = function
        return function

    return put


def _called(function: Any) -> list[onnx.FunctionProto]:
    """The onnxscript functions that one calls, and that those call."""
    seen: dict[tuple[str, str], onnx.FunctionProto] = {}
    waiting = list(_calls(function))
    while waiting:
        one = waiting.pop()
        proto = one.to_function_proto()
        if (proto.domain, proto.name) not in seen:
            seen[proto.domain, proto.name] = proto
            waiting += _calls(one)
    return list(seen.values())


def _calls(function: Any) -> list[Any]:
    return list(getattr(function.function_ir, "get_called_functions", dict)().values())
