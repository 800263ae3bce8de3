"""Where a node came from: the name and op of the node in the user's file that it stands for."""

import json
from typing import NamedTuple

import onnx_ir as ir

KEY = "onward.origin"


class Origin(NamedTuple):
    """The node of the original file; `name` is its first output's name where the file gave it none."""

    name: str
    op_type: str
    domain: str

    def __str__(self) -> str:
        op = f"{self.domain}.{self.op_type}" if self.domain else self.op_type
        return f"{op} '{self.name}'" if self.name else op


def _of_itself(node: ir.Node) -> Origin:
    name = node.name or next((o.name for o in node.outputs if o.name), "") or ""
    return Origin(name, node.op_type, node.domain)


def origin(node: ir.Node) -> Origin:
    """The origin of `node`: as marked, otherwise the node itself."""
    return _marked(node) or _of_itself(node)


def _marked(node: ir.Node) -> Origin | None:
    """What is recorded; a file may hold anything under this name, and what is no origin counts as nothing."""
    try:
        found = json.loads(node.metadata_props.get(KEY, "null"))
    except (ValueError, RecursionError):
        return None
    is_origin = isinstance(found, list) and len(found) == 3 and all(isinstance(part, str) for part in found)
    return Origin(*found) if is_origin else None


def set_origin(node: ir.Node, value: Origin) -> None:
    node.metadata_props[KEY] = json.dumps(value)


def mark_origin(node: ir.Node) -> None:
    """Record that `node` is its own origin, unless an origin is already recorded."""
    if _marked(node) is None:
        set_origin(node, _of_itself(node))


def copy_origin(new: ir.Node, old: ir.Node) -> None:
    """`new` stands for whatever `old` stands for."""
    mark_origin(old)
    new.metadata_props[KEY] = old.metadata_props[KEY]
