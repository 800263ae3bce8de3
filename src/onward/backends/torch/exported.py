"""A generated module through `torch.export`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir


class Exported:
    """Exports a module at its first call; once more when the program turns out not to take other sizes."""

    def __init__(self, net: Any, graph: ir.Graph) -> None:
        self._net = net
        self._inputs = [value for value in graph.inputs if not value.is_initializer()]
        self._program: Callable[..., Any] | None = None
        self._shapes: Any = None

    def __call__(self, *args: Any) -> Any:
        import torch

        shapes = torch.utils._pytree.tree_map_only(torch.Tensor, lambda tensor: tuple(tensor.shape), args)
        if self._program is not None:
            try:
                return self._program(*args)
            except Exception:
                if shapes == self._shapes:
                    raise
        dynamic = tuple(self._dynamic(value, arg) for value, arg in zip(self._inputs, args, strict=True))
        self._program = torch.export.export(self._net, args, dynamic_shapes=dynamic).module()
        self._shapes = shapes
        return self._program(*args)

    def _dynamic(self, value: ir.Value, arg: Any) -> Any:
        """Which axes of an argument may have other sizes in another call: those that the model does not fix."""
        from torch.export import Dim

        if isinstance(arg, list):
            return [self._dynamic(value, item) for item in arg]
        if not hasattr(arg, "shape"):
            return None
        dims = list(value.shape) if value.shape is not None else [None] * arg.ndim
        return {axis: Dim.AUTO for axis, dim in enumerate(dims) if not isinstance(dim, int)}
