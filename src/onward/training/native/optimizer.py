"""The step of an optimizer as one loop over weights, gradients and state, printed from its ONNX graph."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.training.native.compiler import loaded
from onward.training.native.expressions import PRELUDE, UnprintableError, constant, ctype, expression, literal
from onward.training.recipe.described import is_stored
from onward.training.recipe.groups import Rule
from onward.training.recipe.optimizers import depends_on_shape
from onward.training.runtime.buffers import SharedBuffer
from onward.training.step_graphs import LEARNING_RATE, STEP, updates
from onward.training.trainable import Trainable

Array = np.ndarray[Any, np.dtype[Any]]
SHARED = 1 << 15
"""Elements that are worth a thread."""
BLOCK = 1 << 16
"""Elements that are added up together: sums do not depend on the number of threads."""
SQUARES = "squares"
"""The sum of the squares of all gradients, where they are clipped by their norm."""


class Kernel:
    """Makes the steps of a trainable model's optimizer in place."""

    def __init__(
        self,
        trainable: Trainable,
        weights: SharedBuffer,
        gradients: SharedBuffer,
        state: Mapping[str, SharedBuffer],
        threads: int | None,
    ) -> None:
        """Raises `UnprintableError` where the optimizer does not go element by element, or does not compile."""
        kinds, graphs = step_graphs(trainable, weights.buffer.dtype)
        flats = {"w": weights, "w.grad": gradients, **{f"w.{slot}": flat for slot, flat in state.items()}}
        bodies = [printed(graph, f"step{i}", list(flats)) for i, graph in enumerate(graphs)]
        made = loaded("\n".join([PRELUDE, _SUM.format(kind=_ctype(weights.buffer.dtype)), *bodies]))
        if made is None:
            raise UnprintableError("it does not compile")
        self._functions = [getattr(made, f"step{i}") for i in range(len(graphs))]
        for function in self._functions:
            function.argtypes = [ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
            function.restype = None
        self._sum = made.sum_of_squares
        self._sum.argtypes = [ctypes.c_int64, ctypes.c_void_p]
        self._sum.restype = ctypes.c_double
        self._buffers = [flat.buffer for flat in flats.values()]
        self._arrays = (ctypes.c_void_p * len(flats))(*(buffer.ctypes.data for buffer in self._buffers))
        self._scalars: list[Array] = [np.zeros((), np.float32), np.zeros((), np.int64), np.zeros((), np.float32)]
        self._given = (ctypes.c_void_p * len(self._scalars))(*(scalar.ctypes.data for scalar in self._scalars))
        self._clips = trainable.clip_norm is not None
        self._ranges = _ranges(weights, kinds)
        self._threads = threads or os.cpu_count() or 1

    def __call__(self, lr: float, step: int) -> None:
        rate, count, squares = self._scalars
        rate[...], count[...] = lr, step
        size = len(self._buffers[0])
        parts = max(1, min(self._threads, size // SHARED))
        if self._clips:
            squares[...] = sum(_shared(self._squares, -(-size // BLOCK), parts, self._threads))
        _shared(self._piece, size, parts, self._threads)

    def _piece(self, begin: int, end: int) -> None:
        for kind, first, last in self._ranges:
            if max(first, begin) < min(last, end):
                self._functions[kind](max(first, begin), min(last, end), self._given, self._arrays)

    def _squares(self, begin: int, end: int) -> list[float]:
        gradients = self._buffers[1]
        blocks = [gradients[i * BLOCK : (i + 1) * BLOCK] for i in range(begin, end)]
        return [self._sum(block.size, block.ctypes.data) for block in blocks]


def _ctype(dtype: np.dtype[Any]) -> str:
    return ctype(ir.Value(name="w", type=ir.TensorType(ir.DataType.from_numpy(dtype))))


def _ranges(weights: SharedBuffer, kinds: Sequence[int]) -> list[tuple[int, int, int]]:
    """Which kind of step each part of the buffer is for: (kind, begin, end)."""
    found: list[tuple[int, int, int]] = []
    ends = [*list(weights.offsets.values())[1:], len(weights.buffer)]
    for kind, begin, end in zip(kinds, weights.offsets.values(), ends, strict=True):
        if found and found[-1][0] == kind:
            found[-1] = kind, found[-1][1], end
        else:
            found.append((kind, begin, end))
    return found


def _shared(work: Callable[[int, int], Any], size: int, parts: int, threads: int) -> list[Any]:
    """Work on all of a range, in parts at the same time; gives the elements of what each gives, in order."""
    line = -(-size // parts)
    if line > BLOCK:
        line = -(-line // 64) * 64
    limits = [(begin, min(begin + line, size)) for begin in range(0, size, line)]
    waiting: list[Future[Any]] = [_pool(threads).submit(work, *limit) for limit in limits[1:]]
    found = [work(*limits[0]), *(future.result() for future in waiting)]
    return [element for part in found if part is not None for element in part]


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    """A call into C lets other threads of Python go on."""
    return ThreadPoolExecutor(threads, thread_name_prefix="onward-update")


def step_graphs(trainable: Trainable, dtype: np.dtype[Any]) -> tuple[list[int], list[ir.Graph]]:
    """The kinds of steps that there are, and of each parameter which one it makes."""
    if is_stored(trainable.optimizer) or depends_on_shape(trainable.optimizer):
        raise UnprintableError("the step of one weight does not say that of another")
    default = Rule(1.0, trainable.optimizer.weight_decay)
    rules = [trainable.rules.get(name, default) for name in trainable.parameters]
    kinds = list(dict.fromkeys(rules))
    return [kinds.index(rule) for rule in rules], [_graph(trainable, rule, dtype) for rule in kinds]


def _graph(trainable: Trainable, rule: Rule, dtype: np.dtype[Any]) -> ir.Graph:
    """A step of a parameter, with the sum of squared gradients given where gradients are clipped by it."""
    piece = {"w": np.zeros(2, dtype)}
    clip = trainable.clip_norm, trainable.clip_epsilon
    graph = updates(piece, trainable.optimizer, {"w": rule}, *clip)[0].graph
    if trainable.clip_norm is not None:
        own = next(value for value in graph.inputs if value.name == "w.grad")
        total = next(node for node, _ in own.uses() if node.op_type == "ReduceSumSquare")
        given = ir.Value(name=SQUARES, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([]))
        result = total.outputs[0]
        for node, _ in list(result.uses()):
            if node.op_type == "Cast":  # to single precision, which the sum given has
                result = node.outputs[0]
        graph.inputs.append(given)
        result.replace_all_uses_with(given)
    return graph


def printed(graph: ir.Graph, name: str, arrays: Sequence[str]) -> str:
    """A C function of the graph of a step: scalars first, then a loop over elements, each read before it is written."""
    names: dict[ir.Value, str] = {}
    once: list[str] = []
    reads: list[str] = []
    every: list[str] = []
    scalars: set[ir.Value] = set()
    for value in graph.inputs:
        label = value.name or ""
        names[value] = f"v{len(names)}"
        kind = ctype(value)
        if label in arrays:
            index = arrays.index(label)
            once.append(f"{kind} *restrict a{index} = arrays[{index}];")
            reads.append(f"const {kind} {names[value]} = a{index}[i];")
        else:
            slot = (LEARNING_RATE, STEP, SQUARES).index(label)
            scalars.add(value)
            once.append(f"const {kind} {names[value]} = *(const {kind} *)scalars[{slot}];")
    for node in needed(graph):
        given = []
        for read in node.inputs:
            if read is not None and read not in names:
                number = constant(read)
                if number is None:
                    raise UnprintableError(f"{read.name} is no number")
                names[read] = literal(number, ctype(read))
                scalars.add(read)
            given.append("" if read is None else names[read])
        if node.op_type == "Constant":
            continue
        result = node.outputs[0]
        names[result] = f"v{len(names)}"
        fixed = all(read is None or read in scalars for read in node.inputs)
        if fixed:
            scalars.add(result)
        line = f"const {ctype(result)} {names[result]} = {expression(node, given)};"
        (once if fixed else every).append(line)
    writes = [f"a{arrays.index((v.name or '').removesuffix('.next'))}[i] = {names[v]};" for v in graph.outputs]
    loop = ["for (int64_t i = begin; i < end; i++) {", *reads, *every, *writes, "}"]
    head = f"void {name}(int64_t begin, int64_t end, const void *const *scalars, void *const *arrays)"
    return "\n".join([f"{head} {{", *once, *loop, "}"])


def needed(graph: ir.Graph) -> list[ir.Node]:
    """The nodes that outputs are computed from, in order."""
    found: set[ir.Node] = set()
    waiting = [value.producer() for value in graph.outputs]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [value.producer() for value in node.inputs if value is not None]
    return [node for node in graph if node in found]


_SUM = """\
double sum_of_squares(int64_t count, const {kind} *x) {{
  double lanes[16] = {{0}}, total = 0;
  int64_t i = 0;
  for (; i + 16 <= count; i += 16)
    for (int j = 0; j < 16; j++) lanes[j] += (double)x[i + j] * (double)x[i + j];
  for (; i < count; i++) total += (double)x[i] * (double)x[i];
  for (int j = 0; j < 16; j++) total += lanes[j];
  return total;
}}
"""
