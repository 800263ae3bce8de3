"""A model whose floats have 16 bits, but where that loses too much: measured on data, node by node."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import onnx
import onnx_ir as ir

from onward.bits.chosen import check_patterns, is_named
from onward.bits.probe import AS_IT_STANDS, losses, rounding
from onward.bits.search import ranked_by
from onward.errors import OnwardError, UnsupportedError
from onward.graph.infer import infer
from onward.graph.replace import is_op
from onward.graph.unused import remove_unused
from onward.graph.walk import inner_graphs
from onward.model import Model
from onward.passes.cast_around import Typed, cast_around, typed
from onward.passes.narrow_ends import narrow_ends
from onward.registry import cached_by_schema
from onward.runners import prepare
from onward.runners.calls import Inputs, Outputs
from onward.verification.compare import Error, compare
from onward.verification.metrics import epsilon
from onward.verification.noise.spread import measure_noise
from onward.verification.results import OutputResult

HALVES = {"float16": ir.DataType.FLOAT16, "bfloat16": ir.DataType.BFLOAT16}
SPELLED = {ir.DataType.FLOAT16: "tensor(float16)", ir.DataType.BFLOAT16: "tensor(bfloat16)"}

LOST = 0.02
"""A node whose own result is off by more than this, beside itself in 32 bits on the same numbers, stays as it is."""
SETS = 2
"""How many sets of inputs are run."""
GROUPS = 16
"""Into how many parts a model is divided, to see which of them move the results most."""

# fmt: off
KEPT = {
    "Cast", "Constant", "ConstantOfShape", "RandomNormal", "RandomUniform", "RandomNormalLike",
    "RandomUniformLike", "Bernoulli", "Multinomial", "EyeLike", "Range", "QuantizeLinear", "DequantizeLinear",
    "DynamicQuantizeLinear", "QLinearConv", "QLinearMatMul", "HannWindow", "HammingWindow", "BlackmanWindow",
    "MelWeightMatrix", "Optional", "OptionalGetElement", "OptionalHasElement", "NonMaxSuppression", "Upsample",
}
# fmt: on
"""Ops whose floats say what dtype comes out, how large something is, or what an integer stands for."""
SHAPES = ("Shape", "Size")
"""Ops that read no number."""
SIZES = {"Resize": (1, 2), "Pad": (), "OneHot": ()}
"""Inputs of other ops that are such floats."""


@dataclass(frozen=True)
class Kept:
    """A node that stays in 32 bits."""

    node: str
    op: str
    why: str

    def __str__(self) -> str:
        return f"{self.node} ({self.op}): {self.why}"


@dataclass(frozen=True)
class Narrowed:
    """The result, and what there is to know of it."""

    model: Model
    kept: tuple[Kept, ...]
    nodes: int
    """That compute in 16 bits."""
    outputs: tuple[OutputResult, ...]
    """Each output on each set of samples, beside the model in 32 bits. Of an output, 16 bits may be off by as much as
    the model's own noise, which is as much larger as their rounding is."""


def narrowed(
    model: Model,
    to: str,
    samples: Sequence[Inputs],
    *,
    keep: Sequence[str] = (),
    ends: bool = False,
    told: Callable[[str], None] = lambda words: None,
) -> Narrowed:
    """`model` with floats `to` float16 or bfloat16; inputs and outputs too with `ends`, else these are as they are.

    `keep` has patterns of names of nodes, and op types, that stay. `samples` are what losses are measured on.
    """
    if to not in HALVES:
        raise OnwardError(f"there is no {to!r} to narrow floats to; there are {', '.join(HALVES)}")
    if not samples:
        raise OnwardError("there are no inputs to measure on: give some")
    half, source = HALVES[to], model.copy()
    infer(source.ir)
    found = list(candidates(source.ir, half))
    if not found:
        raise UnsupportedError(f"no node of this model computes in 32 bits and can do so in {to}: nothing would change")
    check_patterns(keep, [one.node for one in found])
    kept = {id(one.node): _kept(one.node, "as asked") for one in found if is_named(one.node, keep)}
    told("measuring each node in 16 bits")
    lost = losses(source, [one for one in found if id(one.node) not in kept], half, samples[:SETS])
    for one in found:
        if id(one.node) not in kept and (why := _why(lost.get(id(one.node), 0.0), to)):
            kept[id(one.node)] = _kept(one.node, why)
    made = _within(source, half, found, kept, lost, samples[:SETS], told)
    if ends:
        narrow_ends(made.model.ir, half)
    return made


