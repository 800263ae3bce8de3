"""Divides a model among a runtime and a fallback, and proves each part: compiled, run and compared.

A part that the target takes and computes wrong is searched for the node that does it, which goes to the fallback; so it
is with one that fails. What was sent away for want of a better culprit is tried once more at the end. Nodes on the
fallback that can be written in simpler ops are, if the target takes all of these.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import onnx
import onnx_ir as ir

from onward import runners
from onward.errors import OnwardError, RunFailure, VerificationError
from onward.model import Model, load
from onward.partitioning.capability import Capability, Refused, capability
from onward.partitioning.graph import Graph, graph_of, ready
from onward.partitioning.ranks import computed, observe_ranks
from onward.partitioning.split import Part, split
from onward.partitioning.stages import TARGET
from onward.partitioning.trial import refused_by_trial
from onward.partitioning.written import Pieces, write_out
from onward.runners.calls import Inputs, Run
from onward.runners.chain import Chain, Link
from onward.verification.results import SideResult
from onward.verification.sides import Options, Side, open_side
from onward.verification.truth import Truth
from onward.verification.verify import verify

Progress = Callable[[str], None]
DEFECT = "it computes something else"
TOGETHER = "it fails only together with its neighbours"


@dataclass(frozen=True)
class Partition:
    """A model in parts, proven to be the same."""

    name: str
    target: str
    fallback: str
    parts: list[Part]
    refused: Refused
    """Why nodes are on the fallback."""
    written: Pieces
    """The nodes that are on the target in simpler ops."""
    chain: Chain
    result: SideResult | None
    """The chain beside the whole model on the fallback; None where the target is not here to run."""
    model: Model = field(repr=False)
    """The whole, before nodes were written in simpler ops."""
    graph: Graph = field(repr=False)
    """What was divided."""
    sample: Inputs = field(repr=False)

    @property
    def taken(self) -> float:
        """The share of the model's nodes that the target has, of those that are not constants or sizes."""
        pieces = {piece: name for name, made in self.written.items() for piece in made}
        on_target: dict[str, bool] = {}
        for name, own in self._sides():
            name = pieces.get(name, name)
            on_target[name] = on_target.get(name, True) and own
        return sum(on_target.values()) / len(on_target) if on_target else 1.0

    @property
    def taken_as_written(self) -> float:
        """The same share where each simpler op that a node has become counts by itself."""
        sides = [own for _, own in self._sides()]
        return sum(sides) / len(sides) if sides else 1.0

    def _sides(self) -> list[tuple[str, bool]]:
        """The nodes that count, and whether each is on the target."""
        sizes = self.graph.sizes
        return [(n.name or "", part.side == TARGET) for part in self.parts for n in part.nodes if n not in sizes]


def divide(
    model: str | os.PathLike[str] | bytes | onnx.ModelProto | Model,
    target: str,
    *,
    fallback: str = "onnxruntime",
    table: str | os.PathLike[str] | None = None,
    min_nodes: int = 1,
    inputs: Any = None,
    dims: Mapping[str, int] | None = None,
    seed: int = 0,
    progress: Progress = lambda words: None,
) -> Partition:
    """Divide `model` among the runner `target` and the runner `fallback`.

    With a `table`, a file of the ops that a runtime takes, the target need not be here, and its parts are not run on
    it. A part of the target with fewer than `min_nodes` nodes goes to the fallback. `inputs`, `dims` and `seed` are as
    for `onward.verify`.
    """
    if min_nodes < 1:
        raise OnwardError(f"min_nodes cannot be {min_nodes}: give 1 or more")
    source = load(model)
    able = capability(target, None if table is None else Path(table))
    whole = ready(source)
    how = Options(dims=dims, seed=seed)
    progress(f"running {source.name} on {fallback}")
    truth = Truth.of(open_side(whole, fallback, how), inputs, how, [able.name])
    samples = [sample.data.inputs for sample in truth.samples]

    def divided(model: Model, words: str) -> _Divided:
        graph = graph_of(model)
        observe_ranks(graph, samples, fallback)
        progress(f"asking {able.name} what it takes{words}")
        search = _Search(graph, able, fallback, samples, min_nodes, able.refused(model, graph), progress)
        parts = search.settled()
        chain = _chain(model, able, fallback, parts)
        result = None
        if able.runner is not None:
            progress(f"comparing the whole with {fallback}")
            result = truth.judge(Side(f"{able.name} and {fallback}", chain.runner(search.prepared(parts))))
        return _Divided(graph, parts, search.refused, chain, result)

    made, written = divided(whole, ""), Pieces()
    if able.runner is not None and made.refused:
        made, written = _written(whole, made, divided)
    if made.result is not None and made.result.status != "same":
        raise VerificationError(f"{source.name}, divided among {able.name} and {fallback}, is another model")
    return Partition(
        source.name,
        able.name,
        fallback,
        made.parts,
        made.refused,
        written,
        made.chain,
        made.result,
        whole,
        made.graph,
        samples[0],
    )


