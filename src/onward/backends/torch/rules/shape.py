"""Ops that rearrange elements: reshaping, transposing, broadcasting, joining; and tensors made of nothing but a shape.

String tensors are numpy arrays, which share most of the methods used here; where they do not, a rule asks `is_string`.
"""

from __future__ import annotations

import math as pymath
from typing import Any

import onnx_ir as ir

from onward.backends.emit.emitter import Arg, Emitter, Hosted, Unpack
from onward.backends.emit.expr import Expr, Name, Ref
from onward.backends.emit.host import is_nonnegative
from onward.backends.torch.dtypes import UNSIGNED, bits, from_bits
from onward.backends.torch.target import F, np_, ops, rule, torch
from onward.backends.torch.target import dtype as typename
from onward.graph.facts import Facts, vanishes_with
from onward.graph.values import array


def is_string(e: Emitter, x: Expr) -> bool:
    """Whether a value is a numpy array of strings (or a list of those)."""
    return e.dtype(x) == ir.DataType.STRING


def axis_of(e: Emitter, x: Expr, axis: int) -> int:
    """The axis counted from the front where the rank is known."""
    rank = e.rank(x)
    return axis + rank if axis < 0 and rank is not None else axis


def is_identity(perm: list[int]) -> bool:
    return perm == list(range(len(perm)))


def integers(e: Emitter, x: Expr, hint: str = "n") -> Any:
    """The numbers of a one-dimensional input: a list where their count is known, else an expression for a list."""
    numbers = e.numbers(x)
    shape = e.shape(x)
    if not isinstance(numbers, Expr) or shape is None or len(shape) > 1:
        return numbers
    count = pymath.prod(d for d in shape if d is not None) if None not in shape else None
    if count == 1:
        return [e.let_host(x.item(), hint)]
    return numbers if count is None or not 0 < count <= 8 else e.unpack(numbers, count, hint, "host")


def integer(e: Emitter, x: Expr, hint: str = "n") -> Any:
    """An input that holds one integer, as a number or as an expression for one."""
    found = e.scalar(x, 1)
    return e.let_host(x.item(), hint) if found is None else found


def subscript(x: Expr, items: dict[int, Any], rank: int | None) -> Expr | None:
    """`x[:, items[1]]`; None where axes are counted from both ends and the rank is unknown."""
    if rank is not None:
        items = {a + rank if a < 0 else a: item for a, item in items.items()}
    if all(a >= 0 for a in items):
        return x[tuple(items.get(a, slice(None)) for a in range(max(items, default=-1) + 1))]
    if all(a < 0 for a in items):
        return x[(..., *(items.get(a, slice(None)) for a in range(min(items), 0)))]
    return None


@rule("Identity")
def identity(e: Emitter, x: Expr) -> Expr:
    return x


@rule("Reshape")
def reshape(e: Emitter, x: Expr, shape: Expr, *, allowzero: int = 0) -> Expr:
    dims = e.numbers(shape)
    if isinstance(dims, Expr):
        return ops.reshape(x, dims, **({"allow_zero": True} if allowzero else {}))
    if not allowzero:
        if _may_copy(e, x, shape, dims):
            return ops.reshape(x, dims)
        dims = [e.dim(x, i) if not isinstance(n, Expr) and n == 0 else n for i, n in enumerate(dims)]
    if len(dims) == 2 and _is(dims[1], -1) and not is_string(e, x):
        rank, known = e.rank(x), e.shape(x)
        if rank is not None and rank >= 2 and (_same(dims[0], e.dim(x, 0)) or (known and known[0] == dims[0])):
            return x.flatten(1)
    return x.reshape(*dims) if dims else x.reshape(())


def _may_copy(e: Emitter, x: Expr, shape: Expr, dims: list[Any]) -> bool:
    """Whether a number known only at run time may turn out as 0 and stand for a dimension of `x` that is not 0.

    To PyTorch, which may have exported the file, a 0 is just that; and it refuses to infer a -1 if `x` is empty.
    """
    assert isinstance(x, Arg) and isinstance(shape, Arg)
    if e.producer == "pytorch":
        return False
    rank, facts = e.rank(x), Facts()
    wanted = facts.elements(shape._value, len(dims))
    for i, n in enumerate(dims if rank is None else dims[:rank]):
        if isinstance(n, Expr) and not _same(n, e.dim(x, i)):
            if rank is None:
                return True
            inferring = any(_is(other, -1) for other in dims)
            if not vanishes_with(wanted[i], facts.size(x._value) if inferring else facts.dim(x._value, i)):
                return True
    return False


def _is(item: Any, number: int) -> bool:
    return not isinstance(item, Expr) and item == number


def _same(a: Any, b: Any) -> bool:
    """Whether two host numbers are the same variable."""
    return isinstance(a, Ref) and isinstance(b, Ref) and a._var is b._var


