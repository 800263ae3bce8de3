"""ONNX Runtime sessions for training: arrays bound by their addresses, inputs checked before a run."""

from __future__ import annotations

import contextlib
import tempfile
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import onnx_ir as ir

from onward.errors import InvalidDataError, NothingSavedWarning, RunFailure
from onward.graph.slots import NAMELESS
from onward.model import Model
from onward.runners.calls import failures
from onward.runners.custom import served
from onward.runners.libraries import register_library
from onward.training.native import tell_threads, with_kernels
from onward.training.speed.fast_conv import fast_convolutions
from onward.training.speed.lifetimes import order_nodes
from onward.training.speed.recompute import recompute
from onward.training.speed.segments import recompute_segments
from onward.training.speed.stash import Roundable, roundable, stash
from onward.training.step_graphs import LOSS

if TYPE_CHECKING:
    import onnxruntime

Array = np.ndarray[Any, np.dtype[Any]]
Batch = Mapping[str, Any]
CPU = ("cpu", 0)
PROVIDERS = ["CPUExecutionProvider"]
WRONG = ["EliminateDropout"]
"""Optimizations that change results: this one takes a Dropout away, told to train or not, if nothing reads its mask."""
LARGEST_ORDERED = 1 << 28
"""Bytes of a model, with the weights that it holds as constants, whose nodes are sorted: it goes through a file."""
LARGEST_FOLDED = 1 << 20
"""Bytes of a constant that ONNX Runtime may compute beforehand, and then holds."""
LARGEST_DECODED = 1 << 12
"""The same where weights are held as integers: they are not to be held as numbers as well."""


@dataclass(frozen=True)
class Saving:
    """How memory is saved at the cost of time: see `speed.segments` and `speed.stash`."""

    segments: str | None = None
    stash: str | None = None


NOTHING_SAVED = Saving()


def open_session(
    graph: ir.Model,
    threads: int | None = None,
    *,
    lean: bool = False,
    kernels: bool = False,
    saving: Saving = NOTHING_SAVED,
) -> onnxruntime.InferenceSession:
    """`lean`: with nodes in an order that holds little at a time. It takes two sessions to open one.

    `kernels`: with convolutions in their fastest forms, and compiled kernels where they can be had.
    `saving`: what of the way forward is not held as it is.
    """
    rounded = _rounded(graph, saving)  # before parts become kernels, which do not tell what they do
    if kernels:
        fast = fast_convolutions(graph)
        for model, library in (with_kernels(fast) or (fast, None), (fast, None)):
            with contextlib.suppress(RunFailure):
                return _opened(model, threads, lean, library, segments=saving.segments, rounded=rounded)
    return _opened(graph, threads, lean, None, segments=saving.segments, rounded=rounded)


def open_changing(
    graph: ir.Model, sources: Mapping[str, str], threads: int | None, saving: Saving = NOTHING_SAVED
) -> onnxruntime.InferenceSession | None:
    """A session of a graph that changes weights where they are, by kernels whose C is given; None where it cannot be.

    Only in our own order is a weight changed after everything that reads it. The graph itself is changed.
    """
    rounded = _rounded(graph, saving)
    found = with_kernels(fast_convolutions(graph, in_place=True), sources)
    if found is None:
        return None
    with contextlib.suppress(RunFailure):
        return _opened(found[0], threads, True, found[1], in_order=True, segments=saving.segments, rounded=rounded)
    return None


def _rounded(graph: ir.Model, saving: Saving) -> Roundable | None:
    return roundable(graph.graph, LOSS) if saving.stash else None


def _opened(
    graph: ir.Model,
    threads: int | None,
    lean: bool,
    library: Path | None,
    *,
    in_order: bool = False,
    segments: str | None = None,
    rounded: Roundable | None = None,
) -> onnxruntime.InferenceSession:
    import onnxruntime

    notes: list[str] = []
    with failures("onnxruntime"):
        if library is not None and threads:
            tell_threads(graph.graph, threads)
        custom = served(graph)
        libraries = [*custom.libraries, *([] if library is None else [str(library)])]
        model = Model(custom.model).to_proto().SerializeToString()
        decodes = any(node.op_type == "DequantizeLinear" for node in custom.model.graph)
        folded = LARGEST_DECODED if decodes else LARGEST_FOLDED
        options = _options(threads, libraries, folded)
        ordered = None
        if lean and len(model) < LARGEST_ORDERED:
            ordered = _ordered(model, libraries, folded, segments, rounded, notes)
        if ordered is None and (in_order or segments or rounded):
            raise RunFailure("the nodes of the graph cannot be put in order, as recompute and stash ask for")
        if ordered is not None:
            model = ordered
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.execution_order = onnxruntime.ExecutionOrder.PRIORITY_BASED
        if lean:
            options.enable_mem_pattern = False
        if rounded is not None or segments:
            options.enable_mem_reuse = False  # it holds a buffer until something of the same shape is there for it
        session = onnxruntime.InferenceSession(model, options, providers=PROVIDERS, disabled_optimizers=WRONG)
    for note in notes:
        warnings.warn(note, NothingSavedWarning, stacklevel=2)
    return session


