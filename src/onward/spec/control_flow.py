"""What nodes with graphs inside mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import onnx_ir as ir

from onward.spec.meaning import Spec, attributes, means


@means("If")
@dataclass(frozen=True)
class If(Spec):
    then_branch: ir.Graph
    else_branch: ir.Graph


@means("Loop", "SequenceMap")
@dataclass(frozen=True)
class Repeated(Spec):
    body: ir.Graph


@means("Scan")
@dataclass(frozen=True)
class Scan(Spec):
    """Axes and directions (1: backwards) have an entry for each tensor that is scanned, or made."""

    body: ir.Graph
    num_scan_inputs: int
    input_axes: tuple[int, ...]
    input_directions: tuple[int, ...]
    output_axes: tuple[int, ...]
    output_directions: tuple[int, ...]

    @classmethod
    def of(cls, node: ir.Node) -> Self:
        given = attributes(node)
        body, taken = given["body"], given["num_scan_inputs"]
        made = len(body.outputs) - (len(node.inputs) - taken)
        sides = [(side, what, n) for side, n in (("input", taken), ("output", made)) for what in ("axes", "directions")]
        return cls(body, taken, *(tuple(given.get(f"scan_{side}_{what}") or [0] * n) for side, what, n in sides))
