"""Models that draw random numbers: what is drawn is not compared, everything else is."""

from typing import Any

import onnx
import pytest

import onward
from onward.cli import main
from onward.errors import NotVerifiedWarning, VerificationError
from onward.runners import prepare
from onward.runners.calls import Inputs, Outputs
from onward.verification.check import prove
from onward.verification.doubts import drawn_outputs

HEAD = '<ir_version: 10, opset_import: ["": 20]>\n'
TWO = (
    HEAD
    + """g (float[2, 8] x) => (float[2, 8] noisy, float[2, 8] plain) {
    r = RandomNormalLike(x)
    noisy = Add(x, r)
    plain = Tanh(x)
}"""
)
DROPOUT = HEAD + "g (float[4, 8] x) => (float[4, 8] y) <float r = {{0.5}}, bool t = {{{}}}> {{ y = Dropout(x, r, t) }}"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (TWO, {"noisy"}),
        (TWO.replace("Tanh(x)", "Mul(x, noisy)"), {"noisy", "plain"}),
        (DROPOUT.format(1), {"y"}),
        (DROPOUT.format(0), set()),
        (
            HEAD
            + """g (float[2, 8] x, bool c) => (float[2, 8] y, float[2, 8] z) {
            r = RandomNormalLike(x)
            y = If(c) <then_branch = t () => (float[2, 8] a) { a = Add(x, r) },
                       else_branch = e () => (float[2, 8] b) { b = Neg(x) }>
            z = Neg(x)
        }""",
            {"y"},
        ),
        (
            """<ir_version: 10, opset_import: ["": 20, "own": 1]>
        g (float[2, 8] x) => (float[2, 8] y, float[2, 8] z) { y = own.outer(x)
            z = Neg(x) }
        <domain: "own", opset_import: ["": 20, "own": 1]> outer (x) => (y) { y = own.inner(x) }
        <domain: "own", opset_import: ["": 20]> inner (x) => (y) { y = Bernoulli(x) }""",
            {"y"},
        ),
    ],
)
def test_outputs_that_hang_on_random_numbers(text: str, wanted: set[str]) -> None:
    assert drawn_outputs(onward.load(onnx.parser.parse_model(text))) == wanted


def test_what_is_drawn_is_not_called_different(tmp_path: Any, capsys: Any) -> None:
    onnx.save(onnx.parser.parse_model(TWO), tmp_path / "net.onnx")
    report = onward.verify(tmp_path / "net.onnx", "torch")
    assert report.status == "failed"
    outputs = {output.name: output for output in report.sides[0].trials[0].outputs}
    assert (outputs["noisy"].status, outputs["noisy"].kind) == ("failed", "drawn")
    assert outputs["plain"].status == "same"
    assert main(["verify", str(tmp_path / "net.onnx")]) == 2
    assert "Not verified" in capsys.readouterr().out
    assert onward.verify(onnx.parser.parse_model(DROPOUT.format(1)), "torch").status == "failed"
    assert onward.verify(onnx.parser.parse_model(DROPOUT.format(0)), "torch").ok


def test_a_defect_beside_what_is_drawn_is_found() -> None:
    model = onward.load(onnx.parser.parse_model(TWO))
    run = prepare("torch", model)

    def wrong(name: str) -> Any:
        def other(inputs: Inputs) -> Outputs:
            found = dict(run(inputs))
            return {**found, name: found[name] + 1}

        return other

    with pytest.warns(NotVerifiedWarning, match=r"it draws random numbers \(RandomNormalLike\)"):
        prove(model, wrong("noisy"))
    with pytest.raises(VerificationError, match="plain: worst error"):
        prove(model, wrong("plain"))
