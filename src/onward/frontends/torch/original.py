"""A module as PyTorch runs it, for the check of what it was converted to."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from onward.backends.torch.values import to_framework, to_numpy
from onward.formats import open_object
from onward.formats.pt2 import outputs_of
from onward.formats.torch_order import settled
from onward.frontends.torch.names import called
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.undisturbed import evaluated


@dataclass(frozen=True)
class Original:
    """A module with the arguments that it was exported with, or a program, which has its inputs already."""

    module: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    input_names: Sequence[str] | None

    def data(self, model: Model) -> Iterator[Any]:
        """What to compare on: the arguments; where there are none, or dimensions are open, what is made up as well."""
        inputs = model.ir.graph.inputs
        given = bool(self.args or self.kwargs)
        if given:
            tensors = called(self.module, self.args, self.kwargs, self.input_names).tensors
            yield {value.name: to_numpy(tensors[value.name]) for value in inputs if value.name is not None}
        if not given or any(not isinstance(size, int) for value in inputs for size in value.shape or ()):
            yield None

    def opened(self) -> Run:
        return self._run if self.args or self.kwargs else open_object(self.module).run

    def _run(self, inputs: Inputs) -> Outputs:
        import torch
        from torch.utils import _pytree as pytree

        bound = inspect.signature(self.module.forward).bind(*self.args, **self.kwargs)
        names = iter(called(self.module, self.args, self.kwargs, self.input_names).tensors)

        def fed(leaf: Any) -> Any:
            name = next(names)
            return to_framework(inputs[name]).to(leaf.device) if name in inputs else leaf

        filled = pytree.tree_map_only(torch.Tensor, fed, dict(bound.arguments))
        call = inspect.BoundArguments(bound.signature, filled)
        with evaluated(self.module), settled():
            return outputs_of(self.module(*call.args, **call.kwargs))
