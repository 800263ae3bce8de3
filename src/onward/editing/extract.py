"""`onward.extract`: a part of a model as a model of its own."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import onnx
import onnx_ir as ir

from onward.advice.nearest import meant
from onward.canon.inline import inline
from onward.editing.metadata import copy_metadata
from onward.editing.trained_part import trained_part
from onward.errors import LeftOutWarning, OnwardError
from onward.graph.infer import infer
from onward.graph.origin import KEY as ORIGIN
from onward.graph.walk import all_nodes
from onward.hub.wording import quote
from onward.hub.write import ANNOTATED
from onward.model import Model, load
from onward.passes.simplify import cast_like
from onward.training.info.combined import values_of
from onward.verification.locate.cut import AS_INFERRED, Cutter

SHOWN = 5
"""Names that a message lists."""
Wanted = str | Iterable[str]


def extract(
    model: Model | str | os.PathLike[str] | bytes | onnx.ModelProto, inputs: Wanted = (), outputs: Wanted = ()
) -> Model:
    """The part of a model that computes `outputs` from `inputs`, as a model of its own.

    Both are names of values anywhere in the main graph, or patterns of names such as "encoder/*"; left out, they are
    those of the model. A weight may be an input. New inputs have the types and shapes that inference finds. The weights
    are shared, not copied. What the part needs and is not given is refused by name. Training information stays as far
    as the part has what it is about; `LeftOutWarning` says what does not.

    >>> import onward
    >>> model = onward.load("examples/digits/digits.onnx")
    >>> head = onward.extract(model, inputs="mean", outputs="logits")
    >>> [node.op_type for node in head.ir.graph]
    ['Gemm']
    """
    source = load(model)
    part, remarks = extracted(source, _listed(inputs), _listed(outputs))
    for remark in remarks:
        warnings.warn(remark, LeftOutWarning, stacklevel=2)
    return part


def _listed(names: Wanted) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def extracted(source: Model, inputs: Sequence[str], outputs: Sequence[str]) -> tuple[Model, list[str]]:
    """The part, and what of the model it is without, a sentence each."""
    cutter = Cutter(source)
    ends, starts, missing = _bounds(cutter, inputs, outputs)
    if missing:  # of some only the type is read
        cutter = Cutter(_with_plain_casts(source))
        ends, starts, missing = _bounds(cutter, inputs, outputs)
    if missing:
        beside = _beside(cutter, starts, ends) or missing
        raise OnwardError(
            f"{_few(ends)} cannot be computed from {_few(starts)} alone, only with {_few(beside)}: begin there, too"
        )
    _complete_types(cutter, source)
    part = cutter.piece(ends, dict.fromkeys(starts, AS_INFERRED), constants=True)
    graph = part.ir.graph
    taken = {value.name or "": value for value in graph.inputs}
    graph.inputs[:] = [taken[name] for name in starts if name in taken]
    defaults = {v.name for v in source.ir.graph.inputs if v.is_initializer()}
    graph.inputs.extend(value for name, value in graph.initializers.items() if name in defaults)
    copy_metadata(source, part)
    _keep_annotations(source, part)
    remarks = trained_part(source, part)
    part.validate()
    return part, remarks


def _complete_types(cutter: Cutter, source: Model) -> None:
    """Where inference stops, at calls of functions and at custom ops, what the file says holds."""
    open_ = {name: value for name, value in cutter.values.items() if value.type is None or value.shape is None}
    if source.ir.functions and open_:
        whole = source.ir.clone()
        inline(whole)
        infer(whole)
        known = {value.name or "": value for node in whole.graph for value in node.outputs}
        for name, value in open_.items():
            if name in known:
                value.type, value.shape = known[name].type or value.type, known[name].shape or value.shape
    declared = {value.name or "": value for node in source.ir.graph for value in node.outputs}
    declared |= {value.name or "": value for value in source.ir.graph.inputs}
    for name, value in cutter.values.items():
        said = declared.get(name)
        if said is None:
            continue
        value.type = value.type or said.type
        value.shape = _fuller(value.shape, said.shape)


def _fuller(inferred: ir.Shape | None, declared: ir.Shape | None) -> ir.Shape | None:
    """What is inferred, with the names and sizes that are declared where it knows nothing."""
    if inferred is None or declared is None or len(inferred) != len(declared):
        return declared if inferred is None else inferred
    unknown = [not isinstance(dim, int) and dim.value is None for dim in inferred]
    return ir.Shape(b if is_open else a for a, b, is_open in zip(inferred, declared, unknown, strict=True))


def _ends(cutter: Cutter, wanted: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for name in wanted:
        if name in cutter.values:
            if cutter.values[name].producer() is None:
                kind = "a weight" if cutter.values[name].is_initializer() else "an input"
                raise OnwardError(f"{quote(name)} is {kind} of the model: nothing computes it")
            found[name] = None
        else:
            made = [n for n, value in cutter.values.items() if value.producer() is not None]
            found |= dict.fromkeys(_matching(cutter, name, made))
    return list(found)


def _starts(cutter: Cutter, wanted: Sequence[str], ends: Sequence[str]) -> tuple[list[str], list[str]]:
    """The values that the part begins at, and those of them that were asked for by their very names."""
    if not wanted:
        return [value.name or "" for value in cutter.inputs], []
    found: dict[str, None] = {}
    asked = []
    for name in wanted:
        if name in cutter.values:
            found[name] = None
            asked.append(name)
        else:
            candidates = [n for n, value in cutter.values.items() if value in cutter.varying and n not in ends]
            found |= dict.fromkeys(_matching(cutter, name, candidates))
    return list(found), asked


def _matching(cutter: Cutter, pattern: str, names: Iterable[str]) -> list[str]:
    found = [name for name in names if fnmatchcase(name, pattern)]
    if found:
        return found
    node = next((node for node in cutter.nodes() if node.name == pattern), None)
    if node is not None:
        own = [value.name or "" for value in node.outputs if value.name]
        raise OnwardError(f"{quote(pattern)} is a node, and parts begin and end at values: it gives {_few(own)}")
    raise OnwardError(f"the main graph has no value {quote(pattern)}{meant(pattern, cutter.values)}")


def _bounds(cutter: Cutter, inputs: Sequence[str], outputs: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Where the part ends, where it begins, and what else it would have to be given."""
    ends = _ends(cutter, outputs) if outputs else [value.name or "" for value in cutter.outputs]
    starts, asked = _starts(cutter, inputs, ends)
    both = [name for name in ends if name in starts]
    if both:
        raise OnwardError(f"{quote(both[0])} is where the part begins and where it ends: nothing is left of it")
    nodes = cutter.nodes([cutter.values[name] for name in ends], starts)
    read = dict.fromkeys(value for node in nodes for value in cutter.reads(node))
    made = {value for node in nodes for value in node.outputs}
    names = {value.name for value in read}
    idle = [name for name in asked if name not in names]
    if idle:
        raise OnwardError(f"nothing on the way to {_few(ends)} reads {quote(idle[0])}: leave it out")
    return ends, starts, [v.name or "" for v in read if not (v in made or v.is_initializer() or v.name in starts)]


