"""Pieces of texts by their place: lengths, slices, single characters, and texts without what is at their ends."""

from __future__ import annotations

from typing import Any, Literal

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.dataframe.tensors.text.pattern_sets import PYTHON_SPACE, complement, of_characters, written
from onward.frontends.dataframe.tensors.text.text import (
    MOST_REPEATS,
    characters,
    count_present,
    first_token,
    full_match,
    join,
    text,
)
from onward.frontends.dataframe.tensors.text.text_search import quoted
from onward.graph.build import Tensor

Sides = Literal["both", "left", "right"]


def length(x: Tensor) -> Tensor:
    """How many characters each has, int64. Six nodes, with `com.microsoft::Tokenizer`."""
    return count_present(characters(x))


def byte_length(x: Tensor) -> Tensor:
    """How many bytes each has in UTF-8, int64. Sixteen nodes, with `com.microsoft::Tokenizer`."""
    op = x.op
    parts = characters(x)
    patterns = [r"(?s:.)", r"[^\x{0}-\x{7f}]", r"[^\x{0}-\x{7ff}]", r"[^\x{0}-\x{ffff}]"]
    one, two, three, four = (full_match(parts, pattern).cast(ir.DataType.INT64) for pattern in patterns)
    return op.sum(one + two + (three + four), [1])


def _counted(number: int) -> int:
    if number > MOST_REPEATS:
        raise UnsupportedError(
            f"a slice of texts that counts to {number} cannot be said in ONNX: count to 1000 at most"
        )
    return number


def _drop_first(count: int) -> dict[str, Any]:
    return {"separators": [rf"(?s)\A.{{1,{_counted(count)}}}"]}


def _drop_last(count: int) -> dict[str, Any]:
    return {"separators": [rf"(?s).{{1,{_counted(count)}}}\z"]}


def _first(count: int) -> dict[str, Any]:
    return {"tokenexp": rf"(?s)\A.{{1,{_counted(count)}}}"}


def _last(count: int) -> dict[str, Any]:
    return {"tokenexp": rf"(?s).{{1,{_counted(count)}}}\z"}


def slice_text(x: Tensor, start: int | None = None, stop: int | None = None, step: int | None = None) -> Tensor:
    """`text[start:stop:step]` by characters. Four nodes, seven with both ends; uses `com.microsoft::Tokenizer`.

    The numbers go to 1000. A step is refused, but for -1 of all of the text; so is a negative start with a positive
    stop.
    """
    if step == -1 and start is None and stop is None:
        return reverse(x)
    if step not in (None, 1):
        raise UnsupportedError(f"a slice of texts with step {step} cannot be said in ONNX: slice without a step")
    start = start or 0
    if stop == 0 or (stop is not None and stop <= start and (stop < 0) == (start < 0)):
        return x.op.Expand(text(x.op, ""), x.shape)
    steps: list[dict[str, Any]] = []
    if start < 0 and stop is not None and stop > 0:
        raise UnsupportedError(
            "a slice of texts from a negative start to a positive stop cannot be said in ONNX: count both from one end"
        )
    if start < 0:
        steps.append(_last(-start))
    if stop is not None and stop < 0:
        steps.append(_drop_last(-stop))
    if start > 0:
        steps.append(_drop_first(start))
    if stop is not None and stop > 0:
        steps.append(_first(stop - start))
    if not steps:
        return x
    row = "a" * (max(start, 0) + abs(stop or 0) + 1 if start >= 0 else -start)
    return first_token(x, row, *steps)


def reverse(x: Tensor) -> Tensor:
    """The characters from the last to the first, as in `text[::-1]`. 16 nodes."""
    op = x.op
    parts = characters(x)
    return join(op.Slice(parts, op.ints([-1]), op.ints([-(2**62)]), op.ints([1]), op.ints([-1])))


def character(x: Tensor, place: int) -> tuple[Tensor, Tensor]:
    """`text[place]`, and whether there is one. Six to nine nodes, with `com.microsoft::Tokenizer`."""
    if place == -1:
        found = first_token(x, "a", _last(1))
    elif place < 0:
        found = first_token(x, "a" * -place, {"tokenexp": rf"(?s).{{{_counted(-place)}}}\z"}, _first(1))
    else:
        found = slice_text(x, place, place + 1)
    return found, x.op.Not(x.op.Equal(found, text(x.op, "")))


def strip(x: Tensor, chars: str | None = None, sides: Sides = "both") -> Tensor:
    """Without the characters of a set at the ends. Four nodes, with `com.microsoft::Tokenizer`.

    None means what Python takes for white space; `UNICODE_SPACE` is what PyArrow and Polars take for it.
    """
    chars = PYTHON_SPACE if chars is None else chars
    if not chars:
        return x
    ranges = of_characters(chars)
    group = written(ranges)
    separators = [rf"\A{group}+"] if sides != "right" else []
    separators += [rf"{group}+\z"] if sides != "left" else []
    return first_token(x, _other(chars), {"separators": separators})


def _other(chars: str) -> str:
    return next((c for c in "ax0 _-" if c not in chars), chr(complement(of_characters(chars))[0][0]))


def remove_prefix(x: Tensor, prefix: str) -> Tensor:
    """Without a text at the start, once. Four nodes, with `com.microsoft::Tokenizer`."""
    return first_token(x, prefix + "a" + prefix, {"separators": [rf"\A{quoted(prefix)}"]}) if prefix else x


def remove_suffix(x: Tensor, suffix: str) -> Tensor:
    """Without a text at the end, once. Four nodes, with `com.microsoft::Tokenizer`."""
    return first_token(x, suffix + "a" + suffix, {"separators": [rf"{quoted(suffix)}\z"]}) if suffix else x