@dataclass(frozen=True)
class Candidate:
    """A node that can compute in 16 bits, with what of it would be."""

    node: ir.Node
    typed: tuple[Typed, ...]


def candidates(model: ir.Model, half: ir.DataType, now: ir.DataType = ir.DataType.FLOAT) -> Iterator[Candidate]:
    """Those of the main graph that are of a dtype now; what bodies compute stays, since it cannot be measured."""
    for node in model.graph:
        schema = _schema(node.domain, node.op_type, node.version or model.opset_imports.get(node.domain, 0))
        if schema is None or node.op_type in KEPT or node.op_type in SHAPES or any(inner_graphs(node)):
            continue
        if is_op(node, "Transpose") and any(is_op(use.node, "MatMul") for use in node.outputs[0].uses()):
            continue  # ONNX Runtime 1.31 ends its process on some of them in float16
        variables = [one for name, one in typed(node, schema).items() if _takes(schema, name, half)]
        sizes = SIZES.get(node.op_type, ())
        floats = tuple(
            replace(one, inputs=tuple(i for i in one.inputs if i not in sizes)) for one in variables if one.dtype == now
        )
        if any(one.inputs or one.outputs for one in floats):
            yield Candidate(node, floats)


@cached_by_schema
def _schema(domain: str, op_type: str, version: int) -> onnx.defs.OpSchema | None:
    if domain not in ("", "ai.onnx"):
        return None
    try:
        return onnx.defs.get_schema(op_type, version, "")
    except onnx.defs.SchemaError:
        return None


def _takes(schema: onnx.defs.OpSchema, variable: str, half: ir.DataType) -> bool:
    allowed = next(c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == variable)
    return SPELLED[half] in allowed