def _options(threads: int | None, libraries: Sequence[str], folded: int) -> onnxruntime.SessionOptions:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.add_session_config_entry("session.force_spinning_stop", "1")
    options.add_session_config_entry("session.disable_quant_qdq", "1")  # its fused kernels round otherwise, some fail
    options.add_session_config_entry("optimization.constant_folding_max_output_size_in_bytes", str(folded))
    if threads:
        options.intra_op_num_threads = threads
    for library in libraries:
        register_library(options, library)
    return options


def _ordered(
    model: bytes,
    libraries: Sequence[str],
    folded: int,
    segments: str | None,
    rounded: Roundable | None,
    notes: list[str],
) -> bytes | None:
    """As ONNX Runtime optimizes it on this machine, its nodes in our order; None if there is no room for a file.

    `notes` gets what the user should know.
    """
    import onnxruntime

    try:
        with tempfile.TemporaryDirectory(prefix="onward-") as folder:
            path = Path(folder) / "optimized.onnx"
            options = _options(1, libraries, folded)
            options.optimized_model_filepath = str(path)
            onnxruntime.InferenceSession(model, options, providers=PROVIDERS, disabled_optimizers=WRONG)
            optimized = onnx.load(path)
    except Exception:  # if it is the model and not the file, opening the model says so
        return None
    order_nodes(optimized.graph)
    if segments and not recompute_segments(optimized.graph, LOSS, segments):
        notes.append(f"recompute={segments!r} would hold no less at once in this model, so nothing is computed anew")
    recompute(optimized.graph)
    if rounded is not None:
        stash(optimized.graph, LOSS, rounded)
    return bytes(optimized.SerializeToString())


def bind_input(binding: Any, name: str, array: Array) -> None:
    """Read an array where it is; the caller keeps it alive."""
    binding.bind_input(name, *CPU, array.dtype.type, array.shape, array.ctypes.data)


def bind_output(binding: Any, name: str, array: Array) -> None:
    """Write into an array; the caller keeps it alive."""
    binding.bind_output(name, *CPU, array.dtype.type, array.shape, array.ctypes.data)


class Feeds:
    """What a session wants besides weights: data and labels."""

    def __init__(self, session: onnxruntime.InferenceSession, graph: ir.Graph, own: Collection[str]) -> None:
        """`graph` is that of the session, which does not tell a scalar from a tensor of unknown rank."""
        self._declared = {value.name: value.type for value in session.get_inputs() if value.name not in own}
        self._dims = {value.name: _dims(value) for value in graph.inputs}

    @property
    def names(self) -> list[str]:
        return list(self._declared)

    def checked(self, batch: Batch) -> dict[str, Array]:
        """A batch as arrays that the session takes; an error says what is wrong with it."""
        wanted = ", ".join(map(repr, self._declared))
        if missing := [name for name in self._declared if name not in batch]:
            raise InvalidDataError(f"the batch has no {missing[0]!r}; a step takes {wanted}")
        if unknown := [name for name in batch if name not in self._declared]:
            raise InvalidDataError(f"a step takes no {unknown[0]!r}; it takes {wanted}")
        sizes: dict[str, tuple[str, int]] = {}
        found = {}
        for name, kind in self._declared.items():
            array = _cast(name, batch[name], kind)
            _check_shape(name, array, self._dims[name], sizes)
            found[name] = array
        return found


def _cast(name: str, given: Any, kind: str) -> Array:
    """As the dtype asked for, without a change of values other than rounding to another float."""
    dtype = _NUMPY.get(kind)
    if dtype is None:
        raise InvalidDataError(f"{name!r} is a {kind}, which cannot be fed in training")
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise InvalidDataError(f"{name!r} is not an array: {error}") from error
    if array.dtype == dtype:
        return np.ascontiguousarray(array).reshape(array.shape)
    if not np.can_cast(array.dtype, dtype, "same_kind"):
        raise InvalidDataError(f"{name!r} is of {array.dtype}, but a step takes {np.dtype(dtype)}")
    cast: Array = np.ascontiguousarray(array, dtype).reshape(array.shape)
    if cast.dtype.kind in "iu" and not (cast == array).all():
        raise InvalidDataError(f"{name!r} has numbers that are too large for {np.dtype(dtype)}")
    return cast


def _dims(value: ir.Value) -> list[int | str | None] | None:
    if value.shape is None:
        return None
    dims = [d if isinstance(d, int) else d.value for d in value.shape]
    return [None if d in NAMELESS else d for d in dims]


def _check_shape(
    name: str, array: Array, dims: list[int | str | None] | None, sizes: dict[str, tuple[str, int]]
) -> None:
    """By what is declared; dimensions of one name are of one size, also in other inputs, which `sizes` remembers."""
    if not array.size:
        raise InvalidDataError(f"{name!r} is of shape {list(array.shape)}: it is empty")
    if dims is None:
        return
    shown = [d if d is not None else "any" for d in dims]
    if len(dims) != array.ndim or any(isinstance(d, int) and d != n for d, n in zip(dims, array.shape, strict=True)):
        raise InvalidDataError(f"{name!r} is of shape {list(array.shape)}, but a step takes {shown}")
    for dim, size in zip(dims, array.shape, strict=True):
        if isinstance(dim, str):
            first, known = sizes.setdefault(dim, (name, size))
            if known != size:
                raise InvalidDataError(f"{dim!r} is {known} in {first!r}, but {size} in {name!r}")


_NUMPY = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(int16)": np.int16,
    "tensor(int8)": np.int8,
    "tensor(uint8)": np.uint8,
    "tensor(bool)": np.bool_,
}
