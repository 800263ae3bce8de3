"""How many numbers of a model are trained, and which are not, in a few lines."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import onnx_ir as ir

from onward.graph.trained import is_processing, is_trained, mark_weights

if TYPE_CHECKING:
    from onward.backends.emit.package import Source
    from onward.model import Model

LONGEST = 6
"""Kinds of weights that are listed; the others are counted."""


@dataclass(frozen=True)
class Weight:
    name: str
    size: int
    trained: bool


def weights_of_source(source: Source) -> list[Weight]:
    """The tensors of a generated model; one that several layers share is there once."""
    tensors = {id(tensor): tensor for tensor in source.tensors.values()}.values()
    return [Weight(".".join(t.path), math.prod(t.shape), t.parameter and t.trained) for t in tensors]


def weights_of_file(model: Model) -> list[Weight]:
    """The initializers of an ONNX model, but for those of its data processing."""
    graph = model.ir.clone()
    mark_weights(graph)
    held = {name: value for name, value in graph.graph.initializers.items() if not is_processing(value)}
    return [Weight(name, _size(value), is_trained(value)) for name, value in held.items()]


def trainable_lines(weights: Iterable[Weight]) -> Iterator[str]:
    """`trainable: N of M numbers`, and what is not: weights that are called alike in several layers together."""
    every = list(weights)
    trained = _total(weight for weight in every if weight.trained)
    yield f"trainable: {trained:,} of {_total(every):,} numbers"
    alike: dict[str, list[Weight]] = defaultdict(list)
    for weight in every:
        if not weight.trained:
            alike[weight.name.replace("/", ".").rpartition(".")[2]].append(weight)
    groups = sorted(alike.items(), key=lambda item: -_total(item[1]))
    told = [
        f"{group[0].name if len(group) == 1 else f'{last} of {len(group)} layers'} ({_total(group):,})"
        for last, group in groups[:LONGEST]
    ]
    if rest := [weight for _, group in groups[LONGEST:] for weight in group]:
        told.append(f"{len(rest)} more ({_total(rest):,})")
    if told:
        yield f"not trained: {', '.join(told)}"


def _total(weights: Iterable[Weight]) -> int:
    return sum(weight.size for weight in weights)


def _size(value: ir.Value) -> int:
    return 0 if value.const_value is None else value.const_value.size
