"""`onward layout` writes an ordinary model, verified, or nothing."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from referee import run
from test_networks import from_tensorflow
from test_rules import model as convolutions

from onward.cli import main
from onward.model import load

X = np.random.default_rng(0).standard_normal((2, 4, 6, 8)).astype(np.float32)
LAST = (0, 2, 3, 1)


def layout(proto: onnx.ModelProto, folder: Path, *options: str) -> onnx.ModelProto:
    onnx.save(proto, folder / "in.onnx")
    assert main(["layout", str(folder / "in.onnx"), "--out", str(folder / "out.onnx"), *options]) == 0
    made = onnx.load(folder / "out.onnx")
    onnx.checker.check_model(made, full_check=True)
    assert {node.domain for node in made.graph.node} == {""}
    return made


def count(proto: onnx.ModelProto) -> int:
    return sum(node.op_type == "Transpose" for node in proto.graph.node)


def test_to_nhwc(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = convolutions("b = Relu(a)", "n")
    made = layout(given, tmp_path, "--to", "nhwc")
    assert [d.dim_value for d in made.graph.input[0].type.tensor_type.shape.dim] == [0, 6, 8, 4]
    (wanted,), (found,) = (run(load(proto), {"x": x}).values() for proto, x in ((given, X), (made, X.transpose(LAST))))
    np.testing.assert_allclose(found, wanted.transpose(LAST), rtol=1e-5, atol=1e-5)
    told = capsys.readouterr().err
    assert "verified" in told and "transposes: 0 before, 2 after" in told and "input x" in told


def test_only_named_ones(tmp_path: Path) -> None:
    made = layout(
        convolutions("b = Relu(a)", "n"), tmp_path, "--to", "nhwc", "--inputs-nhwc", "x", "--outputs-nhwc", "y"
    )
    assert count(made) == 2
    with_input = layout(convolutions("b = Relu(a)", "2"), tmp_path, "--to", "nchw", "--inputs-nhwc", "x")
    assert count(with_input) == 1
    ends = [*with_input.graph.input, *with_input.graph.output]
    shapes = [[dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in ends]
    assert shapes == [[2, 6, 8, 4], [2, 4, 6, 8]]


@pytest.mark.parametrize("options, left", [((), 0), (("--same-io",), 2)])
def test_to_nchw(options: tuple[str, ...], left: int, tmp_path: Path) -> None:
    assert count(layout(from_tensorflow(4), tmp_path, "--to", "nchw", *options)) == left


def test_old_files_are_upgraded(tmp_path: Path) -> None:
    old = onnx.parser.parse_model(
        '<ir_version: 3, opset_import: ["" : 9]> g (float[1,4,6,8] x, float[4,4,1,1] w) => (float[1,4,1,1] y)'
        "{ a = Conv(x, w) t = Transpose<perm=[0,2,3,1]>(a) s = Softmax<axis=3>(t)"
        "u = Transpose<perm=[0,3,1,2]>(s) y = ReduceMean<axes=[2,3]>(u) }"
    )
    old.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((4, 4, 1, 1), np.float32), "w"))
    assert count(layout(old, tmp_path, "--to", "nchw")) == 0


@pytest.mark.parametrize(
    "options, words",
    [
        (["--inputs-nhwc", "nothing"], "there is no input 'nothing'"),
        (["--outputs-nhwc", "p"], "the output 'p' is of rank 2"),
        (["--same-io", "--inputs-nhwc", "x"], "--same-io"),
    ],
)
def test_refusals(options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(from_tensorflow(1), tmp_path / "in.onnx")
    out = tmp_path / "out.onnx"
    assert main(["layout", str(tmp_path / "in.onnx"), "--to", "nhwc", "--out", str(out), *options]) == 2
    assert words in capsys.readouterr().err and not out.exists()


def test_a_difference_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A defect in the pass is found before anything is written."""
    from onward.layout import rewrite

    monkeypatch.setattr(rewrite, "between", lambda given, wanted: (0, 3, 2, 1))
    onnx.save(convolutions("b = Mul(a, hw)", "2"), tmp_path / "in.onnx")
    out = tmp_path / "out.onnx"
    assert main(["layout", str(tmp_path / "in.onnx"), "--to", "nchw", "--inputs-nhwc", "x", "--out", str(out)]) == 1
    assert not out.exists()
