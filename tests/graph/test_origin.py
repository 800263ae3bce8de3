"""Where a node came from."""

import json

import onnx_ir as ir
import pytest

from onward.graph.origin import KEY, Origin, copy_origin, mark_origin, origin


def node(op: str, name: str) -> ir.Node:
    return ir.Node("", op, [], name=name)


def test_a_node_stands_for_itself_or_for_what_it_was_made_of() -> None:
    old, new = node("Conv", "first"), node("MatMul", "made")
    assert origin(new) == Origin("made", "MatMul", "")
    copy_origin(new, old)
    mark_origin(new)
    assert origin(new) == origin(old) == Origin("first", "Conv", "") and str(origin(new)) == "Conv 'first'"


@pytest.mark.parametrize("held", ["garbage", "", "[1, 2, 3]", '["a"]', '{"a": 1}', "[" * 100_000])
def test_what_a_file_holds_under_that_name_may_be_anything(held: str) -> None:
    found = node("Relu", "r")
    found.metadata_props[KEY] = held
    assert origin(found) == Origin("r", "Relu", "")
    mark_origin(found)
    assert json.loads(found.metadata_props[KEY]) == ["r", "Relu", ""]