def _beside(cutter: Cutter, starts: Sequence[str], ends: Sequence[str]) -> list[str]:
    """What is read beside the values where the part begins, by nodes that depend on these."""
    after = {cutter.values[name] for name in starts}
    found: dict[str, None] = {}
    for node in cutter.nodes([cutter.values[name] for name in ends], starts):
        reads = cutter.reads(node)
        if not after.isdisjoint(reads):
            after.update(node.outputs)
            found |= dict.fromkeys(v.name or "" for v in reads if v not in after and v in cutter.varying)
    return list(found)


def _with_plain_casts(source: Model) -> Model:
    """The same model, whose casts name the type that they read off a value."""
    copy = source.copy()
    infer(copy.ir)
    for node in list(all_nodes(copy.ir.graph)):
        if node.op_type == "CastLike" and node.domain in ("", "ai.onnx"):
            name = node.outputs[0].name
            for made in cast_like(node) or []:
                made.metadata_props.pop(ORIGIN, None)
                made.name, made.outputs[0].name = node.name, name
    return copy


def _few(names: Sequence[str]) -> str:
    words = [*map(quote, names[:SHOWN]), *([f"{len(names) - SHOWN} more"] if len(names) > SHOWN else [])]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _keep_annotations(source: Model, part: Model) -> None:
    values = values_of(part.ir.graph)
    found = {value.name or "": names for value, names in source.ir.graph.meta.get(ANNOTATED, {}).items()}
    part.ir.graph.meta[ANNOTATED] = {values[name]: dict(names) for name, names in found.items() if name in values}
