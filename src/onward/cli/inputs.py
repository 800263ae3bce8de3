"""What a user says of a model's inputs: `--input "x:float32[batch,3,224,224]"`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from onward.errors import OnwardError

if TYPE_CHECKING:
    import onnx_ir as ir

    from onward.verification.artifacts.matching import Declared

FORM = re.compile(r"\s*(?P<name>[^:\[\]]+?)\s*:\s*(?P<dtype>\w+)\s*(\[(?P<dims>[^\[\]]*)\])?\s*")


def parsed(texts: Sequence[str]) -> list[Declared]:
    """Each text as an input: a dimension is a number, or a name for one that is open; without brackets, a scalar."""
    found = [_parsed(text) for text in texts]
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise OnwardError(f"--input: {twice!r} is given twice")
    return found


def _parsed(text: str) -> Declared:
    from onward.verification.artifacts.matching import Declared

    match = FORM.fullmatch(text)
    if match is None:
        raise OnwardError(f'--input {text!r} is not understood; it is written as "x:float32[batch,3,224,224]"')
    dims = [dim.strip() for dim in (match["dims"] or "").split(",") if match["dims"]]
    if odd := next((dim for dim in dims if not re.fullmatch(r"\d+|[^\W\d]\w*", dim)), None):
        raise OnwardError(f"--input {text!r}: a dimension is a number or a name, not {odd!r}")
    return Declared(match["name"], _dtype(match["dtype"]), tuple(int(d) if d.isdigit() else d for d in dims))


def _dtype(name: str) -> ir.DataType:
    import onnx_ir as ir

    known = ir.DataType.__members__
    spelt = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}.get(name.upper(), name.upper())
    if spelt not in known or spelt == "UNDEFINED":
        raise OnwardError(
            f"--input: {name!r} is no dtype; there are float32, float64, int64, bool, string and the like"
        )
    return known[spelt]
