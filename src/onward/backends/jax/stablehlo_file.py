"""Files of StableHLO: a model with its weights as one, as text or as a portable artifact; and how such a file runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.export
import numpy as np
import onnx_ir as ir
from jax.extend.backend import get_backend
from jax.interpreters.mlir import make_ir_context
from jaxlib import _jax
from jaxlib.mlir import ir as mlir
from jaxlib.mlir.dialects import stablehlo
from jaxlib.mlir.passmanager import PassManager

from onward.advice.options import option
from onward.backends.jax.target import DTYPES
from onward.backends.jax.values import in_64_bits
from onward.errors import InvalidModelError, OnwardError, UnsupportedError
from onward.gate.mlir import text_of
from onward.graph.names import Unique

if TYPE_CHECKING:
    from onward.backends.jax.load import Net

BYTECODE = ".mlirbc"
"""The suffix of files that are no text."""
ARGUMENT, RESULT = "jax.arg_info", "jax.result_info"
"""Where a module says what its arguments and results are called."""
WORDS = {"mod", "floordiv", "max", "min"}
"""What no dimension may be called."""


def write(net: Net, graph: ir.Graph, path: Path) -> Path:
    """Write a model as a module of StableHLO, with its weights in it."""
    text = exported(net, graph)
    if path.suffix == BYTECODE:
        path.write_bytes(stablehlo.serialize_portable_artifact_str(text, stablehlo.get_current_version()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def exported(net: Net, graph: ir.Graph) -> str:
    """The text of a module: inputs and outputs under their names, open dimensions left open, no paths of files."""
    fed = [value for value in graph.inputs if not value.is_initializer()]
    is_open = any(not isinstance(dim, int) for value in fed for dim in value.shape or ())
    try:
        with in_64_bits():
            made = jax.export.export(jax.jit(lambda *inputs: net(*inputs), keep_unused=True))(*_arguments(fed))
    except UnsupportedError:
        raise
    except Exception as error:  # whatever the code of the model, or JAX, says to sizes that are not numbers
        raise _refusal(error, is_open) from error
    with make_ir_context() as context, mlir.Location.unknown(context):
        module = mlir.Module.parse(made.mlir_module())
        PassManager.parse("builtin.module(strip-debuginfo)").run(module.operation)
        main = _main(module)
        main.attributes["arg_attrs"] = _named(ARGUMENT, [value.name or "" for value in fed])
        main.attributes["res_attrs"] = _named(RESULT, [*(value.name or "" for value in graph.outputs), *net.counts])
        module.operation.attributes["sym_name"] = mlir.StringAttr.get(re.sub(r"\W", "_", graph.name or "model"))
        return str(module.operation.get_asm(enable_debug_info=False))


def _named(key: str, names: list[str]) -> Any:
    return mlir.ArrayAttr.get([mlir.DictAttr.get({key: mlir.StringAttr.get(name)}) for name in names])


def _arguments(fed: Sequence[ir.Value]) -> list[jax.ShapeDtypeStruct]:
    """What the model takes, as JAX describes it."""
    names, unique = dict[str, str](), Unique(WORDS)
    dims: list[list[str]] = []
    for value in fed:
        if not isinstance(value.type, ir.TensorType) or value.dtype not in DTYPES or value.shape is None:
            what = "its rank is not known" if value.dtype in DTYPES else "StableHLO has no such type"
            raise UnsupportedError(f"the input {value.name!r} cannot be one of a module of StableHLO: {what}")
        dims.append([])
        for axis, dim in enumerate(value.shape):
            if isinstance(dim, int):
                dims[-1].append(str(dim))
                continue
            word = dim.value or f"{value.name}_{axis}"
            key = dim.value or f"{id(value)} {axis}"
            if key not in names:
                names[key] = unique.name(re.sub(r"\W|^(?=\d)", "_", word))
            dims[-1].append(names[key])
    scope = jax.export.SymbolicScope()
    shapes = [jax.export.symbolic_shape(", ".join(d) + ("," if len(d) == 1 else ""), scope=scope) for d in dims]
    types = [jax.numpy.dtype(DTYPES[value.dtype]) for value in fed if value.dtype is not None]
    return [jax.ShapeDtypeStruct(shape, of) for shape, of in zip(shapes, types, strict=True)]


def _refusal(error: Exception, is_open: bool) -> UnsupportedError:
    reason = " ".join(str(error).split())[:300]
    advice = f"; if open dimensions are the reason, fix them, such as {option('dims', {'batch': 1})}" if is_open else ""
    return UnsupportedError(f"JAX cannot make a module of StableHLO of the model: {reason}{advice}")


@dataclass(frozen=True)
class Side:
    """An argument or result of a module."""

    name: str
    dtype: np.dtype[Any]
    dims: tuple[int | None, ...]


class Module:
    """A module that was read, to be run by JAX: compiled once for each combination of sizes."""

    def __init__(self, path: Path) -> None:
        self._label = str(path)
        self.text = text_of(path)
        with self.parsed() as module:
            main = _main(module)
            self.main: str = main.name.value
            self.arguments = _sides(main.type.inputs, main.attributes, "arg_attrs", ARGUMENT)
            self.results = _sides(main.type.results, main.attributes, "res_attrs", RESULT)
        self._known: dict[Any, Callable[[Sequence[Any]], list[Any]]] = {}

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        shapes = tuple(np.shape(x) for x in inputs)
        if shapes not in self._known:
            self._known[shapes] = _compiled(self.at_sizes(shapes))
        return self._known[shapes](inputs)

    def parsed(self) -> _parsed:
        """The operations of the module, inside of a `with`."""
        return _parsed(self.text, self._label)

    def at_sizes(self, shapes: Sequence[tuple[int, ...]]) -> str:
        """The text of the module for arguments of these shapes alone."""
        with _parsed(self.text, "the module") as module:
            if all(None not in side.dims for side in self.arguments):
                return self.text
            main = _main(module)
            types = [_typed(shape, old) for shape, old in zip(shapes, main.type.inputs, strict=True)]
            stablehlo.register_stablehlo_passes()
            try:
                PassManager.parse(
                    f"builtin.module(stablehlo-refine-arguments{{types={','.join(map(str, types))}}})"
                ).run(module.operation)
                refined = _jax.mlir.refine_polymorphic_shapes(module.operation.get_asm().encode())
            except (mlir.MLIRError, ValueError, jax.errors.JaxRuntimeError) as error:
                why = " ".join(str(error).split()).partition(". ")[0][:300]
                raise UnsupportedError(f"the module does not take inputs of these shapes: {why}") from error
            return str(mlir.Module.parse(refined).operation.get_asm(enable_debug_info=False))


def _compiled(text: str) -> Callable[[Sequence[Any]], list[Any]]:
    """Runs the main function of a module of fixed sizes on the first device."""
    client = get_backend()
    devices = _jax.DeviceList(tuple(client.local_devices()[:1]))
    program = client.compile_and_load(text, devices, _jax.CompileOptions())

    def run(inputs: Sequence[Any]) -> list[Any]:
        with in_64_bits():
            given = [jax.device_put(np.asarray(x), client.local_devices()[0]) for x in inputs]
            found = program.execute_sharded(given).disassemble_into_single_device_arrays()
            return [np.asarray(parts[0]) for parts in found]

    return run


class _parsed:
    """A module inside of which operations can be made."""

    def __init__(self, text: str, label: str) -> None:
        self._context = make_ir_context()
        self._location = mlir.Location.unknown(self._context)
        self._text, self._label = text, label

    def __enter__(self) -> Any:
        with ExitStack() as entered:
            entered.enter_context(self._context)
            entered.enter_context(self._location)
            try:
                module = mlir.Module.parse(self._text)
            except Exception as error:
                raise self._refusal(" ".join(str(error).split())[:200]) from error
            self._entered = entered.pop_all()
        return module

    def _refusal(self, reason: str) -> OnwardError:
        if "quant" in reason:
            return UnsupportedError(
                f"{self._label}: the module has quantized types (!quant), which have no form in ONNX here"
            )
        return InvalidModelError(f"{self._label}: this is no module of StableHLO: {reason}")

    def __exit__(self, *found: object) -> None:
        self._entered.close()


def _main(module: Any) -> Any:
    """The function that is called."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    main = next((op for op in functions if op.name.value == "main"), functions[0] if len(functions) == 1 else None)
    if main is None:
        raise InvalidModelError("the module has no function main()")
    return main


