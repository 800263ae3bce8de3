"""A generated model as a module of StableHLO."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import jax.export

from onward.backends.jax.values import in_64_bits

if TYPE_CHECKING:
    from onward.backends.jax.load import Net


@dataclass(frozen=True)
class Module:
    """The text of a module whose one public function takes weights and inputs."""

    text: str
    _weights: tuple[Any, Any]
    _kept: Sequence[int]

    def arguments(self, inputs: Sequence[Any]) -> list[Any]:
        """What the function takes: the weights and inputs that matter, in its order."""
        params, constants = self._weights
        leaves = jax.tree.leaves((params, *inputs, constants))
        return [leaves[i] for i in self._kept]


def at_sizes(net: Net, inputs: Sequence[Any]) -> Module:
    """A module for inputs of these sizes."""

    def function(params: Any, *arguments: Any) -> Any:
        *given, constants = arguments
        return replace(net, params=params, constants=constants)(*given)

    with in_64_bits():
        exported = jax.export.export(jax.jit(function))(net.params, *inputs, net.constants)
    return Module(exported.mlir_module(), (net.params, net.constants), exported.module_kept_var_idx)
