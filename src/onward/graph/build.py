"""Writes ONNX nodes as arithmetic on tensors: what gradients, losses, optimizers and frontends are written with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.infer import Inference
from onward.graph.names import Names
from onward.graph.rewriter import attribute

Number = int | float | bool


class Tensor:
    """A value of a graph under construction. Arithmetic on it writes nodes; numbers take on its dtype."""

    __slots__ = ("op", "value")

    def __init__(self, op: Builder, value: ir.Value) -> None:
        self.op = op
        self.value = value

    @property
    def dtype(self) -> ir.DataType:
        return self.value.dtype or ir.DataType.UNDEFINED

    @property
    def rank(self) -> int | None:
        return None if self.value.shape is None else self.value.shape.rank()

    @property
    def dims(self) -> list[int | str | None] | None:
        """The dimensions: a size, the name of one that is not known, or None; None if the rank is unknown."""
        if self.value.shape is None:
            return None
        return [d if isinstance(d, int) else d.value for d in self.value.shape]

    @property
    def sizes(self) -> list[int] | None:
        """The dimensions, if all are known."""
        dims = self.dims
        return (
            [d for d in dims if isinstance(d, int)]
            if dims is not None and all(isinstance(d, int) for d in dims)
            else None
        )

    @property
    def shape(self) -> Tensor:
        """The dimensions as a tensor, constant where they are known."""
        sizes = self.sizes
        return self.op.ints(sizes) if sizes is not None else self.op.Shape(self)

    def __add__(self, other: Tensor | Number) -> Tensor:
        return self.op.Add(self, other)

    def __radd__(self, other: Number) -> Tensor:
        return self.op.Add(self, other)

    def __sub__(self, other: Tensor | Number) -> Tensor:
        return self.op.Sub(self, other)

    def __rsub__(self, other: Number) -> Tensor:
        return self.op.Sub(self.op.like(other, self), self)

    def __mul__(self, other: Tensor | Number) -> Tensor:
        return self.op.Mul(self, other)

    def __rmul__(self, other: Number) -> Tensor:
        return self.op.Mul(self, other)

    def __truediv__(self, other: Tensor | Number) -> Tensor:
        return self.op.Div(self, other)

    def __rtruediv__(self, other: Number) -> Tensor:
        return self.op.Div(self.op.like(other, self), self)

    def __pow__(self, other: Tensor | Number) -> Tensor:
        return self.op.Pow(self, other)

    def __matmul__(self, other: Tensor) -> Tensor:
        return self.op.MatMul(self, other)

    def __neg__(self) -> Tensor:
        return self.op.Neg(self)

    def __gt__(self, other: Tensor | Number) -> Tensor:
        return self.op.Greater(self, other)

    def __ge__(self, other: Tensor | Number) -> Tensor:
        return self.op.GreaterOrEqual(self, other)

    def __lt__(self, other: Tensor | Number) -> Tensor:
        return self.op.Less(self, other)

    def __le__(self, other: Tensor | Number) -> Tensor:
        return self.op.LessOrEqual(self, other)

    def ranked(self, rank: int) -> Tensor:
        """The same, with a rank that shows: what an op takes has it, even where inference does not find it."""
        if self.rank is not None:
            return self
        return self.op.Reshape(self, self.op.Gather(self.op.Shape(self), self.op.ints(range(rank))), allowzero=1)

    def cast(self, dtype: ir.DataType) -> Tensor:
        return self if self.dtype == dtype else self.op.Cast(self, to=int(dtype))


class Builder:
    """Appends nodes to a graph: `op.Exp(x)`, `op.Softmax(x, axis=-1)`, `op.many("Split", 3, x, axis=1)`.

    Inputs are tensors, numbers (which take on the dtype of the first tensor), arrays, or None where one is left out.
    Types and shapes of results are known at once. Nodes that turn out to be unused are for a later pass to remove.
    """

    def __init__(self, model: ir.Model, graph: ir.Graph | None = None) -> None:
        self.model = model
        self.graph = model.graph if graph is None else graph
        self.names = Names(model)
        self.inference = Inference(model)
        self.scope = ""
        """A prefix for the names of new nodes."""
        self._constants: dict[tuple[Any, ...], ir.Value] = {}

    def tensor(self, value: ir.Value) -> Tensor:
        return Tensor(self, value)

    def __getattr__(self, op_type: str) -> Callable[..., Tensor]:
        if not op_type[0].isupper():
            raise AttributeError(op_type)

        def node(*inputs: Any, **attributes: Any) -> Tensor:
            return self.many(op_type, 1, *inputs, **attributes)[0]

        return node

    def many(self, op_type: str, outputs: int, *inputs: Any, domain: str = "", **attributes: Any) -> list[Tensor]:
        """As a call, for a node of several outputs, or of another domain."""
        first = next((value for value in inputs if isinstance(value, Tensor)), None)
        values = [self._operand(value, first) for value in inputs]
        while values and values[-1] is None:
            values.pop()
        node = ir.Node(
            domain,
            op_type,
            values,
            [attribute(key, value) for key, value in attributes.items() if value is not None],
            num_outputs=outputs,
            name=self.names.node(f"{self.scope}{op_type}"),
        )
        for output in node.outputs:
            output.name = self.names.value(node.name or op_type)
        self.graph.append(node)
        self.typed(node)
        return [Tensor(self, output) for output in node.outputs]

    def typed(self, node: ir.Node) -> None:
        """Say what a node that was just written gives."""
        self.inference.node(node)

    def _operand(self, value: Any, like: Tensor | None) -> ir.Value | None:
        if value is None or isinstance(value, Tensor):
            return None if value is None else value.value
        if isinstance(value, ir.Value):
            return value
        if isinstance(value, np.ndarray | list | tuple):
            return self.constant(np.asarray(value)).value
        if like is None:
            raise TypeError(f"{value!r} has no tensor beside it to take the dtype from")
        return self.like(value, like).value

    def constant(self, array: npt.NDArray[Any], dtype: ir.DataType | None = None) -> Tensor:
        """A constant; equal ones are one."""
        array = np.ascontiguousarray(array).reshape(array.shape)
        dtype = dtype or ir.DataType.from_numpy(array.dtype)
        key = (dtype, array.dtype, array.shape, array.tobytes())
        value = self._constants.get(key)
        if value is None:
            tensor = ir.Tensor(array, dtype=dtype)
            name = self.names.value(f"{self.scope}constant")
            value = ir.Value(
                name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(array.shape)
            )
            tensor.name = name
            self.model.graph.register_initializer(value)
            self._constants[key] = value
        return Tensor(self, value)

    def strings(self, array: npt.NDArray[Any]) -> Tensor:
        """A constant of strings; equal ones are one."""
        items = [item if isinstance(item, bytes) else str(item).encode() for item in array.reshape(-1)]
        key = ("STRING", tuple(array.shape), b"".join(len(item).to_bytes(8, "little") + item for item in items))
        if key in self._constants:
            return Tensor(self, self._constants[key])
        name = self.names.value(f"{self.scope}constant")
        tensor = ir.StringTensor(items, shape=ir.Shape(array.shape), name=name)
        value = ir.Value(
            name=name, const_value=tensor, type=ir.TensorType(ir.DataType.STRING), shape=ir.Shape(array.shape)
        )
        self.model.graph.register_initializer(value)
        self._constants[key] = value
        return Tensor(self, value)

    def ints(self, numbers: Sequence[int]) -> Tensor:
        return self.constant(np.asarray(numbers, np.int64).reshape(-1))

    def index(self, number: int) -> Tensor:
        """A scalar of int64."""
        return self.constant(np.asarray(number, np.int64))

    def like(self, number: Number, tensor: Tensor) -> Tensor:
        """A number as a scalar of the dtype of `tensor`."""
        return self.constant(np.asarray(number).astype(tensor.dtype.numpy()), tensor.dtype)

    def zeros_like(self, tensor: Tensor) -> Tensor:
        return self.filled(tensor, 0)

    def filled(self, tensor: Tensor, number: Number) -> Tensor:
        """`number` in the shape and dtype of `tensor`."""
        return self.Expand(self.like(number, tensor), tensor.shape)

    def sum(self, tensor: Tensor, axes: Sequence[int] | None = None, keepdims: bool = True) -> Tensor:
        """Over the axes given, or all."""
        return self.ReduceSum(tensor, None if axes is None else self.ints(axes), keepdims=int(keepdims))

    def where(self, condition: Tensor, a: Tensor | Number, b: Tensor | Number) -> Tensor:
        like = a if isinstance(a, Tensor) else b
        assert isinstance(like, Tensor)
        first, second = (v if isinstance(v, Tensor) else self.like(v, like) for v in (a, b))
        return self.Where(condition, first, second)

    def transpose(self, tensor: Tensor, perm: Sequence[int]) -> Tensor:
        return tensor if list(perm) == list(range(len(perm))) else self.Transpose(tensor, perm=list(perm))

    def squeeze(self, tensor: Tensor, axes: Sequence[int]) -> Tensor:
        made = tensor.value.producer()
        if made is not None and made.op_type == "Unsqueeze" and made.inputs[0] is not None and axes:
            added = made.inputs[1].const_value if made.inputs[1] is not None else None
            if added is not None and added.numpy().tolist() == list(axes):
                return self.tensor(made.inputs[0])
        return self.Squeeze(tensor, self.ints(axes)) if axes else tensor

    def unsqueeze(self, tensor: Tensor, axes: Sequence[int]) -> Tensor:
        return self.Unsqueeze(tensor, self.ints(axes)) if axes else tensor

    def rank(self, tensor: Tensor, what: str) -> int:
        if tensor.rank is None:
            raise UnsupportedError(f"the rank of {what} is not known")
        return tensor.rank

    def reshape_like(self, tensor: Tensor, like: Tensor) -> Tensor:
        return self.Reshape(tensor, like.shape, allowzero=1)

    def total(self, tensors: Sequence[Tensor]) -> Tensor:
        """The sum of tensors of one shape."""
        if len(tensors) == 1:
            return tensors[0]
        return self.Add(*tensors) if len(tensors) == 2 else self.Sum(*tensors)

    def input_like(self, value: ir.Value) -> ir.Value:
        """A new value of the type and shape of another: an input of a body to come."""
        return ir.Value(name=self.names.value(f"{self.scope}input"), type=value.type, shape=value.shape)

    @contextmanager
    def inside(self, graph: ir.Graph) -> Iterator[None]:
        """Write to the end of `graph`, the body of a node to come."""
        outer, self.graph = self.graph, graph
        self.inference.depth += 1
        try:
            yield
        finally:
            self.graph = outer
            self.inference.depth -= 1
