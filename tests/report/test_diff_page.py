"""The page of a difference: every change is on it, and nothing in a file becomes markup."""

from __future__ import annotations

from graph_samples import chain

import onward
from onward.report.difference.page import page

EVIL = "<script>alert('x')</script>"


def test_names_are_escaped() -> None:
    other = chain("Neg", "Exp")
    node = next(iter(other.ir.graph))
    node.name = node.outputs[0].name = EVIL
    text = page(onward.diff(chain("Neg", "Relu", "Exp"), other))
    assert EVIL not in text and "&lt;script&gt;" in text


def test_both_graphs_stand_side_by_side_and_what_is_equal_is_folded() -> None:
    ops = ["Neg", "Relu"] * 20
    text = page(onward.diff(chain(*ops, "Abs"), chain(*ops, "Exp", "Abs")))
    assert "37 equal nodes" in text
    assert '<tr class="added"><td></td><td>v40 = Exp(v39)</td></tr>' in text
    assert "Both graphs" not in page(onward.diff(chain(*ops), chain(*ops)))
