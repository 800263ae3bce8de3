"""The order of results where a module of PyTorch leaves it open, as `runners.settled` has it for ONNX models."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def settled() -> AbstractContextManager[Any]:
    """Inside, `topk` sorts, and of equal numbers the first comes first: it is one of the orders that PyTorch allows."""
    import torch
    from torch.overrides import TorchFunctionMode

    ways = {torch.topk, torch.Tensor.topk, torch.ops.aten.topk.default, torch.ops.aten.topk}

    class Settled(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            named = dict(kwargs or {})
            if func in ways and "out" not in named:
                return _best(*args, **named)
            return func(*args, **named)

    return Settled()


def _best(
    input: torch.Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[torch.Tensor, torch.Tensor]:
    """What `topk` with these arguments gives, sorted whether it has to be or not."""
    import torch

    if not input.ndim:
        return torch.topk(input, k, dim, largest, sorted)
    values, places = torch.sort(input, dim=dim, descending=largest, stable=True)
    return torch.return_types.topk((values.narrow(dim, 0, k), places.narrow(dim, 0, k)))
