"""Which value of one model is which value of another: by name where names are kept, else by the order of the ops."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

import onnx_ir as ir

from onward.verification.locate.cut import Cutter

NUMBER = re.compile(r"[^A-Za-z]*")
SAME_OPS, SAME_OPS_OF_NUMBERS = 0.4, 0.95
"""Of the values that share a name, the share made by the same op below which names mean nothing. More is asked of
names that are numbers: files that were exported twice often have others each time."""


def counterparts(source: Cutter, other: Cutter) -> dict[str, str]:
    """Names in `source` to names in `other`, for the values that both have; weights are left out."""
    if source is other:
        return {name: name for name in source.values}
    pairs = _by_name(source, other)
    if pairs is None:
        pairs = _by_order(source, other)
    pairs.update(_ends(source.outputs, other.outputs))
    pairs.update(_ends(source.inputs, other.inputs))
    return pairs


def _ends(first: list[ir.Value], second: list[ir.Value]) -> dict[str, str]:
    """Inputs or outputs of two models, by name if all have theirs in the other, else by position."""
    names, others = [v.name or "" for v in first], [v.name or "" for v in second]
    return {name: name for name in names} if set(names) <= set(others) else dict(zip(names, others, strict=False))


def _by_name(source: Cutter, other: Cutter) -> dict[str, str] | None:
    made = {name for name, value in source.values.items() if value.producer() is not None}
    theirs = {name for name, value in other.values.items() if value.producer() is not None}
    common = made & theirs
    same_op = sum(_same_op(source.values[name], other.values[name]) for name in common)
    numbers = sum(NUMBER.fullmatch(name) is not None for name in common)
    least = SAME_OPS_OF_NUMBERS if 2 * numbers > len(common) else SAME_OPS
    if same_op < least * len(common) or 2 * len(common) < min(len(made), len(theirs)):
        return None
    named = [(name, source.values[name], other.values[name]) for name in made & other.values.keys()]
    return {name: name for name, value, twin in named if _same_op(value, twin) or _alike(value, twin)}


def _same_op(first: ir.Value, second: ir.Value) -> bool:
    """Whether two values are made by the same op, or one by an op of a runtime's own, which may do several at once."""
    nodes = first.producer(), second.producer()
    ops = {node.op_type for node in nodes if node is not None}
    return len(ops) == 1 or any(node is not None and node.domain not in ("", "ai.onnx") for node in nodes)


def _by_order(source: Cutter, other: Cutter) -> dict[str, str]:
    """Nodes of equal ops in the longest common stretches of the two orders; Constants, which tools move, aside."""
    first, second = ([n for n in side.nodes() if n.op_type != "Constant"] for side in (source, other))
    ops, others = [node.op_type for node in first], [node.op_type for node in second]
    head = _common(ops, others)
    tail = _common(ops[head:][::-1], others[head:][::-1])
    pairs = [*zip(first[:head], second[:head], strict=True)]
    pairs += zip(first[len(first) - tail :], second[len(second) - tail :], strict=True)
    middle = first[head : len(first) - tail], second[head : len(second) - tail]
    ops, others = ([node.op_type for node in nodes] for nodes in middle)
    for block in SequenceMatcher(None, ops, others, autojunk=False).get_matching_blocks():
        pairs += ((middle[0][block.a + i], middle[1][block.b + i]) for i in range(block.size))
    found = _ends(source.inputs, other.inputs)
    order = {node: index for index, node in enumerate(first)}
    for node, twin in sorted(pairs, key=lambda pair: order[pair[0]]):
        if _reads_the_same(source.reads(node), other.reads(twin), found):
            for value, counterpart in zip(node.outputs, twin.outputs, strict=False):
                if value.name and counterpart.name and _alike(value, counterpart):
                    found[value.name] = counterpart.name
    return found


def _reads_the_same(first: list[ir.Value], second: list[ir.Value], found: dict[str, str]) -> bool:
    """Whether nothing that one reads is matched with a value that the other does not read."""
    names, others = {v.name for v in first}, {v.name for v in second}
    wanted = {found[name] for name in names if name in found}
    return wanted <= others and wanted == others & set(found.values())


def _common(first: list[str], second: list[str]) -> int:
    """The length of the common beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(first), len(second)))


def _alike(first: ir.Value, second: ir.Value) -> bool:
    """Whether the two can be the same value by what is known of their types."""
    if first.dtype is not None and second.dtype is not None and first.dtype != second.dtype:
        return False
    return first.shape is None or second.shape is None or len(first.shape) == len(second.shape)