class _Divided(NamedTuple):
    graph: Graph
    parts: list[Part]
    refused: Refused
    chain: Chain
    result: SideResult | None


def _written(whole: Model, made: _Divided, divided: Callable[[Model, str], _Divided]) -> tuple[_Divided, Pieces]:
    """The division in which nodes that were refused are written in simpler ops: those of which all are taken."""
    names = set(made.refused)
    while names:
        try:
            simpler, pieces = write_out(whole, names)
            if not pieces:
                break
            tried = divided(simpler, " in simpler ops")
        except OnwardError:  # the fallback does not run the simpler ops: the nodes stay as they are
            break
        stuck = {name for name, become in pieces.items() if not become.isdisjoint(tried.refused)}
        if not stuck:
            is_same = tried.result is not None and tried.result.status == "same"
            return (tried, pieces) if is_same else (made, {})
        names = pieces.keys() - stuck
    return made, {}


def _chain(whole: Model, able: Capability, fallback: str, parts: Sequence[Part]) -> Chain:
    graph = whole.ir.graph
    links = []
    for place, part in enumerate(parts):
        name = able.name if part.side == TARGET else fallback
        runner = (able.runner or fallback) if part.side == TARGET else fallback
        file = f"{place}_{name.replace(':', '-')}.onnx"
        links.append(Link(file, runner, tuple(part.inputs), tuple(part.outputs)))
    given = tuple(value.name or "" for value in graph.inputs if not value.is_initializer())
    return Chain(tuple(links), given, tuple(value.name or "" for value in graph.outputs))


