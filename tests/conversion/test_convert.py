"""`onward.convert`: the pipeline behind the command, for files and for objects in memory."""

from pathlib import Path

import numpy as np
import onnx
import pytest

import onward
from onward.backends.backend import backend
from onward.errors import InvalidDataError, NotVerifiedWarning, OnwardError, VerificationError
from onward.verification.check import Verdict

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"


def test_a_file_becomes_a_package_that_is_verified(tmp_path: Path) -> None:
    done = onward.convert(DIGITS, to="torch", out=tmp_path / "net", report=tmp_path / "report.json")
    assert done.out == tmp_path / "net" and {"model.py", "weights.safetensors"} <= {p.name for p in done.out.iterdir()}
    assert [verdict.status for verdict in done.verdicts] == ["verified"]
    assert done.trainable[0].startswith("trainable: ") and not done.doubt
    assert str(done).endswith(f"written: {done.out}/ (model.py, weights.safetensors, onward.json)")
    assert '"status": "same"' in (tmp_path / "report.json").read_text()


def test_a_module_in_memory_goes_to_onnx_and_on(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU()).eval()
    spec = ["x:float32[batch,3]"]
    report = tmp_path / "report.json"
    done = onward.convert(net, to="onnx", out=tmp_path / "net.onnx", input=spec, report=report)
    assert '"status": "same"' in report.read_text()
    assert [verdict.status for verdict in done.verdicts] == ["verified"]
    there = onward.convert(net, to="torch", out=tmp_path / "net", input=spec)
    assert [verdict.status for verdict in there.verdicts] == ["verified", "verified"]


def test_a_model_in_memory(tmp_path: Path) -> None:
    model = onward.load(DIGITS)
    assert onward.convert(model, to="torch", out=tmp_path / "a", verify=False).verdicts == ()
    assert onward.convert(DIGITS.read_bytes(), to="torch", out=tmp_path / "b").verdicts[0].status == "verified"


def test_an_estimator_with_its_sample(tmp_path: Path) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    estimator = linear_model.LinearRegression().fit(rows, rows[:, 0])
    done = onward.convert(estimator, to="onnx", out=tmp_path / "linear.onnx", sample=rows)
    assert done.out.exists() and done.verdicts[0].status == "verified"


