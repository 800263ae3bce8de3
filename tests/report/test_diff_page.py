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


def test_a_name_is_as_much_of_a_path_as_tells_the_models_apart() -> None:
    found = onward.diff(chain("Neg"), chain("Exp"))
    found.first, found.second = "runs/old/net.onnx", "runs/new/net.onnx"
    assert "<h1>old/net.onnx → new/net.onnx</h1>" in page(found)
    found.second = "runs/other.onnx"
    assert "<h1>net.onnx → other.onnx</h1>" in page(found)
    found.first = found.second
    assert "<h1>other.onnx → other.onnx</h1>" in page(found)


def test_a_badge_leads_to_each_table_and_the_rest_of_a_long_one_unfolds() -> None:
    text = page(onward.diff(chain("Neg"), chain("Neg", *["Exp", "Abs"] * 30)))
    assert '<a class="badge good" href="#node">60 nodes added</a>' in text
    assert 'id="node"' in text and "<summary>20 more</summary>" in text
