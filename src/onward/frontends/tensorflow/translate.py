"""Walks a TensorFlow graph, and the functions it calls, and lets rules write each node as ONNX."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.frontends.tensorflow.attributes import attributes
from onward.frontends.tensorflow.composite import COMPOSITES
from onward.frontends.tensorflow.dtypes import onnx_dtype
from onward.frontends.tensorflow.fold import LIMIT, Folder
from onward.frontends.tensorflow.registry import RULES, Rule
from onward.frontends.tensorflow.rules.old_control_flow import Flow, Part
from onward.frontends.tensorflow.values import Complex, Value, Variable
from onward.frontends.tensorflow.writer import Writer
from onward.gate.bounds import NODES
from onward.graph.build import Tensor
from onward.hub.functions import GROWTH
from onward.plugins.find import load_for, load_installed

if TYPE_CHECKING:
    import tensorflow as tf

CUSTOM = "org.tensorflow"
"""The domain of ops that go out as they are."""
IMPLEMENTS = "_implements"
"""The attribute of a function that names the op which it computes."""
ASSIGNMENTS = (
    "AssignVariableOp",
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "ResourceApply",
    "ResourceSparseApply",
    "ResourceScatter",
)
"""What the names of ops that change variables begin with."""

CALLS = {
    "PartitionedCall",
    "StatefulPartitionedCall",
    "If",
    "StatelessIf",
    "While",
    "StatelessWhile",
    "Case",
    "StatelessCase",
    "IdentityN",
    "Identity",
    "StopGradient",
    "Snapshot",
    "EnsureShape",
}
"""Ops that hand values on, of whatever kind."""


class Translator:
    """The ONNX graph of one TensorFlow function, under construction."""

    def __init__(self, opset: int, custom_ops: bool = False) -> None:
        load_installed()
        self.model = ir.Model(
            ir.Graph([], [], nodes=[], opset_imports={"": opset}, name="model"), ir_version=10, producer_name="onward"
        )
        self.op = Writer(self.model)
        self.op.translator = self
        self.custom_ops = custom_ops
        self.knows_variables = False
        """Whether what is no variable is surely a constant; a frozen graph has none, and weights all the same."""
        self.stateful = False
        """Whether what is assigned to variables is part of what the function does."""
        self.libraries: list[Any] = []
        """The graphs whose functions are called."""
        self._graphs: dict[str, tf.Graph] = {}
        self._bodies: dict[str, int] = {}
        """The operations that each function called so far has."""
        self._called = 0
        """The operations of all calls."""
        self._flows: dict[Any, Flow | None] = {}
        self._folder = Folder(self.op)

    def input(self, name: str, dtype: ir.DataType, shape: Sequence[int | str | None] | None) -> Tensor:
        value = ir.Value(
            name=self.op.names.value(name), type=ir.TensorType(dtype), shape=None if shape is None else ir.Shape(shape)
        )
        self.model.graph.inputs.append(value)
        return self.op.tensor(value)

    def run(self, graph: Any, arguments: Sequence[Value], outputs: Sequence[Any], inputs: Sequence[Any]) -> list[Value]:
        """The values of `outputs` of a TensorFlow graph whose `inputs` are `arguments`."""
        values: dict[str, Value] = {tensor.name: value for tensor, value in zip(inputs, arguments, strict=True)}
        for operation in self._needed(graph, outputs, values):
            results = self.operation(operation, [values[tensor.name] for tensor in operation.inputs])
            for tensor, result in zip(operation.outputs, results, strict=False):
                values[tensor.name] = self._shaped(result, tensor)
        return [values[tensor.name] for tensor in outputs]

    def call(self, name: str, graph: Any, arguments: Sequence[Value]) -> list[Value]:
        """What a function of the graph's library gives."""
        body = self.body(name, graph)
        self._count(name, len(body.get_operations()))
        return self.run(body, arguments, body.outputs, body.inputs)

    def _count(self, name: str, size: int) -> None:
        """Refuse functions that call one another so often that a small file becomes a graph of any size."""
        self._bodies.setdefault(name, size)
        self._called += size
        most = max(NODES.value, GROWTH * sum(self._bodies.values()))
        if self._called > most:
            raise InvalidModelError(
                f"its functions call one another so often, {name} among them, that it has more than {most:,}"
                f" operations; {NODES.hint}"
            )

    def body(self, name: str, graph: Any) -> Any:
        """The graph of a function."""
        if name not in self._graphs:
            from tensorflow.python.framework.function_def_to_graph import function_def_to_graph

            definition = self.definition(name, graph)
            try:
                self._graphs[name] = function_def_to_graph(definition)
            except (
                ValueError,
                LookupError,
                RuntimeError,
            ):  # it calls a function that the program does not know, but the graph
                with self._home(graph).as_default():
                    self._graphs[name] = function_def_to_graph(definition)
        return self._graphs[name]

    def _home(self, graph: Any) -> Any:
        """A graph that has all functions of a graph, and of those around it."""
        import tensorflow as tf

        home = tf.Graph()
        for library in (graph, *self.libraries):
            for function in library._functions.values():
                function.add_to_graph(home)
        return home

    def implements(self, name: str, graph: Any) -> Any | None:
        """The name and attributes of the op that a function says it is: `tf.function(experimental_implements=…)`."""
        from tensorflow.core.framework.attr_value_pb2 import NameAttrList

        definition = self._defined(name, graph)  # None for a branch of TensorFlow 1, which is a part of a graph
        said = None if definition is None else definition.attr.get(IMPLEMENTS)
        if said is None:
            return None
        found = said.func if said.HasField("func") else NameAttrList(name=said.s.decode())
        load_for([found.name.rpartition("::")[0]])
        return found

    def _function(self, name: str, graph: Any) -> Any | None:
        """A function of the graph, or of one around it."""
        return next((found for g in (graph, *self.libraries) if (found := g._get_function(name)) is not None), None)

    def _calls(self, operation: Any) -> list[str]:
        """The functions that an operation calls, by its type perhaps, but for those that are known as a whole."""
        functions = [attr.func for attr in operation.node_def.attr.values() if attr.HasField("func")]
        functions += [function for attr in operation.node_def.attr.values() for function in attr.list.func]
        names = [function.name for function in functions if function.name not in COMPOSITES]
        names = [name for name in names if not self._is_custom(name, operation.graph)]
        return [*names, operation.type] if self._is_call(operation) else names

    def _is_custom(self, name: str, graph: Any) -> bool:
        """Whether a function is an op that a plugin knows."""
        found = self.implements(name, graph)
        return found is not None and found.name in RULES

    def _is_call(self, operation: Any) -> bool:
        return operation.type not in RULES and self._function(operation.type, operation.graph) is not None

    def definition(self, name: str, graph: Any) -> Any:
        """A function of the graph, of one around it, or of the program."""
        if (found := self._defined(name, graph)) is None:
            raise UnsupportedError(f"the function {name} is not in the graph's library")
        return found

    def _defined(self, name: str, graph: Any) -> Any | None:
        from tensorflow.python.eager import context

        if (found := self._function(name, graph)) is not None:
            return found.cached_definition
        known = context.context()
        return known.get_function_def(name) if known.has_function(name) else None

    def _needed(self, graph: Any, outputs: Iterable[Any], given: Iterable[str]) -> list[Any]:
        """The operations that outputs depend on, in order; of TensorFlow 1, branches and loops as one each."""
        given = set(given)
        if (flow := self._flow(graph)) is not None:
            if not isinstance(graph, Part):
                flow.check(outputs)
            return flow.needed(outputs, given)
        waiting = [tensor.op for tensor in outputs if tensor.name not in given]
        if self.stateful:
            waiting += [operation for operation in graph.get_operations() if self._changes(operation)]
        found = set(waiting)
        while waiting:
            operation = waiting.pop()
            before = [tensor.op for tensor in operation.inputs if tensor.name not in given]
            for earlier in before:
                if earlier not in found:
                    found.add(earlier)
                    waiting.append(earlier)
        return _sorted([operation for operation in graph.get_operations() if operation in found], given)

    def _flow(self, graph: Any) -> Flow | None:
        if isinstance(graph, Part):
            return graph.flow
        if graph not in self._flows:
            self._flows[graph] = Flow(graph, self._graphs) if Flow.is_in(graph) else None
        return self._flows[graph]

    def _changes(self, operation: Any) -> bool:
        """Whether an operation changes variables, by itself or in a function that it calls."""
        if operation.type.startswith(ASSIGNMENTS):
            return True
        bodies = (self.body(name, operation.graph) for name in self._calls(operation))
        return any(self._changes(inner) for body in bodies for inner in body.get_operations())

    def assign(self, variable: Variable, tensor: Tensor) -> None:
        """Let a variable hold something else from here on."""
        if self.op.graph is not self.model.graph:
            raise UnsupportedError(f"the variable {variable.name!r} is changed inside a branch or a loop")
        self.weight(variable)
        variable.value, variable.assigned = tensor.cast(ir.DataType.from_numpy(variable.array.dtype)), True

    def missing(self, graph: Any, outputs: Iterable[Any]) -> list[tuple[str, list[str]]]:
        """Every op without a rule, in the graph or a function that it calls, and where it is."""
        found: dict[str, list[str]] = {}
        seen: set[str] = set()

        def look(graph: Any, outputs: Iterable[Any]) -> None:
            given = {tensor.name for tensor in getattr(graph, "inputs", ())}
            needed = self._needed(graph, outputs, given)
            read = {tensor.name for operation in needed for tensor in operation.inputs}
            for handle, operation in self._assignments(graph):
                if handle in read and not self.stateful:
                    found.setdefault(operation.type, []).append(operation.name)
            constant: set[Any] = set()
            for operation in needed:
                before = {tensor.op for tensor in operation.inputs}
                if operation.type == "Const" or (before and before <= constant and not operation.op_def.is_stateful):
                    constant.add(operation)
                elif operation.type not in RULES and operation.inputs and not self._is_call(operation):
                    found.setdefault(operation.type, []).append(operation.name)
                for name in self._calls(operation):
                    if name not in seen:
                        seen.add(name)
                        body = self.body(name, graph)
                        look(body, body.outputs)

        look(graph, outputs)
        return sorted((op, list(dict.fromkeys(where))) for op, where in found.items())

    def _assignments(self, graph: Any) -> Iterable[tuple[str, Any]]:
        """What changes variables, in a graph or in functions that it calls: each op, and the handle in the graph."""
        for operation in graph.get_operations():
            if operation.type.startswith(ASSIGNMENTS):
                yield operation.inputs[0].name, operation
            for name in self._calls(operation):
                body = self.body(name, graph)
                handles = [tensor.name for tensor in operation.inputs][len(operation.inputs) - len(body.inputs) :]
                passed = dict(zip((tensor.name for tensor in body.inputs), handles, strict=True))
                for handle, assignment in self._assignments(body):
                    if handle in passed:
                        yield passed[handle], assignment

    def operation(self, operation: Any, inputs: Sequence[Value]) -> Sequence[Value]:
        """What one operation gives."""
        rule = RULES.get(operation.type)
        folded = self._folder.folded(operation, inputs, None if rule is None else LIMIT)
        if folded is not None:
            return folded
        if rule is None and self._is_call(operation):
            return self.call(operation.type, operation.graph, inputs)
        if rule is None:
            return self._custom(operation, inputs)
        outer, self.op.scope = self.op.scope, f"{operation.name}/"
        self.op.operation = operation
        try:
            result = self._result(operation, rule, inputs)
        except OnwardError as error:
            if getattr(error, "located", False):
                raise
            located = type(error)(f"{operation.type} {operation.name!r}: {error}")
            located.located = True  # type: ignore[attr-defined]
            raise located from error
        finally:
            self.op.scope = outer
        return list(result) if isinstance(result, Sequence) else [result]

    def _result(self, operation: Any, rule: Rule, inputs: Sequence[Value]) -> Value | Sequence[Value]:
        options = attributes(operation.node_def, rule.attributes)
        if operation.type not in CALLS and any(isinstance(value, Complex) for value in inputs):
            from onward.frontends.tensorflow.rules.complex_numbers import applied

            return applied(self.op, operation.type, rule, inputs, options)  # type: ignore[no-any-return]
        return rule.function(self.op, *inputs, **options)

    def _custom(self, operation: Any, inputs: Sequence[Value]) -> Sequence[Value]:
        """A node of TensorFlow's own domain, for the user's runtime to know."""
        if not self.custom_ops:
            raise UnsupportedError(f"there is no rule for the op {operation.type} ({operation.name!r})")
        if not all(isinstance(value, Tensor) for value in inputs):
            raise UnsupportedError(f"{operation.type} {operation.name!r}: a custom op takes tensors only")
        plain = attributes(operation.node_def, operation.node_def.attr)
        kept = {key: int(v) if isinstance(v, ir.DataType | bool) else v for key, v in plain.items() if is_plain(v)}
        self.model.opset_imports[CUSTOM] = 1
        results = self.op.many(operation.type, len(operation.outputs), *inputs, domain=CUSTOM, **kept)
        for result, tensor in zip(results, operation.outputs, strict=True):
            result.value.type = ir.TensorType(dtype_of(tensor))
        return results

    def _shaped(self, value: Value, tensor: Any) -> Value:
        """A value with what TensorFlow knows of its shape where ONNX's inference knows less."""
        if not isinstance(value, Tensor) or tensor.shape.rank is None:
            return value
        known = tensor.shape.as_list()
        if value.dims is None:
            value.value.shape = ir.Shape(known)
        else:
            pairs = zip(value.dims, known, strict=False)
            if len(value.dims) == len(known) and any(not isinstance(a, int) and b is not None for a, b in pairs):
                value.value.shape = ir.Shape(
                    [b if b is not None else a for a, b in zip(value.dims, known, strict=True)]
                )
        return value

    def stopped(self, operation: Any, value: Value) -> Value:
        """A value that no gradient goes through, which makes no difference in use."""
        return value

    def weight(self, variable: Variable) -> Tensor:
        """What a variable holds, under its name."""
        if variable.value is None:
            name = self.op.names.value(variable.name)
            tensor = ir.Tensor(variable.array, name=name)
            value = ir.Value(
                name=name, const_value=tensor, type=ir.TensorType(tensor.dtype), shape=ir.Shape(variable.array.shape)
            )
            self.model.graph.register_initializer(value)
            self.op.weights[value] = variable.array
            self.op.variables[value] = variable.trainable
            variable.value = self.op.tensor(value)
        return variable.value


def _sorted(operations: list[Any], given: set[str]) -> list[Any]:
    """In an order in which they can run; the graph's own is one, but for loops that were given inputs afterwards."""
    before = {o: [t.op for t in o.inputs if t.name not in given] for o in operations}
    place = {operation: i for i, operation in enumerate(operations)}
    if all(place[earlier] < i for i, operation in enumerate(operations) for earlier in before[operation]):
        return operations
    return list(TopologicalSorter(before).static_order())


def dtype_of(tensor: Any) -> ir.DataType:
    return onnx_dtype(tensor.dtype.as_datatype_enum)


def is_plain(value: Any) -> bool:
    """Whether an attribute is one that ONNX can have too."""
    return isinstance(value, int | float | str | ir.DataType) or (
        isinstance(value, list)
        and bool(value)
        and len({type(v) for v in value}) == 1
        and isinstance(value[0], int | float | str)
    )