def _sides(types: Sequence[Any], attributes: Any, kind: str, key: str) -> list[Side]:
    told = list(attributes[kind]) if kind in attributes else [{}] * len(types)
    found, unique = [], Unique()
    for i, (each, attrs) in enumerate(zip(types, told, strict=True)):
        if not isinstance(each, mlir.RankedTensorType):
            raise UnsupportedError(f"the module takes or gives {str(each)[:100]}, which is no tensor of a known rank")
        tensor = mlir.RankedTensorType(each)
        is_named = key in attrs and isinstance(attrs[key], mlir.StringAttr) and attrs[key].value
        name = unique.name(attrs[key].value if is_named else f"{'arg' if key == ARGUMENT else 'result'}{i}")
        dims = tuple(None if tensor.is_dynamic_dim(d) else tensor.get_dim_size(d) for d in range(tensor.rank))
        found.append(Side(name, _dtype(tensor.element_type), dims))
    return found


ELEMENTS = {"i1": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"} | {
    "complex<f32>": "complex64", "complex<f64>": "complex128", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2",
    "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E5M2FNUZ": "float8_e5m2fnuz",
} | {f"{sign}i{bits}": f"{'u' if sign else ''}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}  # fmt: skip
"""What numpy calls the types of elements, by their names in a module."""


def _dtype(element: Any) -> np.dtype[Any]:
    name = ELEMENTS.get(str(element))
    if name is None:
        raise UnsupportedError(f"tensors of {element} cannot be handed over")
    found: np.dtype[Any] = jax.numpy.dtype(name)
    return found


def _typed(shape: tuple[int, ...], old: Any) -> Any:
    return mlir.RankedTensorType.get(shape, mlir.RankedTensorType(old).element_type)
