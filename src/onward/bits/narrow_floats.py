"""A model whose floats have 16 bits, but where that loses too much: measured on data, node by node."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from onward.advice.options import option
from onward.bits.candidates import HALVES, SHAPES, Candidate, candidates
from onward.bits.chosen import check_patterns, is_named
from onward.bits.judged import Judge, Judgement, Trial
from onward.bits.probe import losses
from onward.bits.stored import Storage, reading
from onward.bits.which_stay import Search
from onward.errors import OnwardError, UnsupportedError
from onward.graph.infer import infer
from onward.graph.unused import remove_unused
from onward.graph.walk import all_graphs, all_nodes
from onward.model import Model
from onward.passes.cast_around import cast_around
from onward.passes.narrow_ends import narrow_ends
from onward.runners import prepare
from onward.runners.calls import Inputs
from onward.verification.compare import is_drowned
from onward.verification.results import OutputResult

LOST = 0.02
"""A node whose own result is off by more than this, beside itself in 32 bits on the same numbers, stays as it is."""
SETS = 2
"""How many sets of inputs are run."""
ASKED = "as asked"


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
    their rounding explains."""
    elsewhere: tuple[OutputResult, ...] = ()
    """Outputs that differ because near races went another way, as of the numbers of classes; what these are decided by
    is among `outputs`."""


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
    described = {value.name for value in _results(source.ir) if value.type is not None}
    infer(source.ir)
    found = list(candidates(source.ir, half))
    nodes = list(dict.fromkeys([*(one.node for one in found), *reading(source.ir)]))
    check_patterns(keep, nodes)
    kept = {id(node): _kept(node, ASKED) for node in nodes if is_named(node, keep)}
    narrower = _Narrower(source, half, frozenset(node for node in nodes if id(node) in kept))
    if not found and not narrower.changes_weights():
        raise UnsupportedError(f"no node of this model computes in 32 bits and can do so in {to}: nothing would change")
    told("measuring each node in 16 bits")
    lost = losses(source, [one for one in found if id(one.node) not in kept], half, samples[:SETS])
    for one in found:
        if id(one.node) not in kept and (why := _why(lost.get(id(one.node), 0.0), to)):
            kept[id(one.node)] = _kept(one.node, why)
    for one in _not_run(narrower, [one for one in found if id(one.node) not in kept], samples[0]):
        kept[id(one.node)] = _kept(one.node, f"ONNX Runtime does not run it in {to}")
    made = _within(narrower, found, kept, lost, Judge(source, half, samples[:SETS]), told)
    if ends:
        narrow_ends(made.model.ir, half)
    for value in _results(made.model.ir):
        if value.name not in described and not value.is_graph_output():
            value.type = value.shape = None  # found out on the way, and a good part of a small file
    return made


def _results(model: ir.Model) -> Iterator[ir.Value]:
    return (value for graph in all_graphs(model.graph) for node in graph for value in node.outputs)


@dataclass(frozen=True)
class _Narrower:
    """Puts a model into 16 bits, in as many ways as are tried."""

    source: Model
    half: ir.DataType
    asked: frozenset[ir.Node]
    """What stays with its weights."""
    storage: Storage = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "storage", Storage(self.half))

    def made(self, base: Model, chosen: Sequence[Candidate], spared: bool) -> Model:
        """A copy of `base`, which has the nodes of the source, that computes `chosen` in 16 bits.

        Where `spared`, weights of other nodes are stored in 16 bits as well.
        """
        copy = base.copy()
        clone = copy.ir
        twins = dict(zip(all_nodes(self.source.ir.graph), all_nodes(clone.graph), strict=True))
        order = {node: place for place, node in enumerate(self.source.ir.graph)}
        ordered = sorted(chosen, key=lambda one: order[one.node])  # who comes after reads what is made in 16 bits
        wanted = [replace(kind, node=twins[one.node]) for one in ordered for kind in one.typed]
        asked = {twins[node] for node in self.asked}
        _take_from_inputs(clone.graph)
        reads = {(kind.node, place) for kind in wanted for place in kind.inputs}
        self.storage.store(clone, reads, (lambda node: node in asked) if spared else (lambda node: True))
        _read_shapes(clone)
        cast_around(clone, ((kind, self.half) for kind in wanted))
        _read_shapes(clone)
        remove_unused(clone)
        return replace(copy, path=None)

    def changes_weights(self) -> bool:
        return self.made(self.source, [], True).nbytes < self.source.nbytes


