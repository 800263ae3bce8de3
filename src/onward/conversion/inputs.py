"""What a user says of a model's inputs: `--input "x:float32[batch,3,224,224]"`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.advice.nearest import meant
from onward.advice.options import option
from onward.errors import InvalidDataError, OnwardError
from onward.gate.files import absent

if TYPE_CHECKING:
    import onnx_ir as ir

    from onward.formats.matching import Declared

FORM = re.compile(r"\s*(?P<name>[^:\[\]]+?)\s*:\s*(?P<dtype>\w+)\s*(\[(?P<dims>[^\[\]]*)\])?\s*")


def parsed(texts: Sequence[str]) -> list[Declared]:
    """Each text as an input: a dimension is a number, or a name for one that is open; without brackets, a scalar."""
    found = [_parsed(text) for text in texts]
    names = [one.name for one in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise OnwardError(f"{option('input')}: {twice!r} is given twice")
    return found


def check_data(inputs: Any) -> None:
    """Refuse, before the work is done, a description or a path of nothing where data is asked for."""
    texts = inputs if isinstance(inputs, list | tuple) else [inputs]
    if texts and all(isinstance(text, str) and FORM.fullmatch(text) and not Path(text).exists() for text in texts):
        raise OnwardError(f"{option('inputs')} takes data to check on; {option('input', list(texts))} describes inputs")
    if isinstance(inputs, str | Path) and not Path(inputs).exists():
        raise InvalidDataError(absent(Path(inputs)))


def _parsed(text: str) -> Declared:
    from onward.formats.matching import Declared

    word = option("input")
    match = FORM.fullmatch(text)
    if match is None:
        data = f"; {option('inputs', text)} gives data to check on" if Path(text).exists() else ""
        raise OnwardError(f'{word} {text!r} is not understood; it is written as "x:float32[batch,3,224,224]"{data}')
    dims = [dim.strip() for dim in (match["dims"] or "").split(",") if match["dims"]]
    if odd := next((dim for dim in dims if not re.fullmatch(r"\d+|[^\W\d]\w*", dim)), None):
        raise OnwardError(f"{word} {text!r}: a dimension is a number or a name, not {odd!r}")
    return Declared(match["name"], _dtype(match["dtype"]), tuple(int(d) if d.isdigit() else d for d in dims))


def _dtype(name: str) -> ir.DataType:
    import onnx_ir as ir

    known = ir.DataType.__members__
    spelt = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE"}.get(name.upper(), name.upper())
    if spelt not in known or spelt == "UNDEFINED":
        near = meant(name, ["float32", "float64", *map(str.lower, known)])
        raise OnwardError(
            f"{option('input')}: {name!r} is not a dtype; use float32, float64, int64, bool, string or the like{near}"
        )
    return known[spelt]


def examples(declared: Sequence[Declared]) -> dict[str, Any]:
    """Tensors of PyTorch such as the inputs are: open dimensions have sizes that nothing else is likely to have."""
    import numpy as np
    import torch

    names = [dim for one in declared for dim in one.dims or () if isinstance(dim, str)]
    sizes = dict(zip(dict.fromkeys(names), _PRIMES, strict=False))
    if len(set(names)) > len(sizes):
        raise OnwardError(f"{option('input')}: there are more than {len(_PRIMES)} names of dimensions")
    draw = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for one in declared:
        shape = [dim if isinstance(dim, int) else sizes[str(dim)] for dim in one.dims or ()]
        dtype = np.dtype(np.float32) if one.dtype is None else one.dtype.numpy()
        if dtype.kind not in "fbiuV":
            raise OnwardError(f"{option('input')}: PyTorch has no tensors of {dtype} to make up for {one.name!r}")
        numbers = draw.standard_normal(shape) if dtype.kind in "fV" else draw.integers(0, 2, shape)
        found[one.name] = torch.from_numpy(np.asarray(numbers)).to(getattr(torch, str(dtype)))
    return found


_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19)
