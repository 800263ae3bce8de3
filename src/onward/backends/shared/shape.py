"""What backends ask alike when they rearrange elements."""

from __future__ import annotations

from typing import Any

from onward.backends.emit.emitter import Arg, Emitter
from onward.backends.emit.expr import Expr, Ref
from onward.backends.emit.facts import is_dim
from onward.graph.facts import Facts, vanishes_with
from onward.graph.replace import is_op


def identity(e: Emitter, x: Expr) -> Expr:
    return x


def axis_of(e: Emitter, x: Expr, axis: int) -> int:
    """The axis counted from the front where the rank is known."""
    rank = e.rank(x)
    return axis + rank if axis < 0 and rank is not None else axis


def is_number(item: Any, number: int) -> bool:
    return not isinstance(item, Expr) and item == number


def is_same(a: Any, b: Any) -> bool:
    """Whether two host numbers are the same variable."""
    return isinstance(a, Ref) and isinstance(b, Ref) and a._var is b._var


def note_shape(e: Emitter, x: Expr, dims: list[Any]) -> None:
    """Remember the sizes that a Reshape of `x` gives its result."""
    for axis, n in enumerate(dims):
        others = [other for i, other in enumerate(dims) if i != axis]
        if is_number(n, -1) and e.rank(x) == 1 and all(is_number(other, 1) for other in others):
            e.note_dim(axis, e.dim(x, 0))
        elif isinstance(n, Expr):
            e.note_dim(axis, n)


def is_broadcast_anyway(e: Emitter, dims: list[Any]) -> bool:
    """Whether all that reads the current node's result combines it with something of that very shape."""
    output = e.node.outputs[0]
    return not output.is_graph_output() and all(
        len(reader.inputs) == 2
        and is_op(reader, *_COMBINING)
        and reader.graph is e.node.graph
        and (other := reader.inputs[1 - place]) is not None
        and other is not output
        and e.is_ready(other)
        and len(dims) == e.rank(other)
        and all(is_dim(e, Arg(e, other), axis, n) for axis, n in enumerate(dims))
        for reader, place in output.uses()
    )


_COMBINING = ("Add", "Sub", "Mul", "Div")


def subscript(x: Expr, items: dict[int, Any], rank: int | None) -> Expr | None:
    """`x[:, items[1]]`; None where axes are counted from both ends and the rank is unknown."""
    if rank is not None:
        items = {a + rank if a < 0 else a: item for a, item in items.items()}
    if all(a >= 0 for a in items):
        return x[tuple(items.get(a, slice(None)) for a in range(max(items, default=-1) + 1))]
    if all(a < 0 for a in items):
        return x[(..., *(items.get(a, slice(None)) for a in range(min(items), 0)))]
    return None


def may_copy(e: Emitter, x: Expr, shape: Expr, wanted: list[Any]) -> bool:
    """Whether a number known only at run time may turn out as 0 and stand for a dimension of `x` that is not 0.

    To PyTorch, which may have exported the file, a 0 is just that; and no framework infers a -1 if `x` is empty.
    """
    assert isinstance(x, Arg) and isinstance(shape, Arg)
    if e.producer == "pytorch":
        return False
    rank, facts = e.rank(x), Facts()
    elements = facts.elements(shape._value, len(wanted))
    for i, n in enumerate(wanted if rank is None else wanted[:rank]):
        if isinstance(n, Expr) and not is_same(n, e.dim(x, i)):
            if rank is None:
                return True
            inferring = any(is_number(other, -1) for other in wanted)
            if not vanishes_with(elements[i], facts.size(x._value) if inferring else facts.dim(x._value, i)):
                return True
    return False


def unsqueezed(e: Emitter, part: Expr, axis: int) -> Expr | None:
    """What an input was before a dimension was inserted at `axis`, or None: joining such inputs is stacking."""
    node = part._value.producer() if isinstance(part, Arg) else None
    if node is None or node.op_type != "Unsqueeze" or node.domain or e.host(part) is not None:
        return None
    axes = e.static_ints(e.arg(node.inputs[1]))
    return e.arg(node.inputs[0]) if axes is not None and [axis_of(e, part, a) for a in axes] == [axis] else None


def expanded(e: Emitter, x: Expr, wanted: list[Any]) -> list[Any] | None:
    """The shape that Expand gives its result; None where that depends on run-time numbers.

    ONNX broadcasts both ways: a 1 in the wanted shape leaves the dimension of `x` as it is.
    """
    known = e.shape(x)
    if known is None:
        return None
    missing = len(known) - len(wanted)
    target: list[Any] = [e.dim(x, i) for i in range(missing)] + wanted
    for i, size in enumerate(known):
        place = i - min(missing, 0)
        if is_number(target[place], 1):
            target[place] = e.dim(x, i)
        elif size != 1 and isinstance(target[place], Expr) and not is_same(target[place], e.dim(x, i)):
            return None
    return target
