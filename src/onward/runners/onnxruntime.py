"""Runs a model on ONNX Runtime, the referee."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from onward.errors import RunFailure, UnsupportedError
from onward.gate.budget import stopped_by
from onward.graph.narrow import is_narrow, pack, unpack
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.runners.calls import Inputs, Outputs, Run, brief
from onward.runners.custom import failing, served, unknown
from onward.runners.files import readable
from onward.runners.full_precision import UNROUNDED, unrounded, unrounded_experts
from onward.runners.libraries import register_libraries
from onward.runners.runner import Runner, register
from onward.runners.settled import settled
from onward.runners.unsaturated import UNFUSED, multiplies_bytes, products_saturate, unsaturated

if TYPE_CHECKING:
    import onnxruntime

UNOPTIMIZED = "unoptimized"
DEFAULT_PROVIDER = "CPUExecutionProvider"
GIVES_BACK = "memory.enable_memory_arena_shrinkage", "cpu:0"
"""A session keeps twice what a run takes, gigabytes for large pictures, and verification has several."""
BY_THREAD = "DynamicQuantizeLSTM"
"""The op whose results depend on the number of threads."""
ONE_THREAD = f"on one thread: with more, {BY_THREAD} quantises its states in as many parts, with other results"


def prepare(model: Model, mode: str) -> Run:
    """`mode` is '', 'unoptimized', or an execution provider, also without the words at its end: 'CUDA'."""
    return _run(session(model, mode), lean=mode == UNOPTIMIZED)


def on_threads(model: Model, count: int) -> Run:
    """The model on so many threads: what is timed beside another has as many as that."""
    return _run(session(model, threads=count))


def start(model: Model, mode: str) -> Callable[[], Run]:
    """As `prepare`, on another thread, which has a core of its own meanwhile. It is `lean`: nothing is timed by it."""
    begun = _thread().submit(session, model, mode)
    return lambda: _run(begun.result(), lean=True)


@cache
def _thread() -> ThreadPoolExecutor:
    """It stays, with the memory that it has got: for a new one the system would have to find fresh memory."""
    return ThreadPoolExecutor(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_thread.cache_clear)  # a process that was forked has no thread but its own


def _run(session: onnxruntime.InferenceSession, lean: bool = False) -> Run:
    """`lean`: after each run, memory is given back, which the next has to find again."""
    names = [output.name for output in session.get_outputs()]
    if any(_narrow_type(output.type) for output in session.get_outputs()):
        return lambda inputs: _run_narrow(session, inputs)

    def run(inputs: Inputs) -> Outputs:
        feeds = {name: _fed(value) for name, value in inputs.items()}
        with _stoppable() as options, failing():
            if lean:
                options.add_run_config_entry(*GIVES_BACK)
            return dict(zip(names, session.run(None, feeds, options), strict=True))

    return run


@contextmanager
def _stoppable() -> Iterator[onnxruntime.RunOptions]:
    """Options of a run that ends when its time is over."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.log_severity_level = 4
    with stopped_by(lambda: setattr(options, "terminate", True)):
        yield options


def session(model: Model, mode: str = "", threads: int = 0) -> onnxruntime.InferenceSession:
    """A session whose results are the same on every processor; `threads` are as many as there are cores, unless given.

    It has one thread where more give other results: a DynamicQuantizeLSTM quantises its states in as many parts.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1 if depends_on_threads(model) else threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # the other side needs the cores, too
    if mode == UNOPTIMIZED:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    model = settled(model)
    custom = served(model.ir)
    if custom.model is not model.ir:
        model = replace(model, ir=custom.model, path=None)
    register_libraries(options, model.ir, custom.libraries)
    provider = DEFAULT_PROVIDER if mode in ("", UNOPTIMIZED) else _provider(mode)
    if provider == DEFAULT_PROVIDER and multiplies_bytes(model) and products_saturate():
        model = unsaturated(model)
        options.add_session_config_entry(UNFUSED, "1")
    options.add_session_config_entry(*UNROUNDED)
    model = unrounded(model)
    with readable(model) as source, unrounded_experts(model):
        try:
            made = onnxruntime.InferenceSession(source, options, [provider])
        except Exception as error:
            if step := unknown(model.ir):
                raise UnsupportedError(f"{brief(error)}{step}") from error
            raise
    if provider not in made.get_providers():
        raise UnsupportedError(f"ONNX Runtime could not start {provider}, and would fall back to another")
    return made


def depends_on_threads(model: Model) -> bool:
    return any(node.op_type == BY_THREAD for node in all_nodes(model.ir.graph))


def _provider(mode: str) -> str:
    import onnxruntime

    available = onnxruntime.get_available_providers()
    for name in (mode, f"{mode}ExecutionProvider"):
        if name in available:
            return name
    raise UnsupportedError(f"ONNX Runtime has no execution provider {mode!r}; it has {', '.join(available)}")


def _narrow_type(spelled: str) -> bool:
    """Whether 'tensor(int4)' is of a dtype that ONNX Runtime does not turn into an array itself."""
    return any(word in spelled for word in ("bfloat16", "float8", "float4", "int4", "int2"))


def _fed(value: Any) -> Any:
    """Arrays of dtypes that numpy lacks are copied into ONNX Runtime's own values."""
    import onnxruntime

    if not isinstance(value, np.ndarray) or not is_narrow(value.dtype):
        return value
    element = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
    made = onnxruntime.OrtValue.ortvalue_from_shape_and_type(value.shape, element)
    packed = pack(value)
    if packed.size != made.tensor_size_in_bytes():
        raise RunFailure(f"ONNX Runtime lays out {value.dtype} in another way than ONNX")
    ctypes.memmove(made.data_ptr(), packed.ctypes.data, packed.size)
    return made


def _run_narrow(session: onnxruntime.InferenceSession, inputs: Inputs) -> Outputs:
    """Reads the memory of outputs for which ONNX Runtime has no array; everything is a value of its own then."""
    import onnxruntime

    feeds = {}
    for name, value in inputs.items():
        fed = _fed(value)
        if isinstance(fed, np.ndarray) and fed.dtype.kind not in "OUST":
            fed = onnxruntime.OrtValue.ortvalue_from_numpy(fed)
        if not isinstance(fed, onnxruntime.OrtValue):
            raise RunFailure("ONNX Runtime takes no strings or sequences where an output is of a narrow dtype")
        feeds[name] = fed
    names = [output.name for output in session.get_outputs()]
    with _stoppable() as options, failing():
        found = session.run_with_ort_values(None, feeds, options)
    return {name: _read(value) for name, value in zip(names, found, strict=True)}


def _read(value: onnxruntime.OrtValue) -> Any:
    if not value.is_tensor():
        raise RunFailure("ONNX Runtime gives no sequences where an output is of a narrow dtype")
    if not _narrow_type(value.data_type()):
        return value.numpy()
    dtype = onnx.helper.tensor_dtype_to_np_dtype(value.element_type())
    data = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
    return unpack(data, dtype, tuple(value.shape()))


register(
    Runner(
        "onnxruntime",
        "ONNX Runtime",
        "onnxruntime",
        prepare,
        {UNOPTIMIZED: "with all graph optimisations off", "*": "an execution provider, such as CUDAExecutionProvider"},
        start,
    )
)
