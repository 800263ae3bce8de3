"""Modules of StableHLO, as text or as portable artifacts, as ONNX models."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from onward.backends.jax.stablehlo_file import Module, Side
from onward.backends.jax.values import in_64_bits
from onward.errors import OnwardError, UnsupportedError
from onward.formats.stablehlo import dangers
from onward.frontends.jax.convert import converted as traced
from onward.frontends.stablehlo.reader import Reader
from onward.frontends.stablehlo.values import as_array
from onward.gate import opens
from onward.model import Model
from onward.registry import import_files
from onward.runners.calls import Inputs, Outputs, Run

RULES = "onward.frontends.stablehlo.rules"
Dims = Mapping[str, Sequence[int | str]]
TOLD = re.compile(r"args\[(\d+)\]\.shape = \(([^)]*)\)")
"""Where a module that JAX exported says what its open dimensions are called."""


def converted(path: Path, dims: Dims | None, opset: int) -> tuple[Model, Callable[[], Run]]:
    """The model, and what runs the module itself beside it."""
    import jax

    import_files(RULES)
    module = _read(path)
    inputs, outputs = ([side.name for side in sides] for sides in (module.arguments, module.results))
    with in_64_bits(), module.parsed() as parsed:
        reader = Reader(parsed)

        def function(*arguments: Any) -> list[Any]:
            return [as_array(value) for value in reader.call(module.main, arguments)]

        shapes = _shapes(module, dims or {})
        given = [jax.ShapeDtypeStruct(shape, side.dtype) for shape, side in zip(shapes, module.arguments, strict=True)]
        try:
            model, _ = traced(function, given, None, inputs, outputs, opset, reader.places)
        except OnwardError as error:
            is_open = any(None in side.dims for side in module.arguments)
            if not is_open or not isinstance(error.__cause__, TypeError | ValueError):
                raise
            reason = " ".join(str(error.__cause__).split())[:200]
            raise UnsupportedError(
                f"{path.name} has open dimensions that do not fit one another ({reason}): name them, such as"
                f" dims={{{inputs[0]!r}: ('b', 3)}}"
            ) from error
    model.ir.graph.name = path.stem

    def original() -> Run:
        def run(arrays: Inputs) -> Outputs:
            return dict(zip(outputs, module([arrays[name] for name in inputs]), strict=True))

        return run

    return model, original


@opens(dangers)
def _read(path: Path) -> Module:
    return Module(path)


def _shapes(module: Module, dims: Dims) -> list[tuple[Any, ...]]:
    """Sizes, or names of those that are open: as given, as the module says, or one for all first axes."""
    if unknown := dims.keys() - {side.name for side in module.arguments}:
        names = ", ".join(side.name for side in module.arguments)
        raise OnwardError(f"dims has {min(unknown)!r}, but the module takes {names}")
    told = {
        int(place): [dim.strip() for dim in text.split(",") if dim.strip()] for place, text in TOLD.findall(module.text)
    }
    return [_shape(side, dims.get(side.name) or told.get(i)) for i, side in enumerate(module.arguments)]


def _shape(side: Side, named: Sequence[int | str] | None) -> tuple[Any, ...]:
    if named is not None and len(named) == len(side.dims):
        return tuple(name if size is None else size for size, name in zip(side.dims, named, strict=True))
    word = re.sub(r"\W", "_", side.name)
    return tuple(
        size if size is not None else "b" if axis == 0 else f"{word}_{axis}" for axis, size in enumerate(side.dims)
    )
