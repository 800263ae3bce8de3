"""Which texts pandas may read as dates in a format although they are not plain.

Pandas reads digits of other scripts, spaces before digits, second 60 and the like. What has not even such a form is no
date for sure, and neither is a text of plain form with a month or day that does not exist.
"""

from __future__ import annotations

import re

import numpy as np
import onnx_ir as ir

from onward.frontends.dataframe.columns.column import Column
from onward.frontends.dataframe.tensors.time.time_parse import PATTERNS, Field, Parsed, fields
from onward.graph.build import Tensor

_LOOSE = {
    "%Y": r"\s*[+-]?[0-9]{4,}", "%y": "[0-9]{2}", "%j": r"\s*[0-9]{1,3}", "%b": "[a-z]+", "%B": "[a-z]+",
    "%p": "[a-z.]+", "%S.%f": r"\s*[0-9]{1,2}(?:\.[0-9]*)?",
}  # fmt: skip
_PLAIN = {"%Y": "[0-9]{4}", "%y": "[0-9]{2}", "%j": "[0-9]{3}", "%S": "[0-5][0-9]", "%S.%f": r"[0-5][0-9]\.[0-9]{1,9}"}
MONTHS = "(?is:.*(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec).*)"
_PRESENT = "(?i:now|today)"
_OTHER_SCRIPTS = r"(?s:.*[^\x00-\x7F].*\p{Nd}.*|.*\p{Nd}.*[^\x00-\x7F].*)"
"""Digits, and something that is not ASCII."""


def unclear(text: Tensor, format: str, valid: Tensor) -> Tensor:
    """Of a format that is given: where pandas may read what is not valid here."""
    op = text.op
    found, after = fields(format)
    loose = _pattern(found, after, {**dict.fromkeys(PATTERNS, r"\s*[0-9]{1,2}"), **_LOOSE}, r"\s*")
    zone = r"\s*(?:z|[a-z]{3,4}|[+-][0-9:]*)?\s*"
    possible = op.RegexFullMatch(text, pattern=f"(?i)\\s*{loose}{zone}|{_PRESENT}|{_OTHER_SCRIPTS}")
    possible = op.And(possible, op.Not(valid))
    if any(part in ("%b", "%B", "%p") for field in found for part in field.directives):
        return possible
    # Without text between them, directives have all their digits: fewer could be cut in several ways.
    digits = "[0-9]{2}" if any(len(field.directives) > 1 for field in found) else "[0-9]{1,2}"
    plain = _pattern(found, after, {**dict.fromkeys(PATTERNS, digits), **_PLAIN}, "")
    return op.And(possible, op.Not(op.RegexFullMatch(text, pattern=plain)))


def _pattern(found: list[Field], after: str, table: dict[str, str], space: str) -> str:
    """The fields of a format with the text between them."""
    made = ""
    for field in found:
        made += _literal(field.before, space) + "".join(table[part] for part in field.directives)
    return made + _literal(after, space)


def _literal(text: str, space: str) -> str:
    return "".join(f"{space}[t ]{space}" if space and c in "T " else re.escape(c) + space for c in text)


def unclear_if_guessed(column: Column, parsed: Parsed, format: str, valid: Tensor, missing: Tensor) -> Tensor:
    """Of a format that is guessed: if the first row is not plain, pandas reads every row by itself."""
    op, text = column.op, column.value
    found, after = fields(format)
    strict = op.And(valid, op.RegexFullMatch(text, pattern=_pattern(found, after, PATTERNS, "")))
    end = op.constant(np.asarray([True]))
    present = op.Concat(op.Reshape(op.Not(missing), op.ints([-1])), end, axis=0)
    first = op.ArgMax(op.Cast(present, to=int(ir.DataType.INT32)), axis=0, keepdims=1)
    is_plain = op.Gather(op.Concat(op.Reshape(strict, op.ints([-1])), end, axis=0), first)
    words = op.And(op.RegexFullMatch(text, pattern=MONTHS), op.Not(valid))
    by_row = op.And(op.Or(parsed.unclear, words), op.Not(is_plain))
    return op.Or(unclear(text, format, valid), by_row)
