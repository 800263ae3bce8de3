"""Reads a loss off a training graph: which of the known losses, with which options, was written there.

Each loss is written once more with options that stand out; where the graph has the same nodes, its constants at those
places are the options. What was read is written again and has to be equal, so that a wrong guess is never given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.build import Builder, Tensor
from onward.training.export.state import NotInWords
from onward.training.recipe.losses import (
    L1,
    BinaryCrossEntropy,
    CrossEntropy,
    Dims,
    Huber,
    KLDivergence,
    Loss,
    MeanSquaredError,
    NegativeLogLikelihood,
    Reduction,
    Term,
)

Array = np.ndarray[Any, np.dtype[Any]]
NUMBER = 0.37109375
"""An option of a loss that no one chooses."""
INDEX = -7919
REDUCTIONS: tuple[Reduction, ...] = ("mean", "sum")


class UnknownLoss(NotInWords):
    """A loss that is none of Onward's."""


@dataclass(frozen=True)
class Pattern:
    """A loss with options that stand out, and the names of those options."""

    loss: Any
    probes: dict[str, Any] = field(default_factory=dict)


def patterns(classes: int) -> Iterator[Pattern]:
    """Every form that a known loss can have."""
    weights = [None, tuple(NUMBER + i for i in range(classes))]
    for reduction in REDUCTIONS:
        for kind in (MeanSquaredError, L1, BinaryCrossEntropy):
            yield Pattern(kind(reduction=reduction))
        yield Pattern(BinaryCrossEntropy(NUMBER, reduction), {"pos_weight": NUMBER})
        yield Pattern(Huber(NUMBER, reduction), {"delta": NUMBER})
        for weight, ignored in product(weights, (None, INDEX)):
            given = (("weight", weight), ("ignore_index", ignored))
            probes: dict[str, Any] = {key: value for key, value in given if value is not None}
            yield Pattern(NegativeLogLikelihood(**probes, reduction=reduction), probes)
            for smoothing, soft in product((0.0, NUMBER), (False, True)):
                more = probes | ({"label_smoothing": smoothing} if smoothing else {})
                if not (soft and ignored is not None):
                    yield Pattern(CrossEntropy(**more, soft=soft, reduction=reduction), more)
    yield Pattern(KLDivergence())


def recognise(loss: ir.Value, outputs: Mapping[str, ir.Value], framework: str = "PyTorch") -> list[Term]:
    """The terms of a loss, each of one of the `outputs` by name; refuses what is none of the known losses."""
    node = loss.producer()
    if node is not None and node.op_type == "Identity" and node.inputs[0] is not None:
        return recognise(node.inputs[0], outputs, framework)
    for name, output in outputs.items():
        if (found := _known(loss, output)) is not None:
            return [Term(found, output=name)]
    if node is not None and node.op_type in ("Add", "Sum"):
        return [term for part in node.inputs if part is not None for term in recognise(part, outputs, framework)]
    if node is not None and node.op_type == "Mul":
        part, factor = node.inputs
        weight = None if factor is None else _constant(factor)
        if part is not None and weight is not None and weight.size == 1:
            return [replace(term, weight=term.weight * _short(weight)) for term in recognise(part, outputs, framework)]
    where = "" if node is None else f" (it ends in {node.op_type} {node.name!r})"
    raise UnknownLoss(f"Onward cannot write this loss in {framework}{where}")


def _known(loss: ir.Value, output: ir.Value) -> Loss | None:
    weights = [array.size for array in _constants_of(loss, output) if array.size > 1]
    for pattern in patterns(max(weights, default=1)):
        match = _matched(pattern.loss, loss, output)
        if match is None:
            continue
        options = {name: match.option(probe) for name, probe in pattern.probes.items()}
        if any(value is None for value in options.values()):
            continue
        made: Loss = replace(pattern.loss, **options, labels=match.labels)
        again = _matched(made, loss, output)
        if again is not None and all(_equal(a, b) for a, b in again.constants):
            return made
    return None