class _Search:
    """Divides again and again until every part of the target is the same there."""

    def __init__(
        self,
        graph: Graph,
        able: Capability,
        fallback: str,
        samples: Sequence[Inputs],
        min_nodes: int,
        refused: Refused,
        progress: Progress,
    ) -> None:
        self._graph, self._able, self._fallback, self._samples = graph, able, fallback, samples
        self._min_nodes, self._progress = min_nodes, progress
        self.refused = dict(refused)
        self._proven: set[frozenset[str]] = set()
        """The nodes of each part of the target that is the same there."""
        self._victims: set[str] = set()

    def settled(self) -> list[Part]:
        parts = self._settle()
        if self._victims:
            parts = self._again(parts)
        return parts

    def prepared(self, parts: Sequence[Part]) -> list[Run]:
        target = self._able.runner or self._fallback
        return [runners.prepare(target if p.side == TARGET else self._fallback, p.model) for p in parts]

    def _settle(self) -> list[Part]:
        while True:
            parts = split(self._graph, self.refused, self._min_nodes)
            found = {} if self._able.runner is None else self._faults(parts)
            if not found:
                return parts
            self.refused |= found

    def _again(self, parts: list[Part]) -> list[Part]:
        """What was sent away with others may be taken now that the others are gone."""
        before, victims = dict(self.refused), self._victims
        self._victims = set()
        self.refused = {name: why for name, why in before.items() if name not in victims}
        tried = self._settle()
        if sum(part.side == TARGET for part in tried) and len(self.refused) < len(before):
            return tried
        self.refused = before
        return parts

    def _faults(self, parts: Sequence[Part]) -> Refused:
        """The nodes of parts of the target that fail there, or compute something else."""
        own = [part for part in parts if part.side == TARGET]
        new = [part for part in own if _key(part) not in self._proven]
        if not new:
            return {}
        values = self._values(new)
        found: Refused = {}
        for place, part in enumerate(new):
            self._progress(f"proving part {place + 1} of {len(new)} on {self._able.name}")
            faults = self._faults_of(part, [{name: v[name] for name in part.inputs if name in v} for v in values])
            if not faults:
                self._proven.add(_key(part))
            found |= faults
        return found

    def _values(self, parts: Sequence[Part]) -> list[dict[str, Any]]:
        """What the fallback computes for all that these parts take, for each set of data."""
        given = {value.name for value in self._graph.cutter.inputs}
        wanted = sorted({name for part in parts for name in part.inputs} - given)
        if not wanted:
            return [dict(sample) for sample in self._samples]
        found = computed(self._graph, wanted, self._samples, self._fallback)
        return [{**sample, **values} for sample, values in zip(self._samples, found, strict=True)]

    def _faults_of(self, part: Part, feeds: Sequence[Inputs]) -> Refused:
        target = self._able.runner or ""
        names = {node.name or "" for node in part.nodes}
        try:
            report = verify(part.model, target, source=self._fallback, inputs=list(feeds), bisect=True, arbitrate=False)
        except RunFailure as error:
            return dict.fromkeys(names, str(error))
        result = report.sides[-1]
        if result.status == "same":
            return {}
        if result.status == "different":
            culprit = result.culprit
            if culprit is not None and culprit.node in names:
                return {culprit.node: f"{DEFECT}: error {culprit.own:.2g} where {culprit.allowed:.2g} is allowed"}
            return self._half(part, DEFECT)
        return self._failing(part, result.failure or next((t.failure for t in result.trials if t.failure), ""), feeds)

    def _failing(self, part: Part, words: str, feeds: Sequence[Inputs]) -> Refused:
        """The nodes that the target does not run, each by itself."""
        values = self._all_values(part, feeds[0])

        def offer(piece: Model) -> None:
            run = runners.prepare(self._able.runner or "", piece)
            run({v.name or "": values[v.name or ""] for v in piece.ir.graph.inputs if not v.is_initializer()})

        found = refused_by_trial(self._graph, part.nodes, offer)
        return found or self._half(part, f"{TOGETHER}: {words}")

    def _all_values(self, part: Part, feeds: Inputs) -> dict[str, Any]:
        """Those that its nodes make, and the sizes that it computes for itself."""
        cutter = self._graph.cutter
        read = [v.name or "" for node in part.nodes for v in cutter.reads(node) if v in cutter.varying]
        made = [v.name or "" for node in part.nodes for v in node.outputs if v.name]
        names = [name for name in dict.fromkeys([*read, *made]) if name not in feeds]
        (found,) = computed(self._graph, names, [feeds], self._fallback)
        return {**feeds, **found}

    def _half(self, part: Part, why: str) -> Refused:
        """No node is to blame by itself: the later half of them goes, and may come back."""
        gone = [node.name or "" for node in part.nodes[len(part.nodes) // 2 :]]
        self._victims.update(gone)
        return dict.fromkeys(gone, why)


def _key(part: Part) -> frozenset[str]:
    return frozenset(node.name or "" for node in part.nodes)


def reasons(graph: Graph, refused: Refused) -> list[tuple[ir.Node, str]]:
    """The nodes that the target does not have, in order, each with the reason."""
    return [(node, refused[node.name or ""]) for node in graph.nodes if node.name in refused]