def _within(
    source: Model,
    half: ir.DataType,
    found: Sequence[Candidate],
    kept: dict[int, Kept],
    lost: Mapping[int, float],
    samples: Sequence[Inputs],
    told: Callable[[str], None],
) -> Narrowed:
    """Keep more of the nodes that lose most in 32 bits, until the whole is within what 16 bits allow."""
    run = prepare("onnxruntime", source)
    expected = [run(inputs) for inputs in samples]
    allowed = _allowed(source, half, list(zip(samples, expected, strict=True)))

    def tried(chosen: Sequence[Candidate]) -> tuple[Model, tuple[OutputResult, ...]]:
        made = _made(source, half, chosen)
        return made, _compared(rounding(made, half, list(candidates(made.ir, half, half))), samples, expected, allowed)

    left = [one for one in found if id(one.node) not in kept]
    ranked, failed, taken, step = left, -1, 0, max(1, len(left) // 64)
    good: Narrowed | None = None
    while taken < len(ranked):
        told(f"checking {len(ranked) - taken} nodes in 16 bits")
        made, results = tried(ranked[taken:])
        if all(result.status == "same" for result in results):
            every = [*kept.values(), *(_kept(one.node, _share(lost[id(one.node)])) for one in ranked[:taken])]
            good = Narrowed(made, tuple(every), len(ranked) - taken, results)
            if taken - failed <= 1:
                return good
            taken = (failed + taken) // 2
            continue
        if not taken:
            told("measuring groups of nodes in 16 bits")
            ranked = _ranked(left, lost, lambda group: max(result.closeness for result in tried(group)[1]))
        failed = taken
        if good is not None:
            high = len(ranked) - good.nodes
            if high - failed <= 1:
                return good
            taken = (failed + high) // 2
        else:
            taken, step = taken + step, 2 * step
    raise UnsupportedError(
        "16 bits are too few for this model: with any of its nodes in them, the result is further off than"
        " rounding explains"
    )


def _ranked(
    found: Sequence[Candidate], lost: Mapping[int, float], effect: Callable[[Sequence[Candidate]], float]
) -> list[Candidate]:
    """Those that move the results most first, by groups of neighbours, and in a group those that lose most."""
    size = -(-len(found) // GROUPS)
    groups = [found[first : first + size] for first in range(0, len(found), size)]
    effects = {number: effect(group) for number, group in enumerate(groups)}
    order = ranked_by(effects, effects.__getitem__)
    return [one for number in order for one in ranked_by(groups[number], lambda one: lost.get(id(one.node), 0.0))]


def _made(source: Model, half: ir.DataType, chosen: Sequence[Candidate]) -> Model:
    copy = source.copy()
    clone = copy.ir
    twins = dict(zip(source.ir.graph, clone.graph, strict=True))
    order = {node: place for place, node in enumerate(source.ir.graph)}
    ordered = sorted(chosen, key=lambda one: order[one.node])  # what is made in 16 bits is read so by who comes after
    wanted = [(replace(kind, node=twins[one.node]), half) for one in ordered for kind in one.typed]
    _take_from_inputs(clone.graph)
    reads = {(kind.node, place) for kind, _ in wanted for place in kind.inputs}
    stored = {value for value in _constants(clone) if _is_read_by(value, reads)}  # else it would be there twice
    for node in clone.graph:
        if node.op_type in SHAPES and node.inputs[0] in stored:
            wanted.append((Typed(node, ir.DataType.FLOAT, (0,), ()), half))
    cast_around(clone, wanted, store=stored.__contains__)
    _read_shapes(clone)
    remove_unused(clone)
    return replace(copy, path=None)


def _take_from_inputs(graph: ir.Graph) -> None:
    """Weights that a file lists as inputs, as old exporters did, are weights alone: callers would give 32 bits."""
    graph.inputs[:] = [v for v in graph.inputs if not (v.is_initializer() and v.dtype == ir.DataType.FLOAT)]


def _is_read_by(value: ir.Value, reads: Collection[tuple[ir.Node, int]]) -> bool:
    """Whether all that reads the numbers of a value is among these."""
    uses = [(use.node, use.idx) for use in value.uses() if use.node.op_type not in SHAPES]
    return value.dtype == ir.DataType.FLOAT and bool(uses) and all(use in reads for use in uses)


def _constants(model: ir.Model) -> Iterator[ir.Value]:
    yield from model.graph.initializers.values()
    for node in model.graph:
        if node.op_type == "Constant":
            yield node.outputs[0]


def _read_shapes(model: ir.Model) -> None:
    """A value has the same shape before and after a cast."""
    for node in model.graph:
        cast = node.inputs[0].producer() if node.op_type in SHAPES and node.inputs[0] is not None else None
        if cast is not None and cast.op_type == "Cast":
            node.replace_input_with(0, cast.inputs[0])


def _compared(
    made: Model, samples: Sequence[Inputs], expected: Sequence[Outputs], allowed: Mapping[str, Error]
) -> tuple[OutputResult, ...]:
    run = prepare(AS_IT_STANDS, made)
    pairs = zip(samples, expected, strict=True)
    return tuple(result for inputs, outputs in pairs for result in compare(outputs, run(inputs), allowed))


def _allowed(source: Model, half: ir.DataType, sets: list[tuple[Inputs, Outputs]]) -> Mapping[str, Error]:
    """The noise of the model in 32 bits, scaled by how much coarser 16 bits are."""
    noise = measure_noise(source, sets)
    coarser = epsilon(half.numpy()) / epsilon(ir.DataType.FLOAT.numpy())
    least = epsilon(half.numpy())
    return {
        name: replace(
            noise[name],
            worst=max(_finite(noise[name].worst) * coarser, least),
            overall=max(_finite(noise[name].overall) * coarser, least),
            how=f"rounding to {half.name.lower()}",
        )
        for name in noise
    }


def _finite(number: float) -> float:
    return number if math.isfinite(number) else 0.0


def _why(loss: float, to: str) -> str:
    if not math.isfinite(loss):
        return f"its numbers do not fit into {to}"
    return _share(loss) if loss > LOST else ""


def _share(loss: float) -> str:
    return f"it would be off by {100 * loss:.2g} %"


def _kept(node: ir.Node, why: str) -> Kept:
    return Kept(node.name or (node.outputs[0].name if node.outputs else "") or "a node", node.op_type, why)