def test_a_tolerance_of_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that is a little off is refused and nothing is written, unless the user allows it or keeps it."""
    torch = backend("torch")
    to_numpy = type(torch).to_numpy
    monkeypatch.setattr(type(torch), "to_numpy", lambda self, value, dtype: to_numpy(self, value, dtype) + 0.01)
    with pytest.raises(VerificationError, match="nothing was written \\(keep=True writes"):
        onward.convert(DIGITS, to="torch", out=tmp_path / "net")
    assert not (tmp_path / "net").exists()
    kept = onward.convert(DIGITS, to="torch", out=tmp_path / "net", keep=True)
    assert kept.verdicts[0].status == "different" and kept.out.exists()
    assert kept.difference == str(kept.verdicts[0]) and not kept.doubt
    allowed = onward.convert(DIGITS, to="torch", out=tmp_path / "net", atol=0.02)
    assert allowed.verdicts[0].status == "verified"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"to": "abacus"}, "no format 'abacus'; there are .*torch.*onnx$"),
        ({"to": "pytorch"}, "no format 'pytorch'; .*; did you mean torch?"),
        ({"to": "torch", "dims": {"bach": 1}}, "no input has a dynamic dimension 'bach'; .*; did you mean batch?"),
        ({"to": "torch", "quick": True, "verify": False}, "quick is for the check, which verify=False leaves out"),
        ({"to": "torch", "inputs": "missing.npz"}, "missing.npz"),
        ({"to": "torch", "inputs_nhwc": ["x"]}, "inputs_nhwc is for to .*tensorflow.*`onward layout`"),
        ({"to": "torch", "cast": "up"}, "cast is for to tensorflow, savedmodel, tflite"),
        ({"to": "torch", "opset": 13}, "opset is for to onnx, and for other frameworks' models"),
        ({"to": "tflite", "quantize": "int8"}, "quantize='int8' needs calibration data: give calibrate='data.npz'"),
        ({"to": "onnx"}, "it is an ONNX model already; opset=13 writes it at that opset"),
        ({"to": "onnx", "opset": 5}, "opset 5 cannot be written: give one from 7"),
        ({"to": "onnx", "opset": 13, "ir_version": 5}, "IR version 5 cannot hold the model, which needs 7"),
        ({"to": "torch", "ir_version": 8}, "ir_version is for to onnx"),
        ({"to": "onnx", "dims": {"batch": 1}}, "dims is for conversions to a framework"),
        ({"to": "torch", "verify_on": "abacus"}, "there is no runner 'abacus'"),
    ],
)
def test_options_that_do_not_fit(options: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(OnwardError, match=words):
        onward.convert(DIGITS, out=tmp_path / "out", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("opset", "version"), [(11, None), (13, 8), (21, None)])
def test_an_onnx_file_is_written_at_another_opset(opset: int, version: int | None, tmp_path: Path) -> None:
    done = onward.convert(DIGITS, to="onnx", out=tmp_path / "other.onnx", opset=opset, ir_version=version)
    assert done.verdicts[0].status == "verified" and "digits.onnx" in done.verdicts[0].words
    made, before = onnx.load(done.out), onnx.load(DIGITS)
    assert made.opset_import[0].version == opset and made.ir_version == (version or {11: 6, 21: 10}[opset])
    assert [t.name for t in made.graph.initializer] == [t.name for t in before.graph.initializer]
    assert any(remark.startswith(f"opset {opset}, IR version") for remark in done.remarks)


def test_a_file_that_computes_something_else_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from onward.canon.downgrade import ENTRIES, load_downgrades
    from onward.graph.rewriter import needed

    load_downgrades()
    monkeypatch.setitem(ENTRIES["", "CastLike"], 15, lambda node, op: op.replace(op("Neg", needed(node, 0))))
    text = """<ir_version: 8, opset_import: ["" : 15]> g (float[3] x) => (float[3] y) { y = CastLike (x, x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "new.onnx")
    with pytest.raises(VerificationError, match="differs"):
        onward.convert(tmp_path / "new.onnx", to="onnx", out=tmp_path / "old.onnx", opset=13)
    assert not (tmp_path / "old.onnx").exists()


def test_the_check_is_made_on_inputs_of_the_users(tmp_path: Path) -> None:
    """A single set of theirs, or one that is made up if it has to be quick; inputs that do not fit are refused."""
    images = {"image": np.zeros((3, 1, 8, 8), np.float32)}
    given = onward.convert(DIGITS, to="torch", out=tmp_path / "net", inputs=images)
    assert "over 1 set of inputs" in given.verdicts[0].words
    quick = onward.convert(DIGITS, to="torch", out=tmp_path / "net", quick=True)
    assert "over 1 set of inputs" in quick.verdicts[0].words
    with pytest.raises(InvalidDataError, match="image"):
        onward.convert(DIGITS, to="torch", out=tmp_path / "other", inputs={"image": np.zeros((3, 2), np.float32)})
    assert not (tmp_path / "other").exists()


def test_a_description_is_not_data(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    with pytest.raises(OnwardError, match=r"is not understood; .*; inputs='.*x.npy' gives data to check on"):
        onward.convert(torch.nn.ReLU(), to="onnx", out=tmp_path / "a.onnx", input=[str(tmp_path / "x.npy")])
    with pytest.raises(OnwardError, match=r"input=\['x:float32\[batch,3\]'\] describes"):
        onward.convert(torch.nn.ReLU(), to="onnx", out=tmp_path / "a.onnx", inputs=["x:float32[batch,3]"])


def test_a_result_that_cannot_be_checked_says_so(tmp_path: Path) -> None:
    """Random numbers are others each time: the result is written, with a warning to whoever does not look."""
    node = onnx.helper.make_node("RandomNormalLike", ["x"], ["y"])
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in "xy")
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y]))
    with pytest.warns(NotVerifiedWarning, match="not verified: it draws random numbers"):
        done = onward.convert(model, to="torch", out=tmp_path / "net")
    assert done.doubt.startswith("not verified: it draws") and (tmp_path / "net/model.py").exists()


def test_a_verdict_is_a_sentence() -> None:
    assert str(Verdict("not the same", "by int8")) == "not the same, by int8"


def test_a_size_that_only_the_original_tells(tmp_path: Path) -> None:
    """A node that wants a multiple of 37 goes as the model is simplified; without it, no sizes would be found."""
    graph = onnx.parser.parse_graph(
        "g (float[n] x) => (float[m] y) <int64[2] rows = {-1, 37}, int64[1] flat = {-1}>"
        " { a = Reshape(x, rows) b = Reshape(a, flat) y = Exp(b) }"
    )
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    done = onward.convert(proto, to="onnx", out=tmp_path / "small.onnx", simplify=True)
    assert len(onnx.load(done.out).graph.node) < 3
    assert [verdict.status for verdict in done.verdicts] == ["verified"]


def test_weights_that_are_no_inputs_any_more_are_told(tmp_path: Path) -> None:
    text = "g (float[n, 3] x, float[3, 4] w) => (float[n, 4] y) { a = Neg(x) y = MatMul(a, w) }"
    graph = onnx.parser.parse_graph(text)
    graph.initializer.append(onnx.numpy_helper.from_array(np.ones((3, 4), np.float32), "w"))
    proto = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    told = "left out of the inputs: 1 weight that the file lists there; without=['inputs'] keeps them"
    done = onward.convert(proto, to="onnx", out=tmp_path / "small.onnx", simplify=True)
    assert told in done.remarks and [value.name for value in onnx.load(done.out).graph.input] == ["x"]
    kept = onward.convert(proto, to="onnx", out=tmp_path / "open.onnx", simplify=True, without=["inputs"])
    assert told not in kept.remarks and [value.name for value in onnx.load(kept.out).graph.input] == ["x", "w"]
