"""Fewer bits, as a conversion is asked for them."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import onward
from onward.conversion.request import Request
from onward.conversion.rewritten import at_wanted, with_fewer_nodes
from onward.conversion.sources import Original
from onward.errors import InvalidDataError, OnwardError
from onward.runners import prepare

DIGITS = "examples/digits/digits.onnx"
RNG = np.random.default_rng(0)
IMAGES = RNG.random((64, 1, 8, 8)).astype(np.float32)


def classes() -> np.ndarray:
    return np.asarray(prepare("onnxruntime", onward.load(DIGITS))({"image": IMAGES})["logits"]).argmax(1)


def test_float16(tmp_path: Path) -> None:
    out = tmp_path / "half.onnx"
    done = onward.convert(DIGITS, to="onnx", out=out, float16=True, keep_float=["head.*"])
    (verdict,) = done.verdicts
    assert verdict.status == "verified" and "rounding to float16" in verdict.words
    assert "  node_linear (Gemm): as asked" in done.remarks
    types = {value.dtype for value in onward.load(out).ir.graph.initializers.values()}
    assert types == {ir.DataType.FLOAT16, ir.DataType.FLOAT}
    assert onward.load(out).nbytes < 0.55 * onward.load(DIGITS).nbytes


def test_numbers_of_classes_that_change_are_told(tmp_path: Path) -> None:
    """1 and 1.0001 are one number in float16."""
    proto = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        net (float[32, 4] x) => (int64[32] best) <int64[1] axis = {1}, float more = {1.0001}> {
            one = ReduceSum(x, axis) two = Mul(one, more) both = Concat<axis = 1>(one, two)
            best = ArgMax<axis = 1, keepdims = 0>(both) }""")
    onnx.save(proto, tmp_path / "race.onnx")
    rows = {"x": 1 + RNG.random((32, 4), np.float32)}
    done = onward.convert(tmp_path / "race.onnx", to="onnx", out=tmp_path / "x.onnx", float16=True, calibrate=rows)
    assert done.verdicts[0].status == "verified" and "of best, what decides them" in done.verdicts[0].words
    (line,) = (line for line in done.remarks if line.startswith("best: "))
    assert line.startswith("best: races that are too near for float16 go another way: ") and "elements differ" in line


def test_int8_within_a_loss_of_accuracy(tmp_path: Path) -> None:
    np.savez(tmp_path / "images.npz", image=IMAGES)
    np.save(tmp_path / "labels.npy", classes())
    how = {"quantize": "int8", "calibrate": str(tmp_path / "images.npz"), "labels": str(tmp_path / "labels.npy")}
    done = onward.convert(DIGITS, to="onnx", out=tmp_path / "int8.onnx", max_loss=0.05, **how)
    assert "of accuracy is lost by int8" in done.verdicts[0].words and done.verdicts[0].status == "verified"
    assert onward.load(tmp_path / "int8.onnx").nbytes < 0.3 * onward.load(DIGITS).nbytes


def test_what_is_lost_without_a_bound_is_said_to_be_lost(tmp_path: Path) -> None:
    done = onward.convert(DIGITS, to="onnx", out=tmp_path / "x.onnx", quantize="int8", calibrate={"image": IMAGES})
    assert done.verdicts[0].status == "not the same"
    assert "the outputs are off by" in str(done.verdicts[0])


def test_another_opset_at_once(tmp_path: Path) -> None:
    done = onward.convert(DIGITS, to="onnx", out=tmp_path / "x.onnx", float16=True, opset=17)
    assert next(line.split(" (")[1] for line in done.remarks if line.startswith("weights")).startswith("0.50 of it")
    assert onward.load(tmp_path / "x.onnx").opset[""] == 17


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"to": "torch", "float16": True}, "float16 is for to='onnx'"),
        ({"float16": True, "quantize": "int4"}, "choose one of them"),
        ({"quantize": "int8"}, "needs calibration data"),
        ({"quantize": "dynamic"}, "is for to='tflite'"),
        ({"float16": True, "block_size": 32}, "block_size is for models in int4"),
        ({"quantize": "int8", "calibrate": {"image": IMAGES}, "max_loss": 2.0}, "no share from 0 to 1"),
        ({"quantize": "int8", "labels": [0], "inputs": None}, "belong to rows of data"),
        ({"float16": True, "io": "int8"}, "ask for these as well"),
    ],
)
def test_options_that_do_not_fit_are_refused(tmp_path: Path, asked: dict[str, Any], words: str) -> None:
    with pytest.raises(OnwardError, match=words):
        onward.convert(DIGITS, out=tmp_path / "x", **{"to": "onnx", **asked})
    assert not list(tmp_path.iterdir())


def test_labels_fit_the_rows(tmp_path: Path) -> None:
    with pytest.raises(InvalidDataError, match="64 rows"):
        onward.convert(
            DIGITS,
            to="onnx",
            out=tmp_path / "x.onnx",
            quantize="int8",
            calibrate={"image": IMAGES},
            labels=classes()[:10],
        )


def test_the_original_is_compared_with_and_not_what_an_earlier_step_made_of_it() -> None:
    request = Request(DIGITS, "onnx", Path("x.onnx"), simplify=True, opset=17)
    original = Original(onward.load(DIGITS))
    simplified = with_fewer_nodes(original, request)
    assert simplified.run is not None
    assert at_wanted(simplified, request).run is simplified.run
    assert at_wanted(original, request).run is not None


def test_the_report_says_what_became_of_a_file_at_another_opset(tmp_path: Path) -> None:
    done = onward.convert(DIGITS, to="onnx", out=tmp_path / "old.onnx", opset=13, simplify=True)
    said = [line for line in done.remarks if line.startswith(("weights:", "time of a run", "opset 13"))]
    assert [line.split(":")[0].split(",")[0] for line in said] == [
        "opset 13",
        "weights",
        "time of a run in ONNX Runtime",
    ]
    assert "nodes: 89 → " in said[1]


def test_the_report_of_integers_says_nothing_of_training(tmp_path: Path) -> None:
    done = onward.convert(DIGITS, to="onnx", out=tmp_path / "x.onnx", quantize="int8", calibrate={"image": IMAGES[:8]})
    assert not done.trainable and all("off by 0 %" not in line for line in done.remarks)
