import re
from pathlib import Path

import nets
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from defects import DEFECTS, Defect

from onward import runners
from onward.errors import UnsupportedError
from onward.model import Model, load
from onward.runners.calls import Run
from onward.verification.locate import reduce as module
from onward.verification.locate.bisect import Subject, bisect
from onward.verification.locate.reduce import reduce

ORT = "onnxruntime"


def of(what: str) -> Defect:
    return next(defect for defect in DEFECTS if defect.what == what)


def reduced(defect: Defect, out: Path) -> Path:
    good, bad = map(load, defect.models())
    source, other, inputs = Subject(good, ORT), Subject(bad, ORT), defect.inputs()
    return reduce(source, other, inputs, bisect(source, other, inputs, noise={}).culprit, out)


def outputs(path: Path, inputs: dict) -> list[np.ndarray]:
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, inputs)


@pytest.mark.parametrize(
    "what",
    [
        "weights 1 % too large",
        "inputs of a MatMul swapped",
        "the order of an LSTM's gates",
        "a zero point left out",
        "an attribute inside a Loop",
        "an attribute of a function's call",
    ],
)
def test_the_node_alone_shows_the_difference(what, tmp_path):
    folder = reduced(of(what), tmp_path / "new" / "folder")
    with np.load(folder / "inputs.npz") as archive:
        inputs = dict(archive)
    found = {}
    for name, recorded in (("source", "expected"), ("other", "actual")):
        proto = onnx.load(folder / f"{name}.onnx")
        onnx.checker.check_model(proto, full_check=True)
        assert [node.name for node in proto.graph.node] == [of(what).node]
        (found[name],) = outputs(folder / f"{name}.onnx", inputs)
        with np.load(folder / f"{recorded}.npz") as archive:
            np.testing.assert_allclose(archive[proto.graph.output[0].name], found[name], rtol=1e-5, atol=1e-6)
    distance = np.linalg.norm(found["source"] - found["other"].astype(float))
    assert distance > 5e-3 * np.linalg.norm(found["source"])


def test_the_batch_is_halved_while_the_difference_shows(tmp_path):
    good, bad = map(load, of("the mode of a padding").models())
    inputs = {"image": np.random.default_rng(0).normal(size=(2, 4, 8, 8)).astype(np.float32)}
    inputs["image"][0] = 1.0  # there the two agree
    source, other = Subject(good, ORT), Subject(bad, ORT)
    folder = reduce(source, other, inputs, bisect(source, other, inputs, noise={}).culprit, tmp_path)
    with np.load(folder / "inputs.npz") as archive:
        np.testing.assert_array_equal(archive["image"], inputs["image"][1:])


def test_one_model_on_two_runners_is_one_file_and_a_command(tmp_path):
    def broken(name: str, model: Model) -> Run:
        copy = model.ir.clone()
        for node in copy.graph:
            if node.op_type == "HardSigmoid":
                node.attributes["alpha"] = ir.AttrFloat32("alpha", 0.2)
        return runners.prepare(ORT, Model(copy))

    model, inputs = load(nets.mobilenet(1)), of("dilation").inputs()
    source, other = Subject(model, ORT), Subject(model, "torch", broken)
    culprit = bisect(source, other, inputs, all_nodes=True).culprit
    folder = reduce(source, other, inputs, culprit, tmp_path)
    assert {path.name for path in folder.iterdir()} == {
        *("model.onnx", "inputs.npz", "expected.npz", "actual.npz", "README.md")
    }
    text = (folder / "README.md").read_text()
    assert "onward verify model.onnx --inputs inputs.npz --on onnxruntime,torch" in text
    assert "HardSigmoid 'gate0'" in text
    assert re.search(r"onnxruntime: \d", text)


def test_inputs_that_numpy_cannot_store_become_a_test_data_set(tmp_path):
    net = nets.Net(0, x=(np.float32, 2, 3))
    parts = net("SequenceConstruct", "x", net("Tanh", "x"), name="parts")
    model = net.model(net("Relu", net("ConcatFromSequence", parts, axis=0, name="join")))
    bad = onnx.ModelProto.FromString(model.SerializeToString())
    bad.graph.node[2].attribute[0].i = 1
    source, other = Subject(load(model), ORT), Subject(load(bad), ORT)
    inputs = {"x": np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)}
    culprit = bisect(source, other, inputs, noise={}).culprit
    assert culprit.node == "join"
    folder = reduce(source, other, inputs, culprit, tmp_path)
    sequence = onnx.SequenceProto.FromString((folder / "test_data_set_0" / "input_0.pb").read_bytes())
    np.testing.assert_array_equal(onnx.numpy_helper.to_list(sequence)[0], inputs["x"])
    assert "--inputs test_data_set_0" in (folder / "README.md").read_text()


def test_nothing_is_written_over_two_gigabytes(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LARGEST_FILE", 1000)
    with pytest.raises(UnsupportedError, match=r"conv0a.*2 GB"):
        reduced(of("weights 1 % too large"), tmp_path / "none")
    assert not (tmp_path / "none").exists()
