"""What is said of a backend's support is what its rules do, and the page says the same."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from onward.backends import backend as backends
from onward.backends.coverage import coverage, covered, status
from onward.errors import OnwardError, UnsupportedError
from onward.model import load
from onward.report.coverage import ops, page, versions

PAGE = Path(__file__).parents[2] / "docs/reference/coverage.md"


def model(op: str, dtype: int = TensorProto.FLOAT, domain: str = "") -> onnx.ModelProto:
    ends = [[helper.make_tensor_value_info(name, dtype, ["n", 3])] for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], domain=domain)], "g", *ends)
    opsets = [helper.make_opsetid("", 20)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def test_page_is_fresh() -> None:
    text = PAGE.read_text()
    if versions() not in text:
        pytest.skip("other versions of ONNX and ONNX Runtime have other ops")
    assert text == page(), "run `make coverage`"


def test_every_op_is_on_the_page() -> None:
    found = ops()
    assert len(found[""]) == 203 and len(found["ai.onnx.ml"]) == 19 and len(found["com.microsoft"]) > 100


@pytest.mark.parametrize("backend", covered())
def test_words_fit_the_rules(backend: str) -> None:
    known = backends.backend(backend)
    assert [op for op in known.partial() if not known.has_rule(op)] == []
    assert [op for op in known.unsupported() if known.has_rule(op)] == []


@pytest.mark.parametrize(
    ("op", "words"),
    [
        ("Relu", "exact"),
        ("Constant", "exact"),
        ("Upsample", "lowered (rewritten as newer ops)"),
        ("Affine", "lowered (rewritten as newer ops)"),
        ("Mystery", "unsupported (ONNX has no such op)"),
        ("unknown.example::Mystery", "unsupported (no rule)"),
        ("ai.onnx.preview.training::Gradient", "exact"),
    ],
)
def test_status_in_torch(op: str, words: str) -> None:
    assert str(status(op, "torch")) == words


@pytest.mark.parametrize(("missing", "words"), [("", "lowered"), ("Cos", "unsupported (its definition needs Cos)")])
def test_a_definition_counts_only_if_its_ops_do(missing: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backend without a rule for HannWindow has it if it has what the op's schema defines it by."""
    torch = backends.backend("torch")
    has_rule = type(torch).has_rule
    lacking = ("HannWindow", missing)
    monkeypatch.setattr(type(torch), "has_rule", lambda self, op: op not in lacking and has_rule(self, op))
    assert str(status("HannWindow", "torch")) == words


def test_a_limit_of_some_dtypes_concerns_only_those() -> None:
    def found(dtype: int) -> str:
        return str(coverage(load(model("ReduceMean", dtype)), "torch")[0])

    assert found(TensorProto.FLOAT) == "exact" and found(TensorProto.UINT64) == "partial (not of uint64)"


def test_a_users_rule_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    from onward.backends.torch.target import TARGET

    monkeypatch.setitem(TARGET.rules._user, "mine::Op", lambda e, x: x)
    assert status("mine::Op", "torch").status == "exact"


def test_unknown_backend() -> None:
    with pytest.raises(OnwardError, match="no backend 'abacus'; there are jax, keras, matlab, tensorflow, torch"):
        status("Relu", "abacus")


def test_unsupported_means_refused() -> None:
    from onward.backends.torch.convert import generate

    for op, domain in (("Mystery", ""), ("Mystery", "unknown.example")):
        given = load(model(op, domain=domain))
        assert coverage(given, "torch")[0].status == "unsupported"
        with pytest.raises(UnsupportedError, match="Mystery"):
            generate(given)
