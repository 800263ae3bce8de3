"""What inputs, outputs and open dimensions are called in the ONNX file."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onward.errors import OnwardError

if TYPE_CHECKING:
    import torch

Dynamic = Mapping[str, Mapping[int, str]]


@dataclass(frozen=True)
class Call:
    """What a module is called with: its parameters by name, and the tensors in them by the names of ONNX inputs."""

    arguments: dict[str, Any]
    kwargs: dict[str, Any]
    """In the order of the module's parameters."""
    tensors: dict[str, torch.Tensor]


def called(
    module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], given: Sequence[str] | None
) -> Call:
    """Tensors are called as PyTorch's exporter does, unless the user gives other names: `x`, `pair_0`, `state_h`."""
    try:
        bound = inspect.signature(module.forward).bind(*args, **kwargs)
    except TypeError as error:
        raise OnwardError(f"the module cannot be called with these inputs: {error}") from error
    import torch
    from torch.utils import _pytree as pytree

    ordered = {name: kwargs[name] for name in (*bound.arguments, *kwargs) if name in kwargs}
    leaves, _ = pytree.tree_flatten_with_path(dict(bound.arguments))
    spreads = {p.name for p in bound.signature.parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD}
    found = [(_joined(path, spreads), leaf) for path, leaf in leaves if isinstance(leaf, torch.Tensor)]
    names = [name for name, _ in found] if given is None else list(given)
    if len(names) != len(found):
        raise OnwardError(f"there are {len(found)} inputs, but {len(names)} names for them: give input_names")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise OnwardError(f"two inputs are called {twice!r}: give input_names")
    tensors = {name: leaf for name, (_, leaf) in zip(names, found, strict=True)}
    return Call(dict(bound.arguments), ordered, tensors)


def _joined(path: Sequence[Any], spreads: set[str]) -> str:
    """`pair_0` for the first of a pair; what `**kwargs` holds is called by its own name."""
    keys = [getattr(key, "key", getattr(key, "idx", getattr(key, "name", ""))) for key in path]
    if keys[0] in spreads:
        keys = keys[1:]
    return re.sub(r"\W", "_", "_".join(map(str, keys)))


def open_dims(call: Call, dynamic: Dynamic) -> dict[str, Any] | None:
    """Which dimensions are open, as `torch.export` takes it: in the structure of the arguments."""
    if not dynamic:
        return None
    for name, dims in dynamic.items():
        if name not in call.tensors:
            raise OnwardError(f"dynamic: there is no input {name!r}; there are {', '.join(call.tensors)}")
        rank = call.tensors[name].ndim
        if odd := [axis for axis in dims if not 0 <= axis < rank]:
            raise OnwardError(f"dynamic: {name!r} has {rank} axes, and no axis {odd[0]}")
    names = iter(call.tensors)
    return {name: _open_dims(value, names, dynamic) for name, value in call.arguments.items()}


def _open_dims(value: Any, names: Iterator[str], dynamic: Dynamic) -> Any:
    import torch
    from torch.utils import _pytree as pytree

    if isinstance(value, torch.Tensor):
        return dict.fromkeys(dynamic.get(next(names), {}), torch.export.Dim.DYNAMIC) or None
    parts = pytree.tree_leaves(value, is_leaf=lambda part: part is not value)
    if len(parts) == 1 and parts[0] is value:
        return None
    ways = [_open_dims(part, names, dynamic) for part in parts]
    if isinstance(value, Mapping):
        return dict(zip(value, ways, strict=True))
    return tuple(ways) if isinstance(value, tuple) else ways


def name_outputs(graph: ir.Graph, program: torch.export.ExportedProgram) -> None:
    """Call outputs as the module does, where it names them, as in a dict."""
    from torch.utils import _pytree as pytree

    spec, count = program.call_spec.out_spec, len(graph.outputs)
    if spec is None or spec.num_leaves != count:
        return
    paths, _ = pytree.tree_flatten_with_path(pytree.tree_unflatten(range(count), spec))
    if not any(hasattr(path[0], "key") or hasattr(path[0], "name") for path, _ in paths if path):
        return
    names = [_joined(path, set()) for path, _ in paths]
    taken = {value.name for value in (*graph.inputs, *graph.initializers.values())}
    if len(set(names)) == count == len(set(graph.outputs)) and not taken & {*names}:
        others = {out.name: out for node in graph for out in node.outputs}
        for value, name in zip(graph.outputs, names, strict=True):
            if (other := others.get(name)) is not None and other is not value:
                other.name = f"{name}_inner"
            value.name = name


def name_dims(model: ir.Model, wanted: Dynamic) -> None:
    """Give open dimensions the names wanted, wherever they occur; raises where one is not open.

    Those that PyTorch named, as in a program read from a file, are called by the first input and axis they are of.
    """
    symbols: dict[str, str] = {}
    inputs = {value.name: value for value in model.graph.inputs}
    for name, dims in wanted.items():
        if name not in inputs:
            raise OnwardError(f"dynamic: there is no input {name!r}; there are {', '.join(map(str, inputs))}")
        shape = inputs[name].shape
        assert shape is not None
        for axis, dim in dims.items():
            if isinstance(shape[axis], int):
                raise OnwardError(always(name, axis, shape[axis]))
            symbols.setdefault(str(shape[axis]), dim)
    for value in inputs.values():
        for axis, size in enumerate(value.shape or ()):
            if re.fullmatch(r"s\d+", str(size)):
                symbols.setdefault(str(size), f"{value.name}_{axis}")
    _rename(model, symbols)


def always(name: str, axis: int, size: object) -> str:
    """Why a dimension cannot be open, and what to do."""
    return (
        f"axis {axis} of {name!r} is always {size}, as in the example: the module allows no other size, or walks "
        "through it in a loop in Python; leave it out of `dynamic`, turn off dynamic_batch, or give its size in --input"
    )


def _rename(model: ir.Model, symbols: Mapping[str, str]) -> None:
    if not symbols:
        return
    pattern = re.compile("|".join(rf"\b{re.escape(symbol)}\b" for symbol in symbols))

    def renamed(size: int | ir.SymbolicDim) -> int | str | None:
        if isinstance(size, int) or size.value is None:
            return size if isinstance(size, int) else None
        return pattern.sub(lambda match: symbols[match[0]], size.value)

    for value in (*model.graph.inputs, *(out for node in model.graph.all_nodes() for out in node.outputs)):
        if value.shape is not None and not all(isinstance(size, int) for size in value.shape):
            value.shape = ir.Shape([renamed(size) for size in value.shape])
