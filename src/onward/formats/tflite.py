"""A TensorFlow Lite (LiteRT) model."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.backends.tensorflow.remarks import without_remarks
from onward.errors import InvalidModelError, OnwardError
from onward.formats import Artifact, Kind, Opened, as_artifact, register, tensorflow_ops
from onward.formats.matching import Declared, Steps
from onward.formats.saved_model import choose, import_tensorflow, to_array
from onward.gate import need_trust, opens
from onward.graph.names import Unique
from onward.runners.calls import Inputs, Outputs, Run

IDENTIFIER = b"TFL3"
FLEX = b"Flex"
"""How ops of TensorFlow are called that its interpreter runs."""
LITERT = "ai_edge_litert"
"""The package that has the interpreter without the rest of TensorFlow."""


def recognise(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(8)[4:] == IDENTIFIER


def dangers(path: Path) -> Iterator[str]:
    """Ops of TensorFlow in it that reach out; other ops that are not builtin no interpreter here has."""
    return _dangers(path.read_bytes(), str(path))


def _dangers(data: bytes, label: str) -> Iterator[str]:
    try:
        for node in flex_nodes(data):
            yield from tensorflow_ops.dangers([node])
    except OnwardError:
        raise
    except Exception as error:
        raise InvalidModelError(f"{label}: this TensorFlow Lite model is damaged or cut short") from error


def flex_nodes(data: bytes) -> Iterator[Any]:
    """The nodes of TensorFlow in a model: each is in the options of an op that is not builtin."""
    if FLEX not in data:
        return
    from tensorflow.lite.python import schema_py_generated as schema

    model = schema.ModelT.InitFromPackedBuf(data, 0)
    flex = {i for i, code in enumerate(model.operatorCodes) if (code.customCode or b"").startswith(FLEX)}
    for graph in model.subgraphs:
        for operator in graph.operators or ():
            if operator.opcodeIndex in flex:
                yield flex_node(operator.customOptions)


def flex_node(options: Any) -> Any:
    """The node of TensorFlow in the options of one op: what runs is this, whatever the op is called."""
    from flatbuffers import flexbuffers
    from tensorflow.core.framework import node_def_pb2

    return node_def_pb2.NodeDef.FromString(bytes(flexbuffers.GetRoot(bytearray(options)).AsVector[1].AsStringBytes))


def check_content(data: bytes, label: str = "the model given") -> None:
    """Ops of TensorFlow in a model that reach out need trust."""
    for danger in _dangers(data, label):
        need_trust(Path(label), danger)


@opens(dangers)
def open_tflite(path: Path) -> Opened:
    return replace(_opened(path), run=_Interpreted(path), notes=_casts(path))


@opens(dangers)
def open_signature(path: Path, signature: str) -> Artifact:
    """One of the functions that a model has."""
    opened = replace(_opened(path, True, signature), run=_Interpreted(path, signature=signature), notes=_casts(path))
    return as_artifact(str(path), "TensorFlow Lite model", opened)


def open_content(data: bytes, signature: str | None = None) -> Artifact:
    """A model that is in memory, which the gate looks at as at a file."""
    check_content(data)
    opened = replace(_opened(data, True, signature), run=_Interpreted(data, signature=signature))
    return as_artifact("the model given", "TensorFlow Lite model", opened)


@dataclass(frozen=True)
class _Interpreted:
    """Runs with an interpreter of its own each time: what a model keeps from call to call is in there."""

    source: Path | bytes
    accelerated: bool = True
    signature: str | None = None

    def __call__(self, inputs: Inputs) -> Outputs:
        return _opened(self.source, self.accelerated, self.signature).run(inputs)

    @property
    def plainly(self) -> Run | None:
        return replace(self, accelerated=False) if self.accelerated else None


def _opened(source: Path | bytes, accelerated: bool = True, signature: str | None = None) -> Opened:
    interpreter = _interpreter(source, accelerated)
    signatures = interpreter.get_signature_list()
    return _by_signature(interpreter, signature or choose(signatures)) if signatures else _by_place(interpreter)


def _casts(path: Path) -> list[str]:
    """Which ops are computed in other dtypes than those of the original, as far as TensorFlow is there to read it."""
    if importlib.util.find_spec("tensorflow") is None:
        return []
    from onward.backends.tensorflow.tflite import casts_in

    return [f"cast: {phrase}" for phrase in casts_in(path)]


def _interpreter(source: Path | bytes, accelerated: bool) -> Any:
    """With XNNPACK's kernels, or with its own alone."""
    held = {"model_content": source} if isinstance(source, bytes) else {"model_path": str(source)}
    if importlib.util.find_spec(LITERT) is not None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType
    else:
        lite = import_tensorflow().lite
        Interpreter, OpResolverType = lite.Interpreter, lite.experimental.OpResolverType
    kind = OpResolverType.AUTO if accelerated else OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    with without_remarks():  # it says that it is to be found elsewhere
        return Interpreter(**held, experimental_op_resolver_type=kind)


def _by_signature(interpreter: Any, name: str) -> Opened:
    signature = interpreter.get_signature_runner(name)
    order = interpreter.get_signature_list()[name]
    details = signature.get_input_details()

    def run(inputs: Inputs) -> Outputs:
        found = signature(**{name: inputs[name] for name in order["inputs"]})
        return {name: to_array(found[name]) for name in order["outputs"]}

    takes = [_declare(name, details[name]) for name in order["inputs"]]
    return Opened(run, takes, order["outputs"], steps=_steps(signature.get_output_details()))


def _by_place(interpreter: Any) -> Opened:
    fed, given = interpreter.get_input_details(), interpreter.get_output_details()
    names = [*map(Unique().name, (detail["name"] for detail in given))]  # a tensor may be given twice

    def run(inputs: Inputs) -> Outputs:
        for detail in fed:
            interpreter.resize_tensor_input(detail["index"], inputs[detail["name"]].shape)
        interpreter.allocate_tensors()
        for detail in fed:
            interpreter.set_tensor(detail["index"], inputs[detail["name"]])
        interpreter.invoke()
        arrays = (to_array(interpreter.get_tensor(detail["index"])) for detail in given)
        return dict(zip(names, arrays, strict=True))

    steps = _steps({detail["name"]: detail for detail in given})
    return Opened(run, [_declare(detail["name"], detail) for detail in fed], names, steps=steps)


def _declare(name: str, detail: Any) -> Declared:
    dtype = np.dtype(detail["dtype"])
    dims = detail["shape_signature"] if len(detail["shape_signature"]) else detail["shape"]
    kind = ir.DataType.STRING if dtype.kind in "OSU" else ir.DataType.from_numpy(dtype)
    steps = _steps({name: detail}).get(name)
    return Declared(name, kind, tuple(None if dim < 0 else int(dim) for dim in dims), steps)


def _steps(details: Mapping[str, Any]) -> dict[str, Steps]:
    """Of tensors of integers that stand for numbers."""
    found = {name: detail["quantization"] for name, detail in details.items() if detail["dtype"] in (np.int8, np.uint8)}
    return {name: Steps(float(size), int(zero)) for name, (size, zero) in found.items() if size}


register(Kind("TensorFlow Lite model", (LITERT, "tensorflow"), recognise, open_tflite, "TFL3 at byte 4"))
