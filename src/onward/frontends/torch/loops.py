"""Loops of others over an open length, which tracing would unroll for the length of the example."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

LIBRARY = "transformers"


def mamba_selective_scan(
    hidden_states: torch.Tensor,
    dt: torch.Tensor,
    A: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    D: torch.Tensor | None = None,
    z: torch.Tensor | None = None,
    delta_bias: torch.Tensor | None = None,
    delta_softplus: bool = False,
    return_last_state: bool = False,
    **others: Any,
) -> Any:
    """The state space of Mamba over a text: h[t] = exp(A dt[t]) h[t-1] + dt[t] B[t] x[t], y[t] = C[t] h[t] + D x[t].

    With x and dt of (batch, channels, length), A of (channels, states), B and C of (batch, states, length). What says
    by which kernel it is computed (`others`) changes nothing.
    """
    import torch
    from torch._higher_order_ops.scan import scan
    from torch.nn import functional as F

    if delta_bias is not None:
        dt = dt + delta_bias.to(dt.dtype)[..., None]
    if delta_softplus:
        dt = F.softplus(dt)
    dtype = hidden_states.dtype
    steps = dt.permute(2, 0, 1)[..., None]
    kept = torch.exp(A * steps)
    added = steps * B.permute(2, 0, 1)[:, :, None].float() * hidden_states.permute(2, 0, 1)[..., None].float()
    wide = torch.promote_types(kept.dtype, added.dtype)

    def step(state: torch.Tensor, now: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, torch.Tensor]:
        state = now[0] * state + now[1]
        return state, state.clone()

    start = torch.zeros(*hidden_states.shape[:2], A.shape[-1], dtype=wide, device=dt.device)
    last, states = scan(step, start, (kept.to(wide), added.to(wide)), dim=0)
    made = torch.matmul(states.to(dtype), C.permute(2, 0, 1)[..., None])[..., 0].permute(1, 2, 0)
    if D is not None:
        made = made + hidden_states * D[None, :, None]
    if z is not None:
        made = made * F.silu(z)
    return (made, last) if return_last_state else made


SAME = (mamba_selective_scan,)
"""Functions that compute what those of the same name and with the same parameters in the library do."""


@contextmanager
def as_scans(module: Any) -> Iterator[None]:
    """Inside, the parts of a module that come from the library call these."""
    import torch

    parts = module.modules() if isinstance(module, torch.nn.Module) else ()
    places = {kind.__module__ for part in parts for kind in type(part).__mro__}
    changed = []
    for place in sorted(name for name in places if name.partition(".")[0] == LIBRARY):
        for ours in SAME:
            theirs = getattr(sys.modules[place], ours.__name__, None)
            if theirs is not None and _parameters(ours) <= _parameters(theirs):
                changed.append((sys.modules[place], ours.__name__, theirs))
                setattr(sys.modules[place], ours.__name__, ours)
    try:
        yield
    finally:
        for home, name, theirs in changed:
            setattr(home, name, theirs)


def _parameters(function: Any) -> set[str]:
    return {name for name, each in inspect.signature(function).parameters.items() if each.kind is not each.VAR_KEYWORD}
