"""Writes ONNX nodes for an equation of a jaxpr."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends import writer
from onward.frontends.jax import shapes
from onward.frontends.jax.dimensions import Dim, Dimensions, is_known, name_of
from onward.frontends.jax.values import Keys
from onward.frontends.tensorflow.values import Complex
from onward.graph.build import Tensor
from onward.graph.walk import all_graphs, inner_graphs

if TYPE_CHECKING:
    from onward.frontends.jax.translate import Translator


FLOATS = {ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.BFLOAT16}
TRUTH = ir.TensorType(ir.DataType.BOOL)
ARITHMETIC = (
    dict.fromkeys(
        ("Abs", "Add", "Cos", "Div", "Erf", "Exp", "Floor", "Log", "Mul", "Neg", "Pow", "Reciprocal", "Relu",
         "Sigmoid", "Sin", "Softmax", "Sqrt", "Sub", "Tanh"), "first")
    | dict.fromkeys(("Equal", "Greater", "GreaterOrEqual", "IsNaN", "Less", "LessOrEqual"), "truth")
    | {"Where": "last"}
)  # fmt: skip
"""Ops that compute number by number, and whose dtype theirs is: that of the first input, of the last, or truth."""


class Writer(writer.Writer):
    """A writer that knows the equation which is being written, and what symbolic dimensions are."""

    translator: Translator
    eqn: Any
    """The equation that is being written."""

    def __init__(self, model: ir.Model) -> None:
        super().__init__(model)
        self.dimensions = Dimensions(self)
        self.extremes: dict[ir.Value, Tensor] = {}
        """Extremes as JAX has them, and as ONNX Runtime has them, which differ where there is a NaN."""
        self._made: dict[Any, list[Tensor]] = {}

    @property
    def ins(self) -> list[Any]:
        """What JAX says of the inputs of the equation: each with `shape` and `dtype`."""
        return [variable.aval for variable in self.eqn.invars]

    @property
    def outs(self) -> list[Any]:
        """What JAX says of its results."""
        return [variable.aval for variable in self.eqn.outvars]

    @property
    def dtype(self) -> ir.DataType:
        """Of the first result; of complex numbers, that of the parts."""
        return onnx_dtype(self.outs[0].dtype)

    def dims(self, shape: Sequence[Dim]) -> list[int | str]:
        """A shape as tensors have it: sizes, and the names of symbolic dimensions."""
        return [name_of(dim) for dim in shape]

    def size(self, dim: Dim) -> Tensor:
        """A size as a scalar of int64."""
        return self.dimensions.scalar(dim)

    def sizes(self, shape: Sequence[Dim]) -> Tensor:
        """A shape as a vector of int64."""
        return self.dimensions.shape(shape)

    def reshape(self, x: Tensor, shape: Sequence[Dim]) -> Tensor:
        """In another shape; of what has as many elements as dimensions say."""
        wanted, given = self.dims(shape), x.dims
        if wanted == given:
            return x
        array = self.known(x)
        if array is not None and x.value not in self.weights and all(isinstance(dim, int) for dim in wanted):
            return self.constant(array.reshape([int(dim) for dim in shape]), x.dtype)
        numbers: list[int] = []
        for axis, dim in enumerate(wanted):
            kept = not isinstance(dim, int) and given is not None and axis < len(given) and given[axis] == dim
            numbers.append(dim if isinstance(dim, int) else 0 if kept else -1)
        if numbers.count(-1) > 1 or (0 in wanted and any(not isinstance(dim, int) for dim in wanted)):
            made = self.Reshape(x, self.sizes(shape), allowzero=1)
        else:
            made = self.Reshape(x, self.ints(numbers), allowzero=1 if 0 in wanted else None)
        made.value.shape = ir.Shape(wanted)
        return made

    def expand(self, x: Tensor, shape: Sequence[Dim]) -> Tensor:
        """A tensor, of fewer axes or of size 1 along some, repeated to a shape."""
        wanted = self.dims(shape)
        if wanted == x.dims:
            return x
        made = self.Expand(x, self.sizes(shape))
        made.value.shape = ir.Shape(wanted)
        return made

    def array(self, array: npt.NDArray[Any]) -> Tensor | Complex:
        """A constant."""
        if array.dtype.kind == "c":
            return Complex(self.constant(array.real.copy()), self.constant(array.imag.copy()))
        return self.constant(array)

    def numbers_of(self, shape: Sequence[Dim], what: str) -> list[int]:
        """Sizes that must be known when the model is written."""
        for dim in shape:
            if not is_known(dim):
                raise UnsupportedError(f"{what} is the symbolic dimension {dim}; give a number for it")
        return [int(dim) for dim in shape]

    def axes_of(self, node: ir.Node | None) -> list[int] | None:
        """The axes that a node reduces, counted from the first."""
        axes = node.inputs[1] if node is not None and len(node.inputs) > 1 else None
        array = None if axes is None or axes.const_value is None else axes.const_value.numpy()
        return None if array is None else [int(axis) for axis in array]

    def many(self, op_type: str, outputs: int, *inputs: Any, domain: str = "", **attributes: Any) -> list[Tensor]:
        """A node; what a graph, or the main one, computes already is not computed again."""
        first = next((value for value in inputs if isinstance(value, Tensor)), None)
        values = [self._operand(value, first) for value in inputs]
        attributes = {key: plain(value) for key, value in attributes.items()}
        if op_type == "Identity" or any(isinstance(value, ir.Graph) for value in attributes.values()):
            return super().many(op_type, outputs, *values, domain=domain, **attributes)
        key = op_type, outputs, domain, tuple(values), repr(sorted(attributes.items(), key=lambda item: item[0]))
        for graph in (self.graph, self.model.graph):
            if (known := self._made.get((graph, key))) is not None:
                return known
        made = super().many(op_type, outputs, *values, domain=domain, **attributes)
        self._made[self.graph, key] = made
        return made

    def typed(self, node: ir.Node) -> None:
        """Of common ops on floats what they give is told at once, without asking the schema."""
        kind, values = ARITHMETIC.get(node.op_type), node.inputs
        given = values[-1 if kind == "last" else 0] if values and not node.domain else None
        shape = None
        if given is not None and given.type is not None and given.dtype in FLOATS:
            shape = shapes.told(node) if kind is None else _together(values)
        if given is None or shape is None:
            ranks = _ranks_inside(node)
            super().typed(node)
            for value, rank in ranks.items():
                if value.shape is None:
                    value.shape = ir.Shape([None] * rank)
            return
        output = node.outputs[0]
        output.type = TRUTH if kind == "truth" else given.type
        output.shape = shape
        node.version = node.version or self.opset

    def reordered(self, x: Tensor, order: Sequence[int]) -> Tensor:
        """A transpose: of a constant it is stored so, of a transpose it is one with it, of axes of size 1 a reshape."""
        order = list(order)
        if order == sorted(order):
            return x
        if self.known(x) is not None:
            return self.arranged(x, order)
        made = x.value.producer()
        if made is not None and made.op_type == "Transpose" and made.inputs[0] is not None:
            inner = made.attributes["perm"].as_ints()
            return self.reordered(self.tensor(made.inputs[0]), [inner[axis] for axis in order])
        dims = x.dims or []
        moving = [axis for axis in order if dims[axis] != 1]
        wanted = [dims[axis] for axis in order]
        names = [dim for dim in wanted if not isinstance(dim, int)]
        if moving == sorted(moving) and len(names) <= 1 and 0 not in wanted:
            made_shape = self.Reshape(x, self.ints([dim if isinstance(dim, int) else -1 for dim in wanted]))
            made_shape.value.shape = ir.Shape(wanted)
            return made_shape
        return self.transpose(x, order)

    def swapped(self, x: Tensor) -> Tensor:
        """With the last two axes in each other's place."""
        rank = x.rank or 0
        return self.reordered(x, [*range(rank - 2), rank - 1, rank - 2])

    @contextmanager
    def body(self, graph: ir.Graph) -> Iterator[None]:
        """Write to the end of `graph`, the body of a node to come, in which what was expanded outside is known."""
        with self.inside(graph), self.translator.inside():
            yield

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Write to the main graph, so far as it is: what every body to come can read."""
        graph, depth, scope = self.graph, self.inference.depth, self.scope
        self.graph, self.inference.depth, self.scope = self.model.graph, 0, "sizes/"
        try:
            yield
        finally:
            self.graph, self.inference.depth, self.scope = graph, depth, scope


def _ranks_inside(node: ir.Node) -> dict[ir.Value, int]:
    """The ranks of what bodies compute: JAX keeps them from round to round, inference gives up on loops in loops."""
    bodies = [body for inner in inner_graphs(node) for body in all_graphs(inner)]
    values = [value for body in bodies for value in (*body.inputs, *(v for one in body for v in one.outputs))]
    return {value: len(value.shape) for value in values if value.shape is not None}


def _together(values: Sequence[ir.Value | None]) -> ir.Shape | None:
    """The shape of what is computed of values number by number, where theirs are known."""
    found = [value.shape for value in values if value is not None and value.shape is not None]
    return shapes.broadcast(found) if len(found) == len(values) else None


def plain(value: Any) -> Any:
    """A parameter or an attribute without numbers of numpy."""
    if isinstance(value, np.integer):
        return int(value)
    return type(value)(map(plain, value)) if type(value) in (tuple, list) else value


@cache
def onnx_dtype(dtype: Any) -> ir.DataType:
    """The dtype of tensors; of complex numbers that of their parts, of keys that of their words."""
    name = str(dtype)
    if name.startswith("key<"):
        if name != "key<fry>":
            raise UnsupportedError(f"random numbers of {name[4:-1]} keys are not supported: use threefry2x32 keys")
        return ir.DataType.UINT32
    if name in ("complex64", "complex128"):
        return ir.DataType.FLOAT if name == "complex64" else ir.DataType.DOUBLE
    try:
        return ir.DataType.from_numpy(np.dtype(dtype))
    except TypeError as error:
        raise UnsupportedError(f"ONNX has no dtype {name}") from error


def is_keys(aval: Any) -> bool:
    return kind_of(aval) is Keys


def kind_of(aval: Any) -> type[Tensor] | type[Complex] | type[Keys]:
    """What values of an aval are."""
    return _kind(aval.dtype)


@cache
def _kind(dtype: Any) -> type[Tensor] | type[Complex] | type[Keys]:
    if str(dtype).startswith("key<"):
        return Keys
    return Complex if np.dtype(dtype).kind == "c" else Tensor
