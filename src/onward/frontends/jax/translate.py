"""Walks a jaxpr, and those inside it, and lets rules write each equation as ONNX."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import ConversionError, OnwardError, UnsupportedError
from onward.frontends.jax.fold import folded
from onward.frontends.jax.registry import BY_PART, COMPLEX, RULES, Rule
from onward.frontends.jax.values import Keys, Value, joined, parts
from onward.frontends.jax.writer import Writer, is_keys, kind_of, onnx_dtype, plain
from onward.frontends.tensorflow.values import Complex
from onward.graph.build import Tensor

SMALL = 4096
"""Elements up to which equal constants are one."""


class Translator:
    """The ONNX graph of one function, under construction."""

    def __init__(self, opset: int) -> None:
        graph = ir.Graph([], [], nodes=[], opset_imports={"": opset}, name="model")
        self.model = ir.Model(graph, ir_version=10, producer_name="onward")
        self.op = Writer(self.model)
        self.op.translator = self
        self.names: dict[int, str] = {}
        """Names of arrays that functions close over, by their ids."""
        self.places: list[str] | None = None
        """Where each operation of a file comes from: name stacks are their numbers then, and no names."""
        self._constants: dict[int, tuple[Any, Value]] = {}
        self._full: dict[tuple[ir.Value, tuple[int | str, ...]], Tensor] = {}

    def input(self, name: str, aval: Any) -> Tensor:
        """A new input of the model."""
        if kind_of(aval) is not Tensor:
            what = "keys of random numbers" if is_keys(aval) else "complex numbers"
            instead = "their key_data, and wrap it inside" if is_keys(aval) else "the real and imaginary parts"
            raise UnsupportedError(f"the input {name} is of {what}, which ONNX Runtime does not take; give {instead}")
        dims = self.op.dims(aval.shape)
        value = ir.Value(
            name=self.op.names.value(name), type=ir.TensorType(onnx_dtype(aval.dtype)), shape=ir.Shape(dims)
        )
        self.model.graph.inputs.append(value)
        self.op.dimensions.declare(value, aval.shape)
        return self.op.tensor(value)

    def weight(self, name: str, array: npt.NDArray[Any], trained: bool | None) -> Value:
        """A parameter under its name; `trained` is None for what is no parameter, but large or has a name."""
        if array.dtype.kind == "c":
            return Complex(*(self._held(f"{name}.{part}", getattr(array, part), trained) for part in ("real", "imag")))
        return self._held(name, array, trained)

    def _held(self, name: str, array: npt.NDArray[Any], trained: bool | None) -> Tensor:
        name = self.op.names.value(name)
        held = ir.Tensor(np.ascontiguousarray(array).reshape(array.shape), name=name)
        value = ir.Value(name=name, const_value=held, type=ir.TensorType(held.dtype), shape=ir.Shape(array.shape))
        self.model.graph.register_initializer(value)
        if trained is not None:
            self.op.weights[value] = array
            self.op.variables[value] = trained
        return self.op.tensor(value)

    def constant(self, given: Any) -> Value:
        """What a function closes over, or a literal."""
        found = self._constants.get(id(given))
        if found is None:
            found = self._constants[id(given)] = given, self._constant(given)  # keeps it, so that its id stays its own
        return found[1]

    def _constant(self, given: Any) -> Value:
        if hasattr(given, "dtype") and is_keys(given):
            import jax

            words = np.asarray(jax.random.key_data(given))
            return Keys(*(self.op.constant(np.ascontiguousarray(words[..., i])) for i in (0, 1)))
        array = np.asarray(given)
        name = self.names.get(id(given))
        if name is not None:
            held = self.weight(name, array, None)
            if isinstance(held, Tensor) and array.ndim > 1 and held.dtype.is_floating_point():
                self.op.weights[held.value] = array  # in whatever form it is stored, it has its name
            return held
        return self.op.array(array) if array.size <= SMALL else self.weight("constant", array, None)

    def run(self, jaxpr: Any, inputs: Sequence[Value], consts: Sequence[Any] | None = None) -> list[Value]:
        """What a jaxpr, closed or with what it is open in before the inputs, makes of values."""
        if hasattr(jaxpr, "consts"):
            jaxpr, consts = jaxpr.jaxpr, jaxpr.consts
        values: dict[Any, Value] = dict(zip(jaxpr.invars, inputs, strict=True))
        values.update(zip(jaxpr.constvars, map(self.constant, consts or ()), strict=True))

        def read(atom: Any) -> Value:
            if hasattr(atom, "val"):
                return self._literal(atom)
            return values[atom]

        for eqn in needed(jaxpr):
            results = self.equation(eqn, [read(atom) for atom in eqn.invars])
            values.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _literal(self, atom: Any) -> Value:
        return self.op.array(np.asarray(atom.val, dtype=atom.aval.dtype))

    def equation(self, eqn: Any, inputs: list[Value]) -> list[Value]:
        """What one equation gives."""
        op = self.op
        done = folded(op, eqn, inputs)
        if done is not None:
            return done
        outer, op.scope, around = op.scope, self._scope(eqn), getattr(op, "eqn", None)
        op.eqn = eqn
        try:
            return self._written(eqn, inputs)
        except OnwardError as error:
            raise self._located(error, eqn) from error
        finally:
            op.scope, op.eqn = outer, around

    def _located(self, error: OnwardError, eqn: Any) -> OnwardError:
        """An error with the primitive and the line of the user's program, where a function around it has one."""
        at, line = getattr(error, "primitive", eqn.primitive.name), self._place(eqn)
        words = getattr(error, "words", str(error))
        if getattr(error, "line", ""):
            return error
        located = type(error)(f"{at}{f' at {line}' if line else ''}: {words}")
        located.primitive, located.words, located.line = at, words, line  # type: ignore[attr-defined]
        return located

    def _place(self, eqn: Any) -> str:
        """Where an equation comes from: a line of the user's program, or an operation of a file."""
        if self.places is None:
            return line_of(eqn)
        numbers = re.findall(r"\d+", str(eqn.source_info.name_stack))
        return self.places[int(numbers[-1])] if numbers else ""

    def _scope(self, eqn: Any) -> str:
        """The names that the user gave to what is computed, as a prefix of nodes."""
        stack = str(eqn.source_info.name_stack) if self.places is None else ""
        return f"{self.op.scope}{stack}/" if stack else self.op.scope

    def _written(self, eqn: Any, inputs: list[Value]) -> list[Value]:
        name = eqn.primitive.name
        rule = RULES.get(name)
        is_complex = any(isinstance(value, Complex) for value in inputs)
        if is_complex and (found := COMPLEX.get(name)) is not None:
            rule = found
        if rule is None:
            raise UnsupportedError(missing(name))
        whole = rule.whole or all(isinstance(value, Tensor) for value in inputs)
        if not whole and name not in BY_PART:
            what = "complex numbers" if is_complex else "keys of random numbers"
            raise UnsupportedError(f"there is no rule for {name} of {what}; {INSTEAD}")
        if not rule.broadcasts:
            inputs = [self.full(value, atom.aval) for value, atom in zip(inputs, eqn.invars, strict=True)]
        options = {key: plain(value) for key, value in eqn.params.items() if key in rule.parameters}
        results = self._asked(rule, inputs, options) if whole else self._by_part(rule, inputs, options)
        return [
            self._checked(result, variable.aval, rule) for result, variable in zip(results, eqn.outvars, strict=True)
        ]

    def _asked(self, rule: Rule, inputs: Sequence[Value], options: dict[str, Any]) -> list[Value]:
        result = rule.function(self.op, *inputs, **options)
        return list(result) if isinstance(result, Sequence) else [result]

    def _by_part(self, rule: Rule, inputs: Sequence[Value], options: dict[str, Any]) -> list[Value]:
        """The same done to each of two parts; what has none is the same for both."""
        like = next(value for value in inputs if not isinstance(value, Tensor))
        both = [
            self._asked(rule, [value if isinstance(value, Tensor) else parts(value)[i] for value in inputs], options)
            for i in (0, 1)
        ]
        return joined(
            [like] * len(both[0]), [t for pair in zip(*both, strict=True) for one in pair for t in parts(one)]
        )

    def full(self, value: Value, aval: Any) -> Value:
        """A value in the shape that JAX says it has: broadcasts are put off until somebody needs them."""
        if not hasattr(aval, "shape") or _is_of(value, aval):
            return value
        wanted = self.op.dims(aval.shape)
        return joined([value], [self._expanded(tensor, wanted, aval.shape) for tensor in parts(value)])[0]

    def _expanded(self, tensor: Tensor, wanted: list[int | str], shape: Sequence[Any]) -> Tensor:
        if tensor.dims == wanted:
            return tensor
        array = self.op.known(tensor) if tensor.value not in self.op.weights else None
        sizes = [dim for dim in wanted if isinstance(dim, int)]
        if array is not None and len(sizes) == len(wanted) and math.prod(sizes) <= SMALL:
            return self.op.constant(np.broadcast_to(array, sizes), tensor.dtype)
        given = tensor.dims or []
        if [dim for dim in given if dim != 1] == [dim for dim in wanted if dim != 1] and len(given) <= len(wanted):
            return (
                self.op.unsqueeze(tensor, list(range(len(wanted) - len(given))))
                if given
                else (self.op.reshape(tensor, shape))
            )
        key = tensor.value, tuple(wanted)
        if key not in self._full:
            self._full[key] = self.op.expand(tensor, shape)
        return self._full[key]

    @contextmanager
    def inside(self) -> Iterator[None]:
        """In a body, which knows what was expanded before, and whose own is not known after it."""
        outer, self._full = self._full, dict(self._full)
        try:
            yield
        finally:
            self._full = outer

    def _checked(self, value: Value, aval: Any, rule: Rule) -> Value:
        """A result, with the shape that JAX says it has, unless it is put off; a rule that gives another is wrong."""
        if type(value) is not kind_of(aval):
            raise ConversionError(f"its rule gives a {type(value).__name__} instead of a {kind_of(aval).__name__}")
        if _is_of(value, aval) and value.dtype == onnx_dtype(aval.dtype):  # type: ignore[union-attr]
            return value
        wanted, dtype = self.op.dims(aval.shape), onnx_dtype(aval.dtype)
        for tensor in parts(value):
            if tensor.dtype != dtype:
                raise ConversionError(f"its rule gives {tensor.dtype.name} instead of {dtype.name}")
            if tensor.dims == wanted:
                continue
            if not _agree(tensor.dims, wanted, rule.broadcasts):
                raise ConversionError(f"its rule gives the shape {tensor.dims} instead of {wanted}")
            if not rule.broadcasts and tensor.value.producer() is not None:
                tensor.value.shape = ir.Shape(wanted)
        return value