@rule("Flatten")
def flatten(e: Emitter, x: Expr, *, axis: int = 1) -> Expr:
    rank, axis = e.rank(x), axis_of(e, x, axis)
    if axis == 0:
        return x.reshape(1, -1)
    if is_string(e, x) or rank is None or axis == rank:
        return ops.flatten_to_matrix(x, axis)
    rows = x if axis == 1 else x.flatten(0, axis - 1)
    return rows.flatten(1) if rank - axis > 1 else rows if axis > 1 else x


@rule("Squeeze")
def squeeze(e: Emitter, x: Expr, axes: Expr | None = None) -> Expr:
    if axes is None:
        return x.squeeze()
    dims = integers(e, axes)
    if isinstance(dims, Expr):
        return x.squeeze(Name("tuple")(dims))
    return x.squeeze(dims[0] if len(dims) == 1 else tuple(dims))


@rule("Unsqueeze")
def unsqueeze(e: Emitter, x: Expr, axes: Expr) -> Expr:
    dims, rank = e.static_ints(axes), e.rank(x)
    if dims is not None:
        if len(dims) == 1 and not is_string(e, x):
            return x.unsqueeze(dims[0])
        found = subscript(x, dict.fromkeys(dims), None if rank is None else rank + len(dims))
        if found is not None:
            return found
    return ops.unsqueeze(x, e.numbers(axes))


@rule("Transpose")
def transpose(e: Emitter, x: Expr, *, perm: list[int] | None = None) -> Expr:
    rank = e.rank(x)
    if perm is None and rank is not None:
        perm = list(range(rank))[::-1]
    if perm is None:
        return x.T if is_string(e, x) else x.permute(Name("tuple")(Name("reversed")(Name("range")(x.ndim))))
    if is_identity(list(perm)):
        return x
    if is_string(e, x):
        return x.transpose(*perm)
    moved = [i for i, p in enumerate(perm) if i != p]
    if len(moved) == 2:
        return x.mT if moved == [len(perm) - 2, len(perm) - 1] else x.transpose(*moved)
    return x.permute(*perm)


@rule("Expand")
def expand(e: Emitter, x: Expr, shape: Expr) -> Expr:
    dims = e.numbers(shape)
    if is_string(e, x):
        return np_.broadcast_to(
            x, np_.broadcast_shapes(x.shape, Name("tuple")(dims) if isinstance(dims, Expr) else tuple(dims))
        )
    target = None if isinstance(dims, Expr) else _expanded(e, x, list(dims))
    if target is None:
        return x.expand(torch.broadcast_shapes(x.shape, dims if isinstance(dims, Expr) else tuple(dims)))
    return x.expand(*target) if target else x


def _expanded(e: Emitter, x: Expr, dims: list[Any]) -> list[Any] | None:
    """What `x.expand` takes, -1 for a dimension that stays; None where that depends on run-time numbers.

    ONNX broadcasts both ways: a 1 in the wanted shape leaves the dimension of `x` as it is.
    """
    known = e.shape(x)
    if known is None:
        return None
    target: list[Any] = [-1] * max(len(known) - len(dims), 0) + dims
    for i, size in enumerate(known, len(target) - len(known)):
        if _is(target[i], 1) or _same(target[i], e.dim(x, i - len(target) + len(known))) or _is(target[i], -1):
            target[i] = -1
        elif size != 1 and isinstance(target[i], Expr):
            return None
    return target


@rule("Tile")
def tile(e: Emitter, x: Expr, repeats: Expr) -> Expr:
    counts = e.numbers(repeats)
    if is_string(e, x):
        return np_.tile(x, counts)
    return x.repeat(counts) if isinstance(counts, Expr) or not counts else x.repeat(*counts)


@rule("Concat")
def concat(e: Emitter, *parts: Expr, axis: int) -> Expr:
    if len(parts) == 1:
        return parts[0]
    axis = axis_of(e, parts[0], axis)
    if is_string(e, parts[0]):
        return np_.concatenate(tuple(parts), axis=axis)
    rows = [_unsqueezed(e, part, axis) for part in parts]
    if None not in rows:
        return torch.stack(tuple(rows), **({"dim": axis} if axis else {}))
    return torch.cat(tuple(parts), **({"dim": axis} if axis else {}))


def _unsqueezed(e: Emitter, part: Expr, axis: int) -> Expr | None:
    """What an input was before a dimension was inserted at `axis`, or None: joining such inputs is stacking."""
    node = part._value.producer() if isinstance(part, Arg) else None
    if node is None or node.op_type != "Unsqueeze" or node.domain or e.host(part) is not None:
        return None
    axes = e.static_ints(e.arg(node.inputs[1]))
    return e.arg(node.inputs[0]) if axes is not None and [axis_of(e, part, a) for a in axes] == [axis] else None


