"""Every op that ONNX marks as differentiable has a gradient, and so have the unmarked ones that matter."""

from pathlib import Path

import onnx
import pytest

from onward.report.coverage import versions
from onward.report.gradients import ops, page
from onward.training.autodiff.coverage import gradient_status, is_defined, is_marked
from onward.training.autodiff.limits import MISSING, PARTIAL
from onward.training.autodiff.vjp import NO_GRADIENT, RULES, load_rules

PAGE = Path(__file__).parents[4] / "docs/reference/gradients.md"
UNMARKED = ["LayerNormalization", "RMSNormalization", "Attention", "RotaryEmbedding", "If", "Loop", "Scan"]
UNMARKED += ["RoiAlign", "DeformConv"]
MARKED = [op for op in ops() if is_marked(op)]

EXCEPTIONS = {"Hardmax": "constant between its steps"}
"""Marked ops through which a gradient does not pass, with the reason."""


def test_as_many_are_marked_as_there_should_be() -> None:
    if onnx.__version__.startswith("1.23."):
        assert len(MARKED) == 121


@pytest.mark.parametrize("op", [*MARKED, *UNMARKED])
def test_a_gradient_passes(op: str) -> None:
    passes = gradient_status(op).status in ("rule", "partial", "definition")
    assert passes != (op in EXCEPTIONS), str(gradient_status(op))


def test_every_other_op_has_a_word() -> None:
    """A rule, a definition, or a reason why there is none: never just nothing."""
    assert [op for op in ops() if gradient_status(op).why == "no rule"] == []


def test_tables_fit_the_rules() -> None:
    load_rules()
    assert [op for op in PARTIAL if op not in RULES and not is_defined(op)] == []
    assert [op for op in MISSING if op in RULES or op in NO_GRADIENT] == []
    assert [op for op in NO_GRADIENT if op in RULES] == []
    known = {schema.name for schema in onnx.defs.get_all_schemas_with_history()}
    assert [op for op in (*PARTIAL, *MISSING, *NO_GRADIENT) if "::" not in op and op not in known] == []


def test_page_is_fresh() -> None:
    text = PAGE.read_text()
    if versions() not in text:
        pytest.skip("other versions of ONNX and ONNX Runtime have other ops")
    assert text == page(), "run `make coverage`"
