"""What each node loses in 16 bits: a graph in which every node stands beside itself, on the same numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import onnx_ir as ir

from onward.bits.candidates import Candidate
from onward.graph.names import Names
from onward.model import Model
from onward.passes.cast_around import cast_around
from onward.runners import prepare
from onward.runners.calls import Inputs

AS_IT_STANDS = "onnxruntime:unoptimized"
"""Where ONNX Runtime optimises, it leaves out roundings."""
AT_ONCE = 2000
"""How many nodes are measured in one run: ONNX Runtime takes ever longer to prepare larger graphs."""


def losses(model: Model, found: Sequence[Candidate], half: ir.DataType, samples: Sequence[Inputs]) -> dict[int, float]:
    """By the `id` of a node, how far its results are off in 16 bits, of their size; infinite where they overflow."""
    lost: dict[int, float] = {}
    for first in range(0, len(found), AT_ONCE):
        part = found[first : first + AT_ONCE]
        probe = _Probe(model, half)
        for number, one in enumerate(part):
            probe.twin(number, one)
            lost[id(one.node)] = 0.0
        if not probe.model.graph.outputs:  # none of these gives floats
            continue
        run = prepare(AS_IT_STANDS, replace(model, ir=probe.model, path=None, training_info=[]))
        for inputs in samples:
            measured = run(inputs)
            for number, one in enumerate(part):
                found_now = max((_ratio(*pair) for pair in probe.pairs(number, measured)), default=0.0)
                lost[id(one.node)] = max(lost[id(one.node)], found_now)
    return lost


def _ratio(difference: float, size: float) -> float:
    """NaN and infinities of the original say nothing of 16 bits."""
    if not math.isfinite(size):
        return 0.0
    if not math.isfinite(difference):
        return math.inf
    return math.sqrt(difference / size) if size > 0 else 0.0


def rounding(model: Model, half: ir.DataType, found: Sequence[Candidate]) -> Model:
    """A copy that computes in 32 bits what `found` computes in 16, and holds every result in 16.

    So it tells what 16 bits do wherever there are kernels for them, and runs where there are none.
    """
    clone = model.ir.clone()
    twins = dict(zip(model.ir.graph, clone.graph, strict=True))
    wanted = [(replace(kind, node=twins[one.node]), ir.DataType.FLOAT) for one in found for kind in one.typed]
    cast_around(clone, wanted)
    names = Names(clone)
    for node in list(clone.graph):
        if node.op_type == "Cast" and node.outputs[0].dtype == half:
            value = node.outputs[0]
            held = ir.Node("", "Identity", [value], name=names.node(f"{value.name}_held"))
            held.outputs[0].name, held.outputs[0].type = names.value(f"{value.name}_held"), value.type
            for use in [use for use in value.uses() if use.node is not held]:
                use.node.replace_input_with(use.idx, held.outputs[0])
            clone.graph.insert_after(node, held)
    return replace(model, ir=clone, path=None)


class _Probe:
    """A copy of a model whose outputs are, for each node measured, the squares of its difference and of its result."""

    def __init__(self, model: Model, half: ir.DataType) -> None:
        self.model = model.ir.clone()
        self._half = half
        self._names = Names(self.model)
        self._twins = dict(zip(model.ir.graph, self.model.graph, strict=True))
        self._cast: dict[ir.Value, ir.Value] = {}
        self._outputs: dict[int, list[tuple[str, str]]] = {}
        self.model.graph.outputs.clear()

    def twin(self, number: int, one: Candidate) -> None:
        node = self._twins[one.node]
        inputs = list(node.inputs)
        for kind in one.typed:
            for place in kind.inputs:
                value = inputs[place]
                assert value is not None
                inputs[place] = self._narrow(value)
        twin = ir.Node(
            node.domain,
            node.op_type,
            inputs,
            list(node.attributes.values()),
            num_outputs=len(node.outputs),
            version=node.version,
            name=self._names.node(f"{node.name}_twin"),
        )
        for output, old in zip(twin.outputs, node.outputs, strict=True):
            output.name = self._names.value(f"{old.name}_twin") if old.name else ""
        self.model.graph.append(twin)
        places = [place for kind in one.typed for place in kind.outputs if node.outputs[place].name]
        self._outputs[number] = [self._measured(node.outputs[place], twin.outputs[place]) for place in places]

    def pairs(self, number: int, measured: Mapping[str, object]) -> Iterator[tuple[float, float]]:
        for difference, size in self._outputs[number]:
            yield float(measured[difference]), float(measured[size])  # type: ignore[arg-type]

    def _narrow(self, value: ir.Value) -> ir.Value:
        if value not in self._cast:
            self._cast[value] = self._held(value)
        return self._cast[value]

    def _measured(self, value: ir.Value, twin: ir.Value) -> tuple[str, str]:
        sums = [self._squares(self._add("Sub", [value, self._held(twin)])), self._squares(value)]
        self.model.graph.outputs.extend(sums)
        return sums[0].name or "", sums[1].name or ""

    def _held(self, value: ir.Value) -> ir.Value:
        """In 32 bits, after it was held in 16."""
        there = self._add("Cast", [value], to=int(self._half))
        return self._add("Cast", [self._add("Identity", [there])], to=int(ir.DataType.FLOAT))

    def _squares(self, value: ir.Value) -> ir.Value:
        made = self._add("ReduceSumSquare", [value], keepdims=0)
        made.type, made.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape(())
        return made

    def _add(self, op_type: str, inputs: list[ir.Value], **numbers: int) -> ir.Value:
        attributes = [ir.AttrInt64(name, number) for name, number in numbers.items()]
        node = ir.Node("", op_type, inputs, attributes, name=self._names.node(f"probe/{op_type}"))
        node.outputs[0].name = self._names.value(f"probe/{op_type}")
        self.model.graph.append(node)
        return node.outputs[0]
