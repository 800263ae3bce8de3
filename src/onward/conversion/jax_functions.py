"""Functions of JAX as what is converted: with the specs of their inputs as text, and their weights from a file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.advice.extras import require
from onward.advice.options import option
from onward.conversion.request import Request
from onward.errors import InvalidDataError, OnwardError
from onward.frontends.opset import OPSET
from onward.gate import harmless, opens
from onward.gate.arrays import read_npz
from onward.gate.files import absent

if TYPE_CHECKING:
    from onward.model import Model
    from onward.runners.calls import Run

KIND = "JAX function"
FORM = re.compile(r"\s*((?P<name>[^\W\d]\w*)\s*:)?\s*(?P<dtype>\w+)\s*(\[(?P<dims>.*)\])?\s*")
SHORT = {"bf": "bfloat", "f": "float", "i": "int", "u": "uint", "s": "int"}
"""How dtypes are written in short, before their bits."""
EXAMPLE = "f32[b,224,224,3]"


def converted_function(function: Any, request: Request) -> tuple[Model, Run]:
    """Its model, and how JAX runs it."""
    for name in (
        "signature",
        "allow_custom_ops",
        "input",
        "outputs",
        "checkpoint",
        "cache",
        "sample",
        "freeze",
        "never_null",
        "extensions",
    ):
        if request.is_given(name):
            raise OnwardError(f"{request.name}: {option(name)} does not apply to a {KIND}: leave it out")
    require("jax", what=request.name)
    from onward.frontends.jax.convert import converted

    params = request.params
    if isinstance(params, str | Path):
        params = nested(read_params(Path(params)))
    parsed = [_parsed(text) if isinstance(text, str) else (None, text) for text in request.spec]
    names = [name for name, _ in parsed if name is not None]
    if names and len(names) != len(parsed):
        raise OnwardError(f"{option('spec')}: either all inputs have a name, as in 'x:{EXAMPLE}', or none")
    opset = OPSET if request.opset is None else request.opset
    model, opened = converted(function, [spec for _, spec in parsed], params, names or None, None, opset)
    return model, opened()


def _parsed(text: str) -> tuple[str | None, Any]:
    """A name if there is one, and the shape and dtype."""
    import jax.numpy as jnp

    from onward.frontends.jax.specs import struct

    form = FORM.fullmatch(text)
    if form is None:
        raise OnwardError(f'{option("spec")} {text!r} is not understood; it is written as "{EXAMPLE}"')
    dims = [dim.strip() for dim in _split(form["dims"] or "")]
    try:
        dtype = jnp.dtype(_dtype(form["dtype"]))
    except TypeError as error:
        raise OnwardError(
            f"{option('spec')} {text!r}: {form['dtype']!r} is no dtype; write f32, bf16, i32, u8, bool or the like"
        ) from error
    return form["name"], struct(tuple(int(dim) if dim.isdigit() else dim for dim in dims), dtype)


def _split(text: str) -> Sequence[str]:
    """By commas that are not inside of parentheses."""
    return [part for part in re.split(r",(?![^(]*\))", text) if part.strip()]


def _dtype(text: str) -> str:
    found = re.fullmatch(r"(bf|f|i|u|s)(\d+)", text)
    return {"pred": "bool"}.get(text, text) if found is None else f"{SHORT[found[1]]}{found[2]}"


@opens(harmless)
def read_params(path: Path) -> dict[str, Any]:
    """The arrays of a file, by name."""
    if not path.is_file():
        raise InvalidDataError(absent(path))
    if path.suffix == ".npz":
        return dict(read_npz(path))
    if path.suffix != ".safetensors":
        raise InvalidDataError(f"{path}: weights are read from .safetensors and .npz")
    from safetensors import SafetensorError
    from safetensors.flax import load_file

    try:
        return dict(load_file(path))
    except SafetensorError as error:
        raise InvalidDataError(f"{path}: it is damaged, or is not a file of safetensors: {error}") from error


def nested(arrays: dict[str, Any]) -> dict[str, Any]:
    """A tree of dicts: `dense.kernel` is `{"dense": {"kernel": …}}`."""
    tree: dict[str, Any] = {}
    for name, array in arrays.items():
        *levels, last = name.split(".")
        place = tree
        for level in levels:
            place = place.setdefault(level, {})
            if not isinstance(place, dict):
                raise InvalidDataError(f"{name!r} is the name of an array inside of another array")
        place[last] = array
    return tree
