"""How models and verifications look in a notebook: small, static, escaped; and in words."""

import time
from xml.etree import ElementTree

import pytest
import report_samples as reports
import view_samples as models

from onward.model import load
from onward.verification.results import Report

DIGITS = "examples/digits/digits.onnx"
REPORTS = [reports.same, reports.different, reports.failed, reports.hostile, lambda: Report("m.onnx", "onnxruntime")]


def words_of(html: str) -> str:
    """What is read of it; it has to be well formed."""
    return " ".join(ElementTree.fromstring(html.replace("<br>", "<br/>")).itertext())


def test_a_model_in_words() -> None:
    model = load(DIGITS)
    words = "'digits': 89 nodes, 43,421 parameters, ai.onnx 20; image float[batch, 1, 8, 8] → logits float[batch, 10]"
    assert str(model) == repr(model) == f"Model({words})"


def test_a_model_in_a_notebook() -> None:
    words = words_of(load(DIGITS)._repr_html_())
    assert "image float[batch, 1, 8, 8]" in words and "43,421" in words and "Conv × 10" in words
    assert "<svg" in load(DIGITS)._repr_html_()


def test_a_large_model_is_small_and_soon_there() -> None:
    """Within a few times of what it takes to walk over its nodes and values, whose number is that of the model."""
    model = models.network(2000)
    began = time.process_time()
    for _ in range(20):
        sum(value.uses() is not None for node in model.ir.graph for value in node.outputs)
    walked = time.process_time() - began
    began = time.process_time()
    html = model._repr_html_()
    assert time.process_time() - began < max(10 * walked, 0.05)
    assert len(html) < 20_000 and len(repr(model)) < 500


@pytest.mark.parametrize("made", REPORTS)
def test_a_verification_in_a_notebook(made: object) -> None:
    report = made()  # type: ignore[operator]
    html = report._repr_html_()
    words = words_of(html)
    assert "<img" not in html and "\x1b" not in html
    assert len(html) < 20_000 and len(repr(report)) < 1000
    assert {"same": "Same", "different": "Different", "failed": "Not verified"}[report.status] in words
    assert repr(report).startswith("Report(")


def test_a_verification_says_what_is_wrong() -> None:
    words = words_of(reports.different()._repr_html_())
    assert "The first node that differs is conv_7 (Conv)." in words
    assert "shape [1, 4, 2] instead of [1, 2, 4]" in words and "0.137" in words
    assert str(reports.same()) == (
        "Report(Same: torch and openvino agree with models/digits.onnx on onnxruntime. worst error 2.4e-06,"
        " allowed 7.1e-05 (output logits))"
    )


def test_many_outputs_are_cut() -> None:
    report = reports.same()
    trial = report.sides[0].trials[0]
    many = [reports.output(f"y{i}", 1e-9) for i in range(500)]
    object.__setattr__(trial, "outputs", tuple(many))
    html = report._repr_html_()
    assert "more outputs" in html and len(html) < 40_000


def test_names_of_a_model_are_inert() -> None:
    html = models.hostile()._repr_html_()
    assert "<img" not in html and models.HOSTILE[:20] in words_of(html)
