"""Random graphs at other opsets and with fewer nodes: what is written gives what ONNX Runtime gave before."""

from typing import Any

import numpy as np
import onnx
import pytest

from differential.builder import session
from differential.compare import difference, random_graph
from onward.canon.opset import at_opset, newest_opset
from onward.errors import UnsupportedError
from onward.model import Model, load
from onward.passes.fewer.smaller import smaller
from onward.scoreboard.suite import forget_shapes

GRAPHS, PARTS = 320, 4
OPEN_ENDS = ("have the shape set for all outputs", "Invalid num_outputs", "NOT_IMPLEMENTED")
"""What ONNX Runtime refuses: a Scan whose outputs have shapes that it cannot follow, a Split of nothing, some types."""
NEWEST = min(26, newest_opset())
"""ONNX Runtime reads none after it."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("what", ["opset", "simplify"])
def test_random_graphs(what: str, part: int) -> None:
    compared = [_compared(what, number) for number in range(part, GRAPHS, PARTS)]
    assert sum(compared) > 0.75 * len(compared)


def _compared(what: str, number: int) -> bool:
    g = random_graph([21, number])
    proto, inputs, wanted = g.model()
    if not wanted:
        return False
    rng = np.random.default_rng([21, number, 0])
    proto = forget_shapes(proto) if rng.random() < 0.4 else proto
    feeds = dict(zip([value.name for value in proto.graph.input], inputs, strict=True))
    original = load(proto)
    if _wrong(original, feeds, wanted):
        return False
    try:
        made = (
            at_opset(original, int(rng.integers(7, NEWEST + 1))).model if what == "opset" else smaller(original).model
        )
    except UnsupportedError:
        return False
    for side in ("input", "output"):
        names = [[v.name for v in getattr(one.to_proto().graph, side)] for one in (original, made)]
        assert names[0] == names[1]
    wrong = _wrong(made, feeds, wanted)
    if any(words in wrong for words in OPEN_ENDS):
        return False
    if wrong:
        pytest.fail(f"graph {number}: {wrong}\n{onnx.printer.to_text(proto)}")
    if what == "simplify":
        assert len(made.to_proto().SerializeToString()) <= len(proto.SerializeToString())
    return True


def _wrong(model: Model, feeds: dict[str, Any], wanted: list[Any]) -> str:
    try:
        found = session(model.to_proto()).run(None, feeds)
    except Exception as error:  # ONNX Runtime has a class for each kind of failure
        return f"{error}" or type(error).__name__
    return next(filter(None, (difference(a, b) for a, b in zip(found, wanted, strict=True))), "")