@rule("Split")
def split(e: Emitter, x: Expr, sizes: Expr | None = None, *, axis: int = 0, num_outputs: int | None = None) -> Any:
    count, axis = len(e.node.outputs), axis_of(e, x, axis)
    if count == 1:
        return x
    if is_string(e, x):
        return Unpack(ops.split_strings(x, count if sizes is None else e.numbers(sizes), axis))
    dim = {"dim": axis} if axis else {}
    lengths = None if sizes is None else e.numbers(sizes)
    if lengths is None or (not isinstance(lengths, Expr) and _equal_parts(e, x, axis, lengths)):
        return Unpack(x.chunk(count, **dim))
    return Unpack(x.split(lengths, **dim))


def _equal_parts(e: Emitter, x: Expr, axis: int, lengths: list[Any]) -> bool:
    shape = e.shape(x)
    size = shape[axis] if shape is not None else None
    return size is not None and size > 0 and all(_is(n, lengths[0]) and n * len(lengths) == size for n in lengths)


@rule("Shape")
def shape(e: Emitter, x: Expr, *, start: int = 0, end: int | None = None) -> Expr:
    whole = not start and end is None
    return torch.tensor(x.shape if whole else x.shape[start or None : end], dtype=torch.int64, device=e.device)


@rule("Size")
def size(e: Emitter, x: Expr) -> Hosted:
    count = x.size if is_string(e, x) else x.numel()
    return Hosted(array([e.let_host(count, "n", nonnegative=True)], ()))


@rule("Range")
def range_(e: Emitter, start: Expr, limit: Expr, delta: Expr, *, stash_type: int = 1) -> Expr:
    of = e.dtype(start) or ir.DataType.INT64
    if of.is_floating_point():
        bounds = [number(e, v) for v in (start, limit, delta)]
        return ops.float_range(*bounds, dtype=typename(of), device=e.device)
    first, last, step = (integer(e, v) for v in (start, limit, delta))
    typed = {} if of == ir.DataType.INT64 else {"dtype": typename(of)}
    if isinstance(step, Expr):
        return ops.integer_range(first, last, step, **typed, device=e.device)
    if isinstance(first, Expr) or isinstance(last, Expr):
        if not (_is(first, 0) and step > 0 and is_nonnegative(e, last)):
            is_data = any(e.scalar(v, 1) is None for v in (start, limit))  # which torch.export cannot compare
            more, less = (torch.sym_max, torch.sym_min) if is_data else (Name("max"), Name("min"))
            last = (more if step > 0 else less)(first, last)
    elif (last - first) * step < 0:
        last = first
    if step == 1:
        return torch.arange(*([last] if _is(first, 0) else [first, last]), **typed, device=e.device)
    return torch.arange(first, last, step, **typed, device=e.device)


def number(e: Emitter, x: Expr) -> Any:
    """An input that holds one number, as that number or as an expression for it."""
    found = e.scalar(x, 1)
    return e.let_host(x.item(), "n") if found is None else found


@rule("ConstantOfShape")
def constant_of_shape(e: Emitter, shape: Expr, *, value: ir.TensorProtocol | None = None) -> Expr:
    dims = e.numbers(shape)
    dims = dims if isinstance(dims, Expr) else tuple(dims)
    of = ir.DataType.FLOAT if value is None else value.dtype
    fill = 0 if value is None else value.numpy().reshape(-1)[0].item()
    typed = {"dtype": typename(of), "device": e.device}
    if fill == 0 and pymath.copysign(1, fill) > 0:
        return torch.zeros(dims, **typed)
    return torch.ones(dims, **typed) if fill == 1 else torch.full(dims, fill, **typed)


@rule("EyeLike")
def eye_like(e: Emitter, x: Expr, *, dtype: int | None = None, k: int = 0) -> Expr:
    of = ir.DataType(dtype) if dtype is not None else e.dtype(x) or ir.DataType.FLOAT
    rows, columns = e.dim(x, 0), e.dim(x, 1)
    if k == 0 and of not in UNSIGNED:
        return torch.eye(rows, columns, dtype=typename(of), device=e.device)
    return ops.shifted_eye(rows, columns, k, dtype=typename(of), device=e.device)


@rule("Trilu")
def trilu(e: Emitter, x: Expr, k: Expr | None = None, *, upper: int = 1) -> Expr:
    part = torch.triu if upper else torch.tril
    shift = 0 if k is None else integer(e, k, "k")
    return from_bits(e, x, part(bits(e, x), *([] if _is(shift, 0) else [shift])))


@rule("DepthToSpace")
def depth_to_space(e: Emitter, x: Expr, *, blocksize: int, mode: str = "DCR") -> Expr:
    return F.pixel_shuffle(x, blocksize) if mode == "CRD" else ops.depth_to_space(x, blocksize)


@rule("SpaceToDepth")
def space_to_depth(e: Emitter, x: Expr, *, blocksize: int, mode: str = "DCR") -> Expr:
    return F.pixel_unshuffle(x, blocksize) if mode == "CRD" else ops.space_to_depth(x, blocksize)
