"""What lasts from one call of the model to the next: variables; and tables, which are filled once and for all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.rules.string import looked_up
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.read import Lite
from onward.frontends.tflite.registry import rule
from onward.gate.bounds import check_room
from onward.graph.build import Tensor


@dataclass(eq=False)
class Variable:
    """A tensor that is read and written, by its name."""

    name: str
    initial: npt.NDArray[Any] | None = None
    changes: bool = False
    """Whether a call of the model changes it."""
    now: Tensor | None = None
    before: Tensor | None = None
    """What it holds when the model is called: an input of the ONNX model."""


@dataclass(eq=False)
class Table:
    keys: npt.NDArray[Any] | None = None
    values: npt.NDArray[Any] | None = None


@dataclass
class Resources:
    """All that the file has of them."""

    changed: set[str]
    """The names of variables that are written in the course of a call."""
    variables: dict[str, Variable] = field(default_factory=dict)
    tables: dict[int, Table] = field(default_factory=dict)
    filling: bool = False
    """While what is done once, before the first call, is looked at."""

    @classmethod
    def of(cls, lite: Lite) -> Resources:
        once = {operator.builtinOptions.initSubgraphIndex for _, operator in _operators(lite, "CALL_ONCE")}
        changed = set()
        for number, operator in _operators(lite, "ASSIGN_VARIABLE"):
            if number not in once:
                changed |= _handles(lite, number, operator.inputs[0])
        return cls(changed)

    def variable(self, name: str) -> Variable:
        return self.variables.setdefault(name, Variable(name, changes=name in self.changed))

    def states(self) -> list[Variable]:
        """Those that a call has changed."""
        return [variable for variable in self.variables.values() if variable.now is not None and variable.changes]


def _operators(lite: Lite, op_type: str) -> Iterator[tuple[int, Any]]:
    for number, graph in enumerate(lite.graphs):
        for operator in graph.operators or ():
            if lite.op_type(operator) == op_type:
                yield number, operator


def _handles(lite: Lite, number: int, tensor: int) -> set[str]:
    """The name of the variable behind a tensor; all there are where it is handed in from another graph."""
    handles = _operators(lite, "VAR_HANDLE")
    found = {(at, int(op.outputs[0])): op.builtinOptions.sharedName.decode() for at, op in handles}
    return {found[number, tensor]} if (number, tensor) in found else set(found.values())


@rule("CALL_ONCE")
def call_once(op: Writer) -> list[Any]:
    walk = op.operation.graph
    walk.resources.filling = True
    walk.called(op.operation.options.initSubgraphIndex, [])
    walk.resources.filling = False
    return []


@rule("VAR_HANDLE")
def var_handle(op: Writer) -> Variable:
    name = (op.operation.options.sharedName or b"").decode()
    return op.operation.graph.resources.variable(name)  # type: ignore[no-any-return]


@rule("READ_VARIABLE")
def read_variable(op: Writer, variable: Variable) -> Tensor:
    if variable.now is not None:
        return variable.now
    if variable.initial is None:
        raise UnsupportedError(f"the variable {variable.name!r} is read before anything is in it")
    if not variable.changes:
        return op.constant(variable.initial)
    variable.before = variable.now = _state(op, variable.name, variable.initial)
    return variable.before


def _state(op: Writer, name: str, initial: npt.NDArray[Any]) -> Tensor:
    return op.translator.input(name, ir.DataType.from_numpy(initial.dtype), list(initial.shape))


@rule("ASSIGN_VARIABLE")
def assign_variable(op: Writer, variable: Variable, value: Tensor) -> list[Any]:
    if not op.operation.graph.resources.filling:
        if op.graph is not op.model.graph:
            raise UnsupportedError(f"the variable {variable.name!r} is changed inside a branch or a loop")
        variable.now = value
        return []
    variable.initial = op.fixed(value, f"what the variable {variable.name!r} begins with")
    return []


def kept(op: Writer, index: int, sizes: list[int]) -> Variable:
    """An input of the op being written that keeps what is put there: zeros before the first call."""
    walk = op.operation.graph
    name = op.operation.inputs[index].name.decode()
    variable: Variable = walk.resources.variable(name)
    if variable.now is None:
        check_room(f"what {name!r} begins with", sizes, 4)
        variable.changes, variable.initial = True, np.zeros(sizes, np.float32)
        variable.before = variable.now = _state(op, name, variable.initial)
    return variable


@rule("HASHTABLE")
def hashtable(op: Writer) -> Table:
    return op.operation.graph.resources.tables.setdefault(op.operation.options.tableId, Table())  # type: ignore[no-any-return]


@rule("HASHTABLE_IMPORT")
def hashtable_import(op: Writer, table: Table, keys: Tensor, values: Tensor) -> list[Any]:
    table.keys, table.values = (op.fixed(part, "what a table is filled with") for part in (keys, values))
    return []


@rule("HASHTABLE_FIND")
def hashtable_find(op: Writer, table: Table, keys: Tensor, default: Tensor) -> Tensor:
    known, values = _filled(table)
    return looked_up(op, known, values, keys, default)


@rule("HASHTABLE_SIZE")
def hashtable_size(op: Writer, table: Table) -> Tensor:
    return op.ints([_filled(table)[0].size])


def _filled(table: Table) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    if table.keys is None or table.values is None:
        raise UnsupportedError("nothing fills the table")
    return table.keys, table.values
