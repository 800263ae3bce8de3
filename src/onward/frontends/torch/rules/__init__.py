"""Ops that PyTorch's exporter lacks or gets wrong, written by us.

The exporter writes a call of such an op as one node that keeps the arguments; when it is done, `expand` puts the
nodes of the rule in its place. A rule is called as the op is in PyTorch, with tensors of a graph under construction.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

import onnx
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.graph.build import Builder, Tensor
from onward.graph.replace import take_over
from onward.graph.walk import all_nodes
from onward.plugins.find import load_installed
from onward.plugins.table import ops
from onward.registry import Registry, import_files

if TYPE_CHECKING:
    Function = Callable[..., Tensor | Sequence[Tensor | None]]
    """Gives None for an output that it has no translation of."""

F = TypeVar("F", bound=Callable[..., Any])
DOMAIN = "onward.torch"
PLACE = "\0"
"""What stands for a tensor among the arguments that a node keeps."""
RULES: Registry[Function] = Registry("PyTorch op", lambda name: _plugged().get(name))


def rule(*names: str) -> Callable[[F], F]:
    """File a function as the rule for ops of PyTorch: `lgamma`, or `median.dim` for another overload than the first.

    An op of another library is called by both names: `library::op`.
    """

    def file(function: F) -> F:
        RULES.register(*names)(function)
        return function

    return file


def _plugged() -> dict[str, Function]:
    """By the names of ops of PyTorch, what plugins write for them."""
    return {name: function for op in ops() for name, function in op.torch_names.items()}


def own_translations() -> dict[Any, Callable[..., Any]]:
    """By overload, what writes the node that `expand` looks for; of other libraries, those that are loaded."""
    import torch

    import_files(__name__)
    load_installed()
    found: dict[Any, Callable[..., Any]] = {}
    for name in [*RULES, *_plugged()]:
        *library, called = name.split("::")
        packet, _, overload = called.partition(".")
        known = getattr(getattr(torch.ops, library[0] if library else "aten"), packet, None)
        if known is not None:
            op = getattr(known, overload or "default")
            found[op] = _recorder(name, len(op._schema.returns))
    return found


def _recorder(name: str, outputs: int) -> Callable[..., Any]:
    def record(*args: Any, **kwargs: Any) -> Any:
        from onnxscript import evaluator

        tensors: list[Any] = []
        kept = json.dumps(_without_tensors([list(args), kwargs], tensors))
        return evaluator.default().eval(_schema(name, outputs), tensors, {"arguments": kept})

    return record


def _without_tensors(value: Any, tensors: list[Any]) -> Any:
    if isinstance(value, ir.Value):
        tensors.append(value)
        return PLACE
    if isinstance(value, list | tuple):
        return [_without_tensors(part, tensors) for part in value]
    if isinstance(value, dict):
        return {key: _without_tensors(part, tensors) for key, part in value.items()}
    return int(value) if isinstance(value, ir.DataType) else value


def _with_tensors(value: Any, tensors: list[Tensor]) -> Any:
    if value == PLACE:
        return tensors.pop(0)
    if isinstance(value, list):
        return [_with_tensors(part, tensors) for part in value]
    if isinstance(value, dict):
        return {key: _with_tensors(part, tensors) for key, part in value.items()}
    return value


@cache
def _schema(name: str, outputs: int) -> onnx.defs.OpSchema:
    schema = onnx.defs.OpSchema
    kinds = onnx.defs.get_schema("Identity").type_constraints[0].allowed_type_strs
    variadic = schema.FormalParameter(
        "tensors", "T", param_option=schema.FormalParameterOption.Variadic, is_homogeneous=False
    )
    return schema(
        name,
        DOMAIN,
        1,
        inputs=[variadic],
        outputs=[schema.FormalParameter(f"output{i}", "T") for i in range(outputs)],
        type_constraints=[("T", kinds, "")],
        attributes=[schema.Attribute("arguments", schema.AttrType.STRING, "", required=True)],
    )


def expand(model: ir.Model) -> None:
    """Put the nodes of our rules in place of calls of ops, in the whole model."""
    calls = [node for node in all_nodes(model.graph) if node.domain == DOMAIN]
    calls += [n for function in model.functions.values() for n in function.all_nodes() if n.domain == DOMAIN]
    if calls:
        op = Builder(model)
        for node in calls:
            _expand(op, node)
    model.opset_imports.pop(DOMAIN, None)


def _shown(node: ir.Node) -> str:
    name = node.op_type.replace("::", ".")
    return name if "::" in node.op_type else f"aten.{name}"


def _expand(op: Builder, node: ir.Node) -> None:
    graph = node.graph
    if not isinstance(graph, ir.Graph):
        raise UnsupportedError(f"{_shown(node)} inside a function is not supported")
    args, kwargs = json.loads(node.attributes["arguments"].as_string())
    tensors = [op.tensor(value) for value in node.inputs if value is not None]
    function = RULES.get(node.op_type)
    assert function is not None
    last = graph[-1]
    op.scope = f"{node.name}/"
    try:
        with op.inside(graph):
            found = function(op, *_with_tensors(args, tensors), **_with_tensors(kwargs, tensors))
    except UnsupportedError as error:
        raise UnsupportedError(f"{_shown(node)}: {error}") from error
    results = [found] if isinstance(found, Tensor) else list(found)
    created = list(takewhile(lambda new: new is not last, reversed(graph)))
    graph.remove(created)
    graph.insert_before(node, created[::-1])
    for place, (old, new) in enumerate(zip(node.outputs, results, strict=True)):
        if new is not None:
            take_over(old, new.value)
        elif old.uses() or old.is_graph_output():
            raise UnsupportedError(f"{_shown(node)}: its output {place} has no translation")
    graph.remove(node, safe=True)
