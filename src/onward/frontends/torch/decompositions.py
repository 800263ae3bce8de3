"""How PyTorch's exporter writes the ops of a program in terms of simpler ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from onward.errors import UnsupportedError

if TYPE_CHECKING:
    import torch

BUILTIN = {"aten", "prim", "prims", "inductor", "higher_order", "quantized", "quantized_decomposed"}
"""Libraries of PyTorch itself, whose ops the exporter knows."""
KEYS = ("CompositeExplicitAutograd", "CPU")
"""Under which an op's function in Python is filed, for any device or for processors."""


@contextmanager
def prepared(translated: Collection[Any]) -> Iterator[None]:
    """Within it, programs are decomposed so that ops of other libraries go through their own functions.

    PyTorch's exporter decomposes a program by `run_decompositions`, be it given or traced from a module. `translated`
    are the ops that have a translation, which stay as they are.
    """
    import torch

    plain = torch.export.ExportedProgram.run_decompositions

    def run(program: torch.export.ExportedProgram, table: Mapping[Any, Any] | None = None, **options: Any) -> Any:
        own = {op: function for op, function in functions(program).items() if op not in translated}
        decomposed = plain(program, {**table, **own} if table is not None else None, **options)
        let_views_copy(decomposed)
        return decomposed

    with patch.object(torch.export.ExportedProgram, "run_decompositions", run):
        yield


def _calls(program: torch.export.ExportedProgram) -> Iterator[Any]:
    import torch

    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from (node for node in module.graph.nodes if node.op == "call_function")


def let_views_copy(program: torch.export.ExportedProgram) -> None:
    """Write every view as a reshape, which is the same wherever a view is possible.

    A reshape is traced as a view where its input lies in memory as that wants it. The exporter runs the program once
    more, without gradients; then attention lays out its result otherwise, and only a copy has the shape.
    """
    import torch

    for node in _calls(program):
        if node.target is torch.ops.aten.view.default:
            node.target = torch.ops.aten.reshape.default


def functions(program: torch.export.ExportedProgram) -> dict[Any, Callable[..., Any]]:
    """The function that an op of another library is, where it is one in Python: it is traced in the op's place."""
    import torch

    ops = {node.target for node in _calls(program) if isinstance(node.target, torch._ops.OpOverload)}
    return {op: found for op in ops if op.namespace not in BUILTIN and (found := _function(op)) is not None}


def _function(op: Any) -> Callable[..., Any] | None:
    import torch

    name = op._schema.name.partition("::")[2] + ("" if op._overloadname == "default" else f".{op._overloadname}")
    for key in KEYS:
        if f"{op.namespace}/{name}/{key}" in torch.library._impls:
            return _traced(op, torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, key)))
    return None


def _traced(op: Any, keys: torch._C.DispatchKeySet) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return op.redispatch(keys, *args, **kwargs)
        except Exception as error:
            name, reason = str(op).removesuffix(".default"), f"{error}".strip().partition("\n")[0]
            raise UnsupportedError(
                f"there is no translation of {name} to ONNX, and its own function cannot be traced ({reason}); "
                "a plugin or `translations` takes one of your own"
            ) from error

    return run
