"""Runs a model on OpenVINO, asked for full precision so that its results can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onward.errors import RunFailure, UnsupportedError
from onward.graph.narrow import dtype_of, is_narrow, pack, unpack
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run
from onward.runners.custom import with_bodies
from onward.runners.files import readable
from onward.runners.runner import Runner, register
from onward.runners.settled import settled

if TYPE_CHECKING:
    import openvino

DEFAULT_DEVICE = "CPU"
VIRTUAL = ("AUTO", "MULTI", "HETERO", "BATCH")
"""Devices that choose among others."""


@cache
def _core() -> openvino.Core:
    import openvino

    return openvino.Core()


def prepare(model: Model, mode: str) -> Run:
    """`mode` is a device such as 'CPU' or 'GPU.0'; '' is the processor."""
    device = mode or DEFAULT_DEVICE
    _check_device(device)
    graph = model.ir.graph
    _check_types([*graph.inputs, *graph.outputs])
    with readable(settled(with_bodies(model))) as source:
        read = _core().read_model(source)
        compiled = _core().compile_model(read, device, _hints(device))
    names = [value.name or "" for value in graph.inputs if not value.is_initializer()]
    fed = _fed(compiled.inputs, names)
    given = [value.name or "" for value in graph.outputs]
    places = _places(given, compiled.outputs)
    dtypes = [dtype_of(value) for value in graph.outputs]

    def run(inputs: Inputs) -> Outputs:
        if replaced := inputs.keys() - set(names):
            raise RunFailure(f"the input {min(replaced)!r} has a default, which OpenVINO keeps as a weight")
        request = compiled.create_infer_request()
        for place, name in enumerate(fed):
            request.set_input_tensor(place, _tensor(inputs[name], compiled.inputs[place]))
        request.infer()
        tensors = [request.get_output_tensor(place) for place in places]
        return {name: _array(tensor, dtype) for name, tensor, dtype in zip(given, tensors, dtypes, strict=True)}

    return run


def _check_device(device: str) -> None:
    available = _core().available_devices
    if device not in available and device.partition(":")[0] not in VIRTUAL:
        raise UnsupportedError(f"OpenVINO has no device {device!r}; it has {', '.join([*available, *VIRTUAL])}")


def _check_types(values: Sequence[ir.Value]) -> None:
    for value in values:
        if value.type is not None and not isinstance(value.type, ir.TensorType):
            raise RunFailure(f"OpenVINO takes and gives tensors only, but {value.name!r} is {value.type}")


def _hints(device: str) -> dict[str, Any]:
    """Without them it may compute in half precision where the processor has instructions for that."""
    import openvino.properties.hint as hint

    if device.partition(":")[0] in VIRTUAL:
        return {hint.execution_mode: hint.ExecutionMode.ACCURACY}
    return {hint.execution_mode: hint.ExecutionMode.ACCURACY, hint.inference_precision: "f32"}


def _fed(ports: Sequence[Any], names: Sequence[str]) -> list[str]:
    """The input that each port is fed; OpenVINO has no port for an input of which only the type is used."""
    found = [next((name for name in names if name in port.names), None) for port in ports]
    if None in found and len(ports) == len(names):
        found = [name or names[position] for position, name in enumerate(found)]
    if None in found or len(set(found)) < len(found):
        raise RunFailure("OpenVINO has other inputs in its form of the model")
    return [name or "" for name in found]


def _places(names: Sequence[str], ports: Sequence[Any]) -> list[int]:
    """Where each output is among the ports: by name, and by position where OpenVINO has lost one."""
    by_name = {name: place for place, port in enumerate(ports) for name in port.names}
    lost = {position for position, name in enumerate(names) if name not in by_name}
    taken = {by_name[name] for name in names if name in by_name}
    if lost and (len(ports) != len(names) or lost & taken):
        raise RunFailure(f"OpenVINO has no output {names[min(lost)]!r} in its form of the model")
    return [by_name.get(name, position) for position, name in enumerate(names)]


def _tensor(array: Any, port: Any) -> openvino.Tensor:
    import openvino

    if array.dtype.kind in "OUST":
        return openvino.Tensor(array.astype(np.str_))
    if not is_narrow(array.dtype):
        return openvino.Tensor(np.ascontiguousarray(array).reshape(array.shape))
    tensor = openvino.Tensor(port.element_type, openvino.Shape(array.shape))
    packed = pack(array)
    if packed.size != tensor.byte_size:
        raise RunFailure(f"OpenVINO takes {port.element_type} where the model has {array.dtype}")
    tensor.data.reshape(-1).view(np.uint8)[:] = packed
    return tensor


def _array(tensor: openvino.Tensor, dtype: np.dtype[Any] | None) -> Any:
    """A copy, as the next run may reuse the memory; OpenVINO calls bfloat16 float16 in numpy."""
    import openvino

    if tensor.element_type == openvino.Type.string:
        return np.asarray(tensor.str_data, object)
    if dtype is None:
        return np.array(tensor.data)
    data = tensor.data.tobytes()
    if len(data) != pack(np.zeros(tuple(tensor.shape), dtype)).size:
        raise RunFailure(f"OpenVINO gives {tensor.element_type} where the model has {dtype}")
    return unpack(data, dtype, tuple(tensor.shape))


register(Runner("openvino", "OpenVINO", "openvino", prepare, {"*": "a device, such as CPU or GPU"}))
