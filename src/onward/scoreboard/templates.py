"""Small models of one op each, from which one for every dtype is made: the suite's, and some for ops it lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TypeProto, ValueInfoProto, helper

from onward.scoreboard import suite
from onward.scoreboard.types import COMMON, kind_of, leaf

FLOAT = onnx.TensorProto.FLOAT
LARGEST = 20_000
"""Numbers in a template's inputs: one of them is enough to see whether a dtype is known."""
LEAST = 6
"""With less, a wrong result may well be right by chance."""


@dataclass(frozen=True)
class Template:
    """A node and what is fed to it."""

    name: str
    node: NodeProto
    inputs: tuple[ValueInfoProto, ...]
    outputs: tuple[ValueInfoProto, ...]
    values: tuple[Any, ...]


def templates(op: str) -> list[Template]:
    """Those of an op of ai.onnx, the best first: see `_rank`."""
    return [*_suite().get(op, ()), *_own(op)]


@cache
def _suite() -> dict[str, list[Template]]:
    found: dict[str, list[tuple[tuple[int, ...], Template]]] = {}
    for name, case in suite.cases().items():
        if case.kind != "node" or len((model := suite.model_of(case)).graph.node) != 1:
            continue
        node = model.graph.node[0]
        if node.domain not in ("", "ai.onnx") or model.graph.initializer:
            continue
        values = next(suite.data_sets(case))[0]
        if sum(map(_size, values)) > LARGEST or len(values) != len(model.graph.input):
            continue
        opset = next(entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
        version = onnx.defs.get_schema(node.op_type, opset, "").since_version
        template = Template(name, node, tuple(model.graph.input), tuple(model.graph.output), tuple(values))
        found.setdefault(node.op_type, []).append((_rank(model, values, version), template))
    return {op: [template for _, template in sorted(some, key=lambda pair: pair[0])] for op, some in found.items()}


def _rank(model: onnx.ModelProto, values: list[Any], version: int) -> tuple[int, ...]:
    """The plainest first: what has data worth the name, common dtypes, few attributes, few inputs, little data.

    It is a dtype that is asked about, not a rare mode of the op.
    """
    node, size = model.graph.node[0], sum(map(_size, values))
    rare = sum(leaf(kind_of(info.type)) not in COMMON for info in (*model.graph.input, *model.graph.output))
    poor = size < LEAST or not all(map(_size, values))
    return poor, rare, len(node.attribute), len(values), -version, size


def _size(value: Any) -> int:
    if value is None:
        return 0
    return sum(map(_size, value)) if isinstance(value, list | tuple) else int(np.size(value))


def _own(op: str) -> Iterator[Template]:
    for kind in KINDS:
        if op in ANY_TYPE:
            yield _any_type(op, kind)
    if op in OTHER:
        yield from OTHER[op]()


X = np.array([[1.5, -2, 3], [4, 5, -6.5]], np.float32)
TENSOR = helper.make_tensor_type_proto(FLOAT, [2, 3])
LIST = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [2, 3]))
KINDS: dict[str, tuple[TypeProto, Any]] = {
    "tensor": (TENSOR, X),
    "sequence": (LIST, [X, X + 1]),
    "optional": (helper.make_optional_type_proto(TENSOR), X),
    "optional sequence": (helper.make_optional_type_proto(LIST), [X, X + 1]),
}
ANY_TYPE = ("Identity", "If", "Loop", "OptionalGetElement", "OptionalHasElement", "Optional")
"""Ops that take values of any structure."""


def _template(
    name: str, node: NodeProto, types: dict[str, TypeProto], values: list[Any], result: TypeProto | None = None
) -> Template:
    """With the types of the inputs by name; inference finds those of the outputs, unless it needs `result`."""
    inputs = tuple(helper.make_value_info(name, kind) for name, kind in types.items())
    outputs = tuple(ValueInfoProto(name=output, type=result) for output in node.output)
    return Template(f"{node.op_type}, {name}", node, inputs, outputs, tuple(values))