def _not_run(narrower: _Narrower, chosen: Sequence[Candidate], inputs: Inputs) -> list[Candidate]:
    """Nodes whose ops ONNX Runtime refuses in float16 only as it computes; bfloat16 it hardly runs at all."""

    def runs(some: Sequence[Candidate]) -> bool:
        try:
            prepare("onnxruntime", narrower.made(narrower.source, some, True))(inputs)
        except OnwardError:
            return False
        return True

    if narrower.half != ir.DataType.FLOAT16 or runs(chosen):
        return []
    by_op: dict[str, list[Candidate]] = {}
    for one in chosen:
        by_op.setdefault(one.node.op_type, []).append(one)
    return [one for some in by_op.values() if not runs(some) for one in some]


def _within(
    narrower: _Narrower,
    found: Sequence[Candidate],
    kept: dict[int, Kept],
    lost: Mapping[int, float],
    judge: Judge,
    told: Callable[[str], None],
) -> Narrowed:
    """Keep as many more nodes in 32 bits as it takes for the whole to be within what 16 bits allow.

    Their weights are stored in 16 bits all the same, unless even that is too much.
    """
    left = [one for one in found if id(one.node) not in kept]
    last: Judgement | None = None
    for spared in (True, False):

        def attempt(chosen: Sequence[Candidate], spared: bool = spared) -> Trial:
            told(f"checking {len(chosen)} nodes in 16 bits")
            return judge.tried(lambda base: narrower.made(base, chosen, spared))

        search = Search(left, lost, attempt)
        best = search.found(least=0 if spared and narrower.changes_weights() else 1)
        if best is not None:
            every = (*kept.values(), *(_kept(one.node, _share(lost[id(one.node)])) for one in best.stay))
            made = narrower.made(narrower.source, best.rest, spared)
            return Narrowed(made, every, len(best.rest), best.judgement.outputs, best.judgement.elsewhere)
        last = search.last if search.last.outputs else last
    raise UnsupportedError(_refusal(last))


def _refusal(last: Judgement | None) -> str:
    drowned = [one for one in last.outputs if is_drowned(one)] if last is not None else []
    if drowned:
        one = max(drowned, key=lambda result: result.tolerance.noise_overall)
        return (
            f"whether 16 bits are enough cannot be told on these inputs: rounding alone moves {one.name!r} by"
            f" {100 * one.tolerance.noise_overall:.0f} %; give data of your own by {option('calibrate')}"
        )
    return (
        "16 bits are too few for this model: with any of its nodes in them, the result is further off than"
        " rounding explains"
    )


def _take_from_inputs(graph: ir.Graph) -> None:
    """Weights that a file lists as inputs, as old exporters did, are weights alone: callers would give 32 bits."""
    graph.inputs[:] = [v for v in graph.inputs if not (v.is_initializer() and v.dtype == ir.DataType.FLOAT)]


def _read_shapes(model: ir.Model) -> None:
    """A value has the same shape before and after a cast."""
    for node in model.graph:
        cast = node.inputs[0].producer() if node.op_type in SHAPES and node.inputs[0] is not None else None
        if cast is not None and cast.op_type == "Cast":
            node.replace_input_with(0, cast.inputs[0])


def _why(loss: float, to: str) -> str:
    if not math.isfinite(loss):
        return f"its numbers do not fit into {to}"
    return _share(loss) if loss > LOST else ""


def _share(loss: float) -> str:
    return f"it would be off by {100 * loss:.2g} %"


def _kept(node: ir.Node, why: str) -> Kept:
    return Kept(node.name or (node.outputs[0].name if node.outputs else "") or "a node", node.op_type, why)
