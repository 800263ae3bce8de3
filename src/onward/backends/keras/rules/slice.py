"""Images with a border of zeros."""

from __future__ import annotations

from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Expr
from onward.backends.keras.target import rule
from onward.backends.keras.window import zero_padded
from onward.backends.shared.elementwise import literal
from onward.spec.slice import Pad


@rule("Pad")
def pad(e: Emitter, x: Expr, pads: Expr, value: Expr | None = None, axes: Expr | None = None, *, p: Pad) -> Expr | None:
    """Zeros around the axes of an image that is channels last."""
    rank, widths = e.rank(x) or 0, e.static_ints(pads)
    chosen = list(range(rank)) if axes is None else e.static_ints(axes)
    if p.mode != "constant" or widths is None or chosen is None or not 3 <= rank <= 5 or min(widths) < 0:
        return None
    if value is not None and literal(e, value, x) != 0:
        return None
    begin, end = [0] * rank, [0] * rank
    for place, axis in enumerate(chosen):
        begin[axis % rank], end[axis % rank] = widths[place], widths[place + len(chosen)]
    outer = (begin[0], begin[-1], end[0], end[-1])
    return zero_padded(e, x, x, begin[1:-1], end[1:-1]) if not any(outer) and any(widths) else None