@dataclass
class Match:
    """What stands in the graph where a pattern has its constants and labels."""

    labels: str = ""
    constants: list[tuple[Array, Array]] = field(default_factory=list)

    def option(self, probe: Any) -> Any:
        """What the graph has in the place of a probe."""
        for ours, theirs in self.constants:
            if (ours.dtype.kind == "i") is not isinstance(probe, int):
                continue
            if _equal(np.asarray(probe, ours.dtype).reshape(-1), ours.reshape(-1)):
                if isinstance(probe, tuple):
                    return tuple(_short(x) for x in theirs.reshape(-1))
                return int(theirs.item()) if isinstance(probe, int) else _short(theirs) if theirs.size == 1 else None
        return None


def _matched(loss: Any, value: ir.Value, output: ir.Value) -> Match | None:
    """Write a loss of a value like `output`, and compare it with `value` node by node."""
    graph = ir.Graph([], [], nodes=[], name="pattern", opset_imports={"": 21})
    op = Builder(ir.Model(graph, ir_version=10))
    prediction = ir.Value(name="prediction", type=output.type, shape=output.shape)
    inputs: dict[ir.Value, str] = {prediction: "prediction"}

    def target(name: str, dtype: ir.DataType, dims: Dims | None) -> Tensor:
        made = ir.Value(name=name, type=ir.TensorType(dtype), shape=None if dims is None else ir.Shape(dims))
        inputs[made] = "labels"
        return op.tensor(made)

    try:
        written = loss.build(op, op.tensor(prediction), target).value
    except Exception:  # a loss that the output has no shape for
        return None
    match = Match()
    return match if _same(written, value, inputs, output, match, set()) else None


def _same(
    ours: ir.Value,
    theirs: ir.Value,
    inputs: dict[ir.Value, str],
    output: ir.Value,
    match: Match,
    seen: set[tuple[ir.Value, ir.Value]],
) -> bool:
    if (ours, theirs) in seen:
        return True
    seen.add((ours, theirs))
    if ours in inputs:
        if inputs[ours] == "prediction":
            return theirs is output
        match.labels = match.labels or theirs.name or ""
        return theirs.is_graph_input() and theirs.name == match.labels and theirs.dtype == ours.dtype
    if (own := _constant(ours)) is not None:
        other = _constant(theirs)
        if other is None or other.dtype != own.dtype:
            return False
        match.constants.append((own, other))
        return True
    a, b = ours.producer(), theirs.producer()
    if a is None or b is None or a.op_type != b.op_type or a.domain != (b.domain or "").replace("ai.onnx", ""):
        return False
    if len(a.inputs) != len(b.inputs) or a.outputs.index(ours) != b.outputs.index(theirs):
        return False
    if _attributes(a) != _attributes(b):
        return False
    pairs = zip(a.inputs, b.inputs, strict=True)
    return all(x is y if x is None or y is None else _same(x, y, inputs, output, match, seen) for x, y in pairs)


def _attributes(node: ir.Node) -> dict[str, Any]:
    """But for zeros, which are what those that are not written are."""
    return {name: found.value for name, found in node.attributes.items() if found.value != 0}


def _constants_of(value: ir.Value, stop: ir.Value) -> Iterator[Array]:
    """The float constants that a value is computed from, after `stop`."""
    waiting, seen = [value], {stop}
    while waiting:
        here = waiting.pop()
        if here in seen:
            continue
        seen.add(here)
        found = _constant(here)
        if found is not None and found.dtype.kind == "f":
            yield found
        node = here.producer()
        waiting += [] if node is None else [x for x in node.inputs if x is not None]


def _constant(value: ir.Value) -> Array | None:
    found = ir.convenience.get_const_tensor(value)
    return None if found is None else found.numpy()


def _equal(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and bool((a == b).all())


def _short(number: Array) -> float:
    """The shortest decimal that is this number in its dtype."""
    return float(str(np.asarray(number).reshape(()).item() if number.dtype == np.float64 else number.reshape(())[()]))
