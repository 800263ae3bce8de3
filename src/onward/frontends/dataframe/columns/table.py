"""The graph of a function on a table: its inputs are made when a column is first read, its outputs at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir
import onnx_ir.passes.common as passes

from onward.errors import UnsupportedError
from onward.formats.dataframe.schema import PREFIX, ColumnSchema, TableSchema, write_schema
from onward.formats.dataframe.types import NAT, ColumnType
from onward.frontends.dataframe.columns.column import Column, Rows
from onward.frontends.dataframe.columns.peephole import in_one_order, peephole
from onward.frontends.dataframe.tensors.builder import ColumnBuilder
from onward.frontends.runtime_kernels import make_runnable
from onward.graph.build import Tensor
from onward.graph.unused import remove_unused
from onward.hub.wording import quote
from onward.model import Model

ML = "ai.onnx.ml"
ML_OPSET = 5


@dataclass(frozen=True)
class Field:
    """A column that the function may read: its name, its type, and whether it may be null."""

    name: str
    type: ColumnType
    may_be_null: bool = True
    own: str = ""


class Table:
    """What a function is given: fields, of which those that it reads become inputs of the graph."""

    def __init__(self, fields: Sequence[Field], library: str, opset: int, name: str = "features") -> None:
        graph = ir.Graph([], [], nodes=[], opset_imports={"": opset, ML: ML_OPSET, "com.microsoft": 1}, name=name)
        self.op = ColumnBuilder(ir.Model(graph, ir_version=10, producer_name="onward"))
        self.op.scope = PREFIX
        self.library = library
        self.fields = {field.name: field for field in fields}
        self.rows = Rows(self.op.names.value("rows"), self._count)
        self._columns: dict[str, Column] = {}
        self._inputs: dict[str, ColumnSchema] = {}
        self._outputs: list[ColumnSchema] = []
        self._is_series = False

    def column(self, name: str) -> Column:
        """A column of the table, which is an input from now on."""
        if name not in self._columns:
            self._columns[name] = self._read(self.fields[name])
        return self._columns[name]

    def _read(self, field: Field) -> Column:
        type = field.type
        value = self._input(field.name, type.dtype, "rows")
        null = None
        if field.may_be_null and type.null_is_mask:
            null = self._input(f"{field.name}.null", ir.DataType.BOOL, None)
        tensors = value.value.name or "", "" if null is None else null.value.name or ""
        self._inputs[field.name] = ColumnSchema(field.name, type, *tensors, field.own)
        return Column(value, type, self.rows, null)

    def _input(self, name: str, dtype: ir.DataType, rows: str | None) -> Tensor:
        value = ir.Value(name=self.op.names.value(name), type=ir.TensorType(dtype), shape=ir.Shape([rows, 1]))
        self.op.graph.inputs.append(value)
        return self.op.tensor(value)

    def _count(self) -> Tensor:
        name = next(iter(self._columns), None) or next(iter(self.fields), None)
        if name is None:
            raise UnsupportedError("a table without columns has no rows to count")
        return self.op.Shape(self.column(name).value, start=0, end=1)

    def finish(self, outputs: Sequence[tuple[str, Column, str]], *, is_series: bool = False) -> Model:
        """The model that gives columns by name, each with what the library calls its type."""
        self.give(outputs, is_series=is_series)
        return self.simplified()

    def give(self, outputs: Sequence[tuple[str, Column, str]], *, is_series: bool = False) -> None:
        """Let columns be the outputs, by name, each with what the library calls its type."""
        names = [name for name, _, _ in outputs]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UnsupportedError(f"two columns of the result are called {quote(twice)}: rename one")
        if not outputs:
            raise UnsupportedError("the result has no columns")
        self._outputs = [self._output(name, column, own) for name, column, own in outputs]
        self._is_series = is_series

    def written(self) -> tuple[bytes, object]:
        """All that was asked for, as it stands: what is equal here is the same model."""
        text = Model(self.op.model).to_proto().SerializeToString(deterministic=True)
        return text, (self._inputs, self._outputs, self._is_series)

    def simplified(self) -> Model:
        """The model that gives the outputs, in as few nodes as are needed."""
        graph = self.op.graph
        in_one_order(graph)
        passes.CommonSubexpressionEliminationPass()(self.op.model)
        peephole(self.op)
        passes.CommonSubexpressionEliminationPass()(self.op.model)
        _name_results(graph)
        remove_unused(self.op.model)
        make_runnable(self.op.model)
        for node in graph:
            if not (node.name or "").startswith(PREFIX):
                node.name = f"{PREFIX}{node.name}"
        self._keep_used(graph)
        passes.RemoveUnusedOpsetsPass()(self.op.model)
        kept = {value.name for value in graph.inputs}
        inputs = [column for column in self._inputs.values() if column.tensor in kept or column.null in kept]
        write_schema(self.op.model, TableSchema(self.library, inputs, self._outputs, is_series=self._is_series))
        return Model(self.op.model)

    def _keep_used(self, graph: ir.Graph) -> None:
        """Leave out inputs that nothing reads; masks of nulls that are read get their default."""
        outputs = set(graph.outputs)
        used = {value for value in graph.inputs if value.uses() or value in outputs}
        tensors = {column.tensor: column for column in self._inputs.values()}
        nulls = {column.null for column in self._inputs.values() if column.null}
        for value in list(graph.inputs):
            column = tensors.get(value.name or "")
            null = next((other for other in used if column and other.name == column.null), None)
            if value not in used and null is None:
                graph.inputs.remove(value)
            elif value.name in nulls:
                value.const_value = ir.Tensor(np.asarray([[False]]), name=value.name)
                graph.register_initializer(value)

    def _output(self, name: str, column: Column, own: str) -> ColumnSchema:
        column = column.expanded()
        type, null = column.type, column.null
        # What a mask calls null may hold anything; text is emptied all the same, as it may be what was to be hidden.
        is_open = null is None or column.is_blank or (type.null_is_mask and not type.is_text)
        value = column.value if is_open else self._emptied(column)
        wish = f"{name}.out" if name in self._inputs else name
        result = self._result(value, wish)
        mask = ""
        if null is not None and type.null_is_mask:
            mask = self._result(null, f"{wish}.null")
        return ColumnSchema(name, type, result, mask, own)

    def _emptied(self, column: Column) -> Tensor:
        """What stands where it is null: NaT, 0, or the empty text."""
        op, null = self.op, column.null
        assert null is not None
        if column.type.is_text:
            empty = op.strings(np.asarray([[""]], object))
        else:
            number = NAT if column.type.is_time else float("nan") if column.type.nan_is_null else 0
            empty = op.like(number, column.value)
        return op.Where(null, empty, column.value)

    def _result(self, value: Tensor, name: str) -> str:
        output = self.op.Identity(value).value
        output.name = self.op.names.value(name)
        output.shape = output.shape if output.shape is not None else ir.Shape([None, 1])
        self.op.graph.outputs.append(output)
        return output.name


def _name_results(graph: ir.Graph) -> None:
    """Give the name of an output to the value itself where it can have it, instead of to a copy."""
    for place, output in enumerate(graph.outputs):
        copy = output.producer()
        if copy is None or copy.op_type != "Identity" or copy.inputs[0] is None:
            continue
        value = copy.inputs[0]
        if value.producer() is None or value.is_graph_output():
            continue
        name = output.name
        graph.outputs[place] = value
        output.replace_all_uses_with(value)
        graph.remove(copy, safe=True)
        value.name = name