def _is_of(value: Value, aval: Any) -> bool:
    """Whether it is a tensor that is known to be of a shape of numbers."""
    return isinstance(value, Tensor) and value.value.shape is not None and value.value.shape.dims == aval.shape


def _agree(found: list[int | str | None] | None, wanted: list[int | str], broadcasts: bool) -> bool:
    """Whether a shape that was inferred can be the one that is known, or broadcasts to it."""
    if found is None:
        return True
    if len(found) > len(wanted) or (len(found) < len(wanted) and not broadcasts):
        return False
    pairs = zip(reversed(found), reversed(wanted), strict=False)
    return all(a == b or not isinstance(a, int) or not isinstance(b, int) or (a == 1 and broadcasts) for a, b in pairs)


def needed(jaxpr: Any) -> list[Any]:
    """The equations that the results depend on."""
    wanted = {atom for atom in jaxpr.outvars if not hasattr(atom, "val")}
    found = []
    for eqn in reversed(jaxpr.eqns):
        if any(variable in wanted for variable in eqn.outvars):
            found.append(eqn)
            wanted.update(atom for atom in eqn.invars if not hasattr(atom, "val"))
    return found[::-1]


def line_of(eqn: Any) -> str:
    """The line of the user's program that an equation comes from."""
    from jax._src import source_info_util

    return str(source_info_util.summarize(eqn.source_info))


INSTEAD = "compute it outside of the function, or write it with other functions of jax.numpy"

REFUSED = {
    "pure_callback": "Python cannot be called from an ONNX model",
    "io_callback": "Python cannot be called from an ONNX model",
    "rng_uniform": "its random numbers are others each time; use jax.random with a key",
    "rng_bit_generator": "the random numbers of rbg keys are the hardware's own; use threefry2x32 keys",
}


def missing(name: str) -> str:
    return f"{REFUSED[name]}; {INSTEAD}" if name in REFUSED else f"there is no rule for this primitive; {INSTEAD}"
