"""Runs a model on IREE: as StableHLO, made of the JAX source at the sizes that it is run on, or as ONNX itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from onward.advice.extras import require
from onward.backends.backend import backend
from onward.errors import RunFailure
from onward.graph.narrow import carried, dtype_of
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.files import readable
from onward.runners.runner import Runner, register
from onward.runners.settled import settled

if TYPE_CHECKING:
    pass

Program = Callable[[Sequence[Any]], Sequence[Any]]
OPTIONS = [
    "--iree-llvmcpu-target-cpu=host",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-input-demote-i64-to-i32=false",
]


def prepare(model: Model, mode: str) -> Run:
    """`mode` is 'onnx' where IREE reads the ONNX file by itself."""
    graph = model.ir.graph
    fed = [value for value in graph.inputs if not value.is_initializer()]
    program = _of_onnx(model) if mode == "onnx" else _of_stablehlo(model)
    outputs = [(value.name or "", dtype_of(value)) for value in graph.outputs]

    def run(inputs: Inputs) -> Outputs:
        if replaced := inputs.keys() - {value.name for value in fed}:
            raise RunFailure(f"the input {min(replaced)!r} has a default, which IREE keeps as a weight")
        found = program([inputs[value.name or ""] for value in fed])
        return {name: carried(array, dtype) for (name, dtype), array in zip(outputs, found, strict=True)}

    return run


def _of_stablehlo(model: Model) -> Program:
    """Compiled once for each combination of sizes: IREE takes no symbolic ones from JAX."""
    from onward.backends.jax.stablehlo import at_sizes

    require("jax")
    jax = backend("jax")
    net = jax.load(jax.generate(model))
    types = [value.dtype for value in model.ir.graph.inputs if not value.is_initializer()]
    known: dict[Any, tuple[Program, Any]] = {}

    def program(arrays: Sequence[Any]) -> Sequence[Any]:
        given = [jax.to_framework(array, of) for array, of in zip(arrays, types, strict=True)]
        sizes = tuple((value.shape, value.dtype) for value in given)
        if sizes not in known:
            module = at_sizes(net, given)
            known[sizes] = _compiled(module.text, "stablehlo"), module
        call, module = known[sizes]
        return call([np.asarray(value) for value in module.arguments(given)])

    return program


def _of_onnx(model: Model) -> Program:
    import onnx
    from iree.compiler import ir
    from iree.compiler.extras import onnx_importer

    with readable(settled(model)) as source:
        proto = onnx.load(source) if isinstance(source, str | Path) else onnx.load_model_from_string(source)
    info = onnx_importer.ModelInfo(onnx.shape_inference.infer_shapes(proto, data_prop=True))
    module = info.create_module(context=ir.Context()).operation
    onnx_importer.NodeImporter.define_function(info.main_graph, module).import_all()
    return _compiled(module.get_asm(), "onnx")


def _compiled(text: str, kind: str) -> Program:
    """Runs the one public function of a module."""
    from iree import runtime
    from iree.compiler.tools import CompilerToolError, compile_str

    try:
        binary = compile_str(text, input_type=kind, target_backends=["llvm-cpu"], extra_args=OPTIONS)
    except CompilerToolError as error:
        raise RunFailure(f"IREE does not compile it: {_first_error(str(error))}") from None
    context = runtime.SystemContext(config=_config())
    module = runtime.VmModule.copy_buffer(context.instance, binary)
    context.add_vm_module(module)
    name = next(name for name in module.function_names if "$" not in name and not name.startswith("__"))
    function = context.modules[module.name][name]

    def program(arrays: Sequence[Any]) -> Sequence[Any]:
        found = function(*arrays)
        several = found if isinstance(found, list | tuple) else [found]
        return [np.array(value.to_host()) for value in several]

    return program


@cache
def _config() -> Any:
    from iree import runtime

    return runtime.Config("local-sync")


def _first_error(text: str) -> str:
    lines = [line.partition("error: ")[2] for line in text.splitlines() if "error: " in line]
    return (lines or [text.strip().splitlines()[0]])[0][:300]


register(Runner("iree", "IREE, from StableHLO", "iree", prepare, {"onnx": "as IREE itself reads ONNX"}))
