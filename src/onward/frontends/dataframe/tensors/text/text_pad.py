"""Texts made longer: put together, repeated, or filled up to a width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text.text import STRING, first_token, of_type, text
from onward.frontends.dataframe.tensors.text.text_parts import length
from onward.graph.build import Tensor

WIDEST = 1000
"""The table of fillings has so many entries at most."""


def concat(parts: Sequence[Tensor | str], separator: str = "") -> Tensor:
    """Texts one after the other; at least one is a tensor. One node for each that is added, and each separator."""
    op = next(part for part in parts if isinstance(part, Tensor)).op
    run: list[Tensor | str] = []
    for number, part in enumerate(parts):
        for piece in ([separator] if number and separator else []) + [part]:
            if isinstance(piece, str) and run and isinstance(run[-1], str):
                run[-1] += piece
            elif piece != "":
                run.append(piece)
    tensors = [text(op, piece) if isinstance(piece, str) else piece for piece in run]
    result = tensors[0]
    for other in tensors[1:]:
        result = of_type(op.StringConcat(result, other), STRING, [None, 1])
    return result


def repeat(x: Tensor, times: int) -> Tensor:
    """So many times the same. As many nodes as the number doubles, and one for each bit of it."""
    if times <= 0:
        return x.op.Expand(text(x.op, ""), x.shape)
    half = repeat(x, times // 2) if times > 1 else None
    if half is None:
        return x
    twice = concat([half, half])
    return concat([twice, x]) if times % 2 else twice


def _filling(missing: Tensor, width: int, fill: str) -> Tensor:
    """So often the character, from a table."""
    op = missing.op
    table = op.strings(np.array([fill * count for count in range(width + 1)], dtype=object))
    return op.Gather(table, missing, axis=0)


def pad(
    x: Tensor, width: int, side: Literal["left", "right", "both"] = "left", fill: str = " ", lean: int | None = None
) -> Tensor:
    """Filled up to a width at the left, the right or both sides (`rjust`, `ljust`, `center`). Ten nodes or more.

    `lean` is 1 where the odd one of `center` goes to the left side: by itself as Python does it, as the width is odd.
    """
    op = x.op
    if len(fill) != 1:
        raise UnsupportedError(f"texts cannot be filled up with {fill!r}: give one character")
    if width > WIDEST:
        raise UnsupportedError(f"texts cannot be filled up to {width} characters in ONNX: give {WIDEST} at most")
    if width <= 0:
        return x
    missing = op.Max(op.Sub(op.ints([width]), length(x)), op.ints([0]))
    if side == "left":
        return concat([_filling(missing, width, fill), x])
    if side == "right":
        return concat([x, _filling(missing, width, fill)])
    odd = width % 2 if lean is None else lean
    left = op.Div(op.Add(missing, op.ints([1])) if odd else missing, op.ints([2]))
    right = op.Sub(missing, left)
    return concat([_filling(left, width, fill), x, _filling(right, width, fill)])


def zfill(x: Tensor, width: int) -> Tensor:
    """Zeros up to a width, after a sign (`str.zfill`). 18 nodes, with `com.microsoft::Tokenizer`."""
    op = x.op
    if width > WIDEST:
        raise UnsupportedError(f"texts cannot be filled up to {width} characters in ONNX: give {WIDEST} at most")
    if width <= 0:
        return x
    sign = first_token(x, "-", {"tokenexp": r"\A[+\-]"})
    rest = first_token(x, "-1", {"separators": [r"\A[+\-]"]})
    missing = op.Max(op.Sub(op.ints([width]), length(x)), op.ints([0]))
    return concat([sign, _filling(missing, width, "0"), rest])
