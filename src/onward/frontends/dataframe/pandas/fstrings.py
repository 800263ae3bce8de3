"""f-strings in functions of single values: Python joins texts, in which marks stand for the values.

Python itself puts an f-string together, of real texts. So each value gives a mark, and what the function returns is
read for them. This is right only if nothing looks at the text in between: where it does not go straight from the
f-string to the function's result, it is refused.
"""

from __future__ import annotations

import dis
import re
from types import CodeType, FrameType
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.dataframe.pandas.proxies import Series

MARK = re.compile("\ue000onward:([0-9]+)\ue001")
FORMATS = ("FORMAT_VALUE", "FORMAT_SIMPLE")
TAKES = {
    **dict.fromkeys(("CACHE", "EXTENDED_ARG", "NOP", "PRECALL", "RESUME"), 0),
    **dict.fromkeys(("LOAD_CLOSURE", "LOAD_CONST", "LOAD_DEREF", "LOAD_FAST", "LOAD_GLOBAL", "PUSH_NULL"), 0),
    **dict.fromkeys(("FORMAT_SIMPLE", "FORMAT_VALUE", "LOAD_ATTR", "LOAD_METHOD", "UNARY_NEGATIVE"), 1),
    **dict.fromkeys(("BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP"), 2),
}
"""How many values of the stack an instruction takes, of those that may stand in the rest of an f-string."""
MISSING = {"str": "nan", "string": "<NA>"}
"""By dtype, what Python writes for a text that is missing."""


def marked(value: Any, spec: str, frame: FrameType) -> str:
    """What stands for a value in an f-string that a function gives as its result."""
    paths = value.trace.paths
    if spec or paths is None or frame.f_code is not paths.code or not is_returned(frame.f_code, frame.f_lasti):
        raise UnsupportedError(
            "a value becomes part of a text by format, other than in an f-string without a format that is returned as"
            " it is: put texts together with +"
        )
    paths.written.append(value)
    return f"\ue000onward:{len(paths.written) - 1}\ue001"


def is_returned(code: CodeType, offset: int) -> bool:
    """Whether what is formatted at an offset becomes part of a text that is returned at once."""
    steps = {step.offset: step for step in dis.get_instructions(code)}
    following = dict(zip(steps, [*list(steps)[1:], -1], strict=True))
    if steps[offset].opname not in FORMATS:
        return False
    above = 0
    """How many values the stack has above the text."""
    while (offset := following[offset]) in steps:
        step = steps[offset]
        count, effect = step.arg or 0, dis.stack_effect(step.opcode, step.arg)
        if step.opname == "RETURN_VALUE":
            return above == 0
        if step.opname == "JUMP_FORWARD":
            following[offset] = step.argval
        elif step.opname == "BUILD_STRING" and count > above:
            above = 0
        else:
            takes = count if step.opname == "BUILD_STRING" else 1 - effect if step.opname == "CALL" else None
            if step.opname == "FORMAT_VALUE" and count & 4:
                takes = 2
            takes = TAKES.get(step.opname) if takes is None else takes
            if takes is None or takes > above:
                return False
            above += effect
    return False


def written(found: Any, values: list[Any]) -> Any:
    """What a function gave, with the values where their marks are."""
    if not isinstance(found, str) or not values:
        return found
    parts = MARK.split(found)
    made: Any = parts[0]
    for number, text in zip(parts[1::2], parts[2::2], strict=True):
        made = made + _text(values[int(number)]) if isinstance(made, Series) or made else _text(values[int(number)])
        made = made + text if text else made
    return made


def _text(value: Any) -> Any:
    """A value as Python writes it."""
    type, series = value.column.type, Series(value.trace, value.real, value.column)
    if type.is_float or type.is_time:
        raise UnsupportedError(f"an f-string writes a value of {type}: this is converted of texts, integers and bools")
    text = series if type.is_text else series.astype("str")
    if value.column.missing() is None:
        return text
    missing = MISSING.get(str(value.real.dtype)) if type.is_text else None
    if missing is None:
        raise UnsupportedError(f"an f-string writes a value of {type} that may be missing: use fillna before")
    return text.fillna(missing)
