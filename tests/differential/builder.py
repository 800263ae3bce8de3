"""Random graphs, grown one node at a time: each node is run by itself on ONNX Runtime, which so tells the value of
every tensor, and whether the node may be there at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

onnxruntime.set_default_logger_severity(4)

LARGEST = 2000
"""The most elements of a tensor."""
DTYPES = {
    "f": [np.float32, np.float32, np.float32, np.float64, np.float16],
    "i": [np.int64, np.int64, np.int32, np.int8, np.uint8, np.int16, np.uint16, np.uint32, np.uint64],
    "b": [np.bool_],
}
FLOATS = tuple(map(np.dtype, (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)))
EPSILON = {
    np.dtype(np.float32): 2e-6,
    np.dtype(np.float64): 1e-13,
    np.dtype(np.float16): 2e-3,
    np.dtype(ml_dtypes.bfloat16): 1.6e-2,
}


class Rejected(Exception):
    """A choice that leads to no valid node, or that ONNX Runtime refuses."""


@dataclass
class Value:
    """A tensor of the graph, with what it holds when the graph is run on the chosen inputs."""

    name: str
    data: Any
    kind: str
    """'input', 'initializer', 'constant' (made by a Constant node) or 'node'."""
    exact: bool = True
    """Whether every correct implementation computes the same bits."""
    noise: float = 0.0
    """How far two correct implementations may be apart."""

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.data.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def rank(self) -> int:
        return self.data.ndim

    @property
    def is_float(self) -> bool:
        return self.dtype in FLOATS

    @property
    def is_constant(self) -> bool:
        return self.kind in ("initializer", "constant")


def type_of(data: np.ndarray[Any, Any]) -> int:
    return onnx.TensorProto.STRING if data.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(data.dtype)


def info(name: str, data: np.ndarray[Any, Any]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type_of(data), data.shape)


def model_of(graph: onnx.GraphProto, opset: int) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])


def free_names(node: onnx.NodeProto) -> list[str]:
    """What a node reads: its inputs, and what the graphs inside it take from outside."""
    found = [n for n in node.input if n]
    for attribute in node.attribute:
        for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
            made = {v.name for v in graph.input} | {w.name for w in graph.initializer}
            made |= {o for inner in graph.node for o in inner.output}
            read = [n for inner in graph.node for n in free_names(inner)] + [v.name for v in graph.output]
            found += [n for n in read if n not in made]
    return list(dict.fromkeys(found))


@dataclass
class Graph:
    """A graph in the making."""

    rng: np.random.Generator
    opset: int
    values: dict[str, Value] = field(default_factory=dict)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    prefix: str = ""
    scope: str = ""
    count: int = 0

    # Chance

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def integer(self, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def choose(self, items: Sequence[Any]) -> Any:
        if not len(items):
            raise Rejected("nothing to choose from")
        return items[int(self.rng.integers(len(items)))]

    def sizes(self, rank: int) -> tuple[int, ...]:
        return tuple(
            int(self.rng.choice([0, 1, 2, 3, 4, 5, 7], p=[0.03, 0.2, 0.27, 0.2, 0.15, 0.1, 0.05])) for _ in range(rank)
        )

    def array(self, dtype: Any, shape: Sequence[int], special: float = 0.1) -> np.ndarray[Any, Any]:
        """Random numbers of few digits, sometimes with the extreme ones of the type."""
        dtype, rng = np.dtype(dtype), self.rng
        if dtype.kind == "b":
            return rng.random(shape) < 0.5
        if dtype.kind in "iu":
            limits = np.iinfo(dtype)
            low = 0 if dtype.kind == "u" else -6
            data = rng.integers(low, 9, shape).astype(dtype)
            extremes = [limits.min, limits.max, limits.max - 1, limits.max // 2 + 1]
            if self.chance(special):
                data = np.where(rng.random(shape) < 0.3, rng.choice(np.array(extremes, dtype=dtype), shape), data)
            return np.asarray(data, dtype=dtype)
        data = np.round(rng.standard_normal(shape) * 2, int(rng.integers(0, 4)))
        if self.chance(special):
            extremes = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 0.5, -0.5, 1.5, 2.5])
            data = np.where(rng.random(shape) < 0.3, rng.choice(extremes, shape), data)
        return np.asarray(data).astype(dtype)

    # Values

    def fresh(self, hint: str = "t") -> str:
        self.count += 1
        return f"{self.prefix}{hint}{self.count}"

    def add(self, data: np.ndarray[Any, Any], kind: str, name: str | None = None) -> Value:
        data = np.asarray(data)
        name = name or self.fresh({"input": "x", "initializer": "w", "constant": "c"}[kind])
        value = self.values[name] = Value(name, data, kind)
        return value

    def given(self, data: Any, dtype: Any = None, kinds: Sequence[str] = ("initializer", "constant", "input")) -> Value:
        """Data as a value of one of the kinds."""
        return self.add(np.asarray(data, dtype=dtype), self.choose(kinds))

    def ints(self, *numbers: int, constant: bool = False, dtype: Any = np.int64) -> Value:
        """A list of integers: mostly a constant, at times an input or computed from a shape."""
        if constant or self.chance(0.75):
            return self.given(numbers, dtype, ("initializer", "constant"))
        if dtype == np.int64 and len(numbers) == 1 and numbers[0] > 0 and self.chance(0.5):
            for value in self.rng.permutation(np.array(list(self.values), dtype=object)):
                found = self.values[value]
                if isinstance(found.data, np.ndarray) and numbers[0] in found.shape:
                    shape = self.node("Shape", [found])
                    place = found.shape.index(numbers[0]) - (found.rank if self.chance(0.3) else 0)
                    return self.node(
                        "Gather", [shape, self.given([place], np.int64, ("initializer", "constant"))], axis=0
                    )
        return self.given(numbers, dtype, ("input",))

    def pick(self, kinds: str = "fib", least: int = 0, most: int = 5, exact: bool = False, where: Any = None) -> Value:
        """An existing value, or a new one, of a kind of dtype and a rank."""
        found = [
            v
            for v in self.values.values()
            if isinstance(v.data, np.ndarray)
            and v.data.dtype.kind != "O"
            and (("f" if v.is_float else "b" if v.dtype.kind == "b" else "i") in kinds)
            and least <= v.rank <= most
            and (v.exact or not exact)
            and (where is None or where(v))
        ]
        if found and self.chance(0.85):
            weights = np.arange(1, len(found) + 1, dtype=float) ** 2
            return found[int(self.rng.choice(len(found), p=weights / weights.sum()))]
        dtype = self.choose(DTYPES[self.choose(list(kinds))])
        fresh = self.given(self.array(dtype, self.sizes(self.integer(least, min(most, 4) if most > least else most))))
        if where is not None and not where(fresh):
            raise Rejected("no such value")
        return fresh

    def partner(self, like: Value, exact: bool = False) -> Value:
        """Another value of the same dtype that broadcasts with a given one."""

        def fits(v: Value) -> bool:
            if v.dtype != like.dtype or (exact and not v.exact):
                return False
            try:
                return math.prod(np.broadcast_shapes(v.shape, like.shape)) <= LARGEST
            except ValueError:
                return False

        found = [v for v in self.values.values() if isinstance(v.data, np.ndarray) and fits(v)]
        if found and self.chance(0.5):
            return self.choose(found)
        shape = list(like.shape)
        if self.chance(0.3):
            shape = [1 if self.chance(0.5) else d for d in shape]
        if self.chance(0.4):
            shape = shape[self.integer(0, len(shape)) :]
        elif self.chance(0.15) and len(shape) < 5:
            shape = [self.integer(1, 2), *shape]
        return self.given(self.array(like.dtype, shape))

    def axis(self, value: Value, extra: int = 0) -> int:
        """An axis, counted from either end."""
        if value.rank + extra == 0:
            raise Rejected("no axis")
        return self.integer(-value.rank - extra, value.rank + extra - 1)

    # Nodes

    def since(self, op: str) -> int:
        """The version of an operator in this graph's opset."""
        try:
            return int(onnx.defs.get_schema(op, self.opset, "").since_version)
        except onnx.defs.SchemaError:
            raise Rejected(f"no {op} in opset {self.opset}") from None

    def node(
        self, op: str, inputs: Sequence[Value | None], outputs: int = 1, loss: float | None = 0.0, **attributes: Any
    ) -> Any:
        """Append a node. `loss` is 0 for an exact op, else how many roundings it stands for; None: only moves."""
        self.since(op)
        names = [self.fresh() for _ in range(outputs)]
        proto = helper.make_node(op, ["" if v is None else v.name for v in inputs], names, **attributes)
        made = self.append(proto, 0.0 if loss is None else loss, moves=loss is None)
        return made[0] if outputs == 1 else made

    def append(self, proto: onnx.NodeProto, loss: float = 0.0, moves: bool = False) -> list[Value]:
        read = [self.values[n] for n in free_names(proto)]
        results = self.run(proto, read)
        names = [n for n in proto.output if n]
        made = [self._judged(n, data, read, loss, moves) for n, data in zip(names, results, strict=True)]
        if self.scope or self.chance(0.2):
            proto.name = f"/{self.scope}/{proto.op_type}_{len(self.nodes)}"
        self.nodes.append(proto)
        self.values.update({v.name: v for v in made})
        return made

    def _judged(self, name: str, data: Any, read: list[Value], loss: float, moves: bool) -> Value:
        value = Value(name, data, "node")
        if not isinstance(data, np.ndarray) or data.dtype.kind == "O":
            return value
        if data.size > LARGEST:
            raise Rejected("too large")
        inexact = [v for v in read if not v.exact]
        value.exact = not inexact and not loss
        if value.exact:
            return value
        if data.dtype not in FLOATS:
            value.exact = not inexact
            if inexact:
                raise Rejected("depends on how numbers are rounded")
            return value
        with np.errstate(all="ignore"):
            largest = float(np.max(np.abs(data.astype(np.float64)), initial=0.0))
            sources = [float(np.max(np.abs(v.data.astype(np.float64)), initial=0.0)) for v in read if v.is_float]
        if (
            not math.isfinite(largest)
            or not all(map(math.isfinite, sources))
            or largest > 1e3
            or max(sources, default=0) > 1e3
        ):
            raise Rejected("numbers too large to compare")
        noise = max((v.noise for v in inexact), default=0.0)
        value.noise = noise if moves else 4 * noise + loss * EPSILON[data.dtype] * max(largest, *sources, 1.0)
        if value.noise > 0.02 * max(1.0, largest):
            raise Rejected("too inexact")
        return value

    def run(self, proto: onnx.NodeProto, read: list[Value]) -> list[Any]:
        """What ONNX Runtime computes for one node."""
        # A Constant node of a body may be shadowed by nothing: what is constant here is an initializer there.
        graph = helper.make_graph(
            [proto],
            "one",
            [info(v.name, v.data) for v in read if not v.is_constant],
            [onnx.ValueInfoProto(name=n) for n in proto.output if n],
            [numpy_helper.from_array(v.data, v.name) for v in read if v.is_constant],
        )
        try:
            with np.errstate(all="ignore"):
                runner = session(onnx.shape_inference.infer_shapes(model_of(graph, self.opset), data_prop=False))
                found = runner.run(None, {v.name: v.data for v in read if not v.is_constant})
        except Exception as error:
            raise Rejected(str(error)[:200]) from None
        if any(f is None for f in found):
            raise Rejected("an output that is not computed")
        return list(found)

    # The model

    def model(
        self, nodes: Sequence[onnx.NodeProto] | None = None, outputs: Sequence[str] | None = None, unused: bool = True
    ) -> tuple[onnx.ModelProto, list[Any], list[Value]]:
        """The model of some of the nodes, its inputs' values, and what its outputs must be.

        What is read but not made by these nodes is an input, unless it is a constant.
        """
        nodes = self.nodes if nodes is None else list(nodes)
        outputs = self.outputs if outputs is None else list(outputs)
        made = {o for n in nodes for o in n.output if o}
        needed = [n for n in dict.fromkeys([x for n in nodes for x in free_names(n)] + list(outputs)) if n not in made]
        if unused:
            needed += [v.name for v in self.values.values() if v.kind == "input" and v.name not in needed]
        values = [self.values[n] for n in needed]
        inputs = [v for v in values if not v.is_constant]
        body = [
            helper.make_node("Constant", [], [v.name], value=numpy_helper.from_array(v.data, v.name))
            for v in values
            if v.kind == "constant"
        ]
        wanted = [self.values[n] for n in outputs]
        graph = helper.make_graph(
            [*body, *nodes],
            "random",
            [info(v.name, v.data) for v in inputs],
            [helper.make_tensor_value_info(v.name, type_of(v.data), None) for v in wanted],
            [numpy_helper.from_array(v.data, v.name) for v in values if v.kind == "initializer"],
        )
        return model_of(graph, self.opset), [v.data for v in inputs], wanted