def _any_type(op: str, kind: str) -> Template:
    proto, value = KINDS[kind]
    types, values = {"x": proto}, [value]
    condition = helper.make_tensor_type_proto(onnx.TensorProto.BOOL, [])
    if op == "If":
        branch = helper.make_graph([helper.make_node("Identity", ["x"], ["z"])], "branch", [], [_info("z", proto)])
        node = helper.make_node("If", ["choice"], ["y"], then_branch=branch, else_branch=branch)
        types, values = {"choice": condition, **types}, [np.array(True), *values]
    elif op == "Loop":
        count = helper.make_tensor_type_proto(onnx.TensorProto.INT64, [])
        nodes = [helper.make_node("Identity", [a], [b]) for a, b in (("go", "more"), ("state", "next"))]
        body = helper.make_graph(
            nodes,
            "body",
            [_info("i", count), _info("go", condition), _info("state", proto)],
            [_info("more", condition), _info("next", proto)],
        )
        node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=body)
        types, values = {"n": count, **types}, [np.array(2), *values]
    else:
        node = helper.make_node(op, ["x"], ["y"])
    return _template(kind, node, types, values, proto if op in ("Identity", "If", "Loop") else None)


def _info(name: str, kind: TypeProto) -> ValueInfoProto:
    return helper.make_value_info(name, kind)


def _tensor(*shape: int, dtype: int = FLOAT) -> TypeProto:
    return helper.make_tensor_type_proto(dtype, shape)


INDEX = _tensor(dtype=onnx.TensorProto.INT64)
ONE = np.array(1)


def _scan() -> Iterator[Template]:
    nodes = [helper.make_node("Identity", ["s"], ["t"]), helper.make_node("Identity", ["row"], ["copy"])]
    row = _tensor(3)
    ends = [[_info("s", row), _info("row", row)], [_info("t", row), _info("copy", row)]]
    body = helper.make_graph(nodes, "body", *ends)
    node = helper.make_node("Scan", ["state", "x"], ["last", "rows"], body=body, num_scan_inputs=1)
    yield _template("rows", node, {"state": row, "x": TENSOR}, [X[0] + 1, X])


def _sequences(op: str, *positions: Any, **attributes: Any) -> Iterator[Template]:
    names = ["at"][: len(positions)]
    node = helper.make_node(op, ["list", *names], ["y"], **attributes)
    yield _template("two tensors", node, {"list": LIST} | dict.fromkeys(names, INDEX), [[X, X + 1], *positions])


def _construct() -> Iterator[Template]:
    node = helper.make_node("SequenceConstruct", ["a", "b"], ["y"])
    yield _template("two tensors", node, {"a": TENSOR, "b": TENSOR}, [X, X + 1])


def _empty() -> Iterator[Template]:
    yield _template("empty", helper.make_node("SequenceEmpty", [], ["y"], dtype=FLOAT), {}, [])


def _pool(op: str, **attributes: Any) -> Iterator[Template]:
    x = np.linspace(-2, 3, 2 * 3 * 4 * 4, dtype=np.float32).reshape(2, 3, 4, 4)
    types, values = {"x": _tensor(2, 3, 4, 4)}, [x]
    if op == "MaxRoiPool":
        types["rois"] = _tensor(2, 5)
        values.append(np.array([[0, 0, 0, 3, 3], [1, 1, 0, 2, 3]], np.float32))
    yield _template("2D", helper.make_node(op, list(types), ["y"], **attributes), types, values)


def _dft() -> Iterator[Template]:
    signal = np.linspace(-1, 2, 10, dtype=np.float32).reshape(1, 5, 2) ** 2
    types = {"x": _tensor(1, 5, 2), "length": INDEX, "axis": INDEX}
    node = helper.make_node("DFT", list(types), ["y"])
    yield _template("with a length", node, types, [signal, np.array(5), ONE], _tensor(1, 5, 2))


OTHER: dict[str, Callable[[], Iterator[Template]]] = {
    "DFT": _dft,
    "Scan": _scan,
    "SequenceAt": lambda: _sequences("SequenceAt", ONE),
    "SequenceErase": lambda: _sequences("SequenceErase", ONE),
    "SequenceLength": lambda: _sequences("SequenceLength"),
    "ConcatFromSequence": lambda: _sequences("ConcatFromSequence", axis=0),
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "GlobalLpPool": lambda: _pool("GlobalLpPool", p=2),
    "MeanVarianceNormalization": lambda: _pool("MeanVarianceNormalization", axes=[0, 2, 3]),
    "MaxRoiPool": lambda: _pool("MaxRoiPool", pooled_shape=[2, 2], spatial_scale=1.0),
}
