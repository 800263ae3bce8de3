"""`onward train verify`, and the check that `onward train export` ends with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from onward.cli import main
from onward.errors import RunFailure
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import prepare
from onward.training.verification import proof
from onward.training.verification.results import Check, SideResult, TrainingReport

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"
SAMPLE = np.load(DIGITS.with_name("sample.npz"))


@pytest.fixture
def trainable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    prepare(str(DIGITS), optimizer="momentum").save("trainable.onnx")
    np.savez("data.npz", image=SAMPLE["image"], labels=SAMPLE["label"].astype(np.int64))
    return tmp_path


def test_verify(trainable: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--steps", "2", "--data", "data.npz", "--batch", "4", "--html", "page.html", "--json"]
    assert main(["train", "verify", "trainable.onnx", "--on", "onnxruntime,torch", *options]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["status"], found["data"], len(found["losses"])) == ("same", "data.npz", 2)
    page = (trainable / "page.html").read_text()
    assert "trainable.onnx" in page and page.count('<svg class="chart"') == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--on", "onnxruntime,torhc"], "a training is not exported to 'torhc'"),
        (["--on", "torch,"], "names with commas between"),
        (["--data", "nothing.npz"], "nothing.npz"),
    ],
)
def test_bad_input(trainable: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "verify", "trainable.onnx", *words]) == 2
    assert message in capsys.readouterr().err


CHECKS = {
    "same": SideResult("torch", (1.0,), (1e-4,), (Check(1, "loss", "loss", "same", 1e-7, 1e-4),)),
    "different": SideResult(
        "torch", (1.0,), difference=Check(1, "gradient", "fc.weight", "different", 1.0, 1e-4, "it is far off")
    ),
    "crashed": SideResult("torch", failure="torch: it crashed"),
    "refused": SideResult("torch", failure="no such optimizer", refused=True),
}


def export(monkeypatch: pytest.MonkeyPatch, side: SideResult | Exception, *words: str) -> int:
    """The exit code where the check finds this."""

    def found(*_: object, **__: object) -> TrainingReport:
        if isinstance(side, Exception):
            raise side
        return TrainingReport("m", 1, sides=[side])

    monkeypatch.setattr(proof, "verify", found)
    return main(["train", "export", "trainable.onnx", "--to", "torch", "--out", "net", *words])


def test_export_writes_what_was_verified(
    trainable: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(monkeypatch, CHECKS["same"]) == 0
    assert (trainable / "net/train.py").exists()
    assert "verified: 1 step agrees" in capsys.readouterr().err


@pytest.mark.parametrize("how", ["different", "crashed"])
def test_export_writes_nothing_that_differs(
    how: str, trainable: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(monkeypatch, CHECKS[how]) == 1
    assert not (trainable / "net").exists()
    assert "nothing was written" in capsys.readouterr().err
    assert export(monkeypatch, CHECKS[how], "--keep") == 4
    assert (trainable / "net/train.py").exists()
    assert "kept as asked" in capsys.readouterr().err


def test_export_says_what_it_could_not_check(
    trainable: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(monkeypatch, CHECKS["refused"]) == 2
    assert not (trainable / "net").exists()
    assert export(monkeypatch, RunFailure("onnxruntime: no room")) == 3
    assert (trainable / "net/train.py").exists()
    assert "not verified: onnxruntime: no room" in capsys.readouterr().err
    assert export(monkeypatch, AssertionError("not asked"), "--no-verify", "--force") == 0


def test_a_trainer_is_verified_where_it_is(trainable: Path) -> None:
    """Its learning rate is that of the trainer, and its steps go on."""
    trainer = Trainer(prepare(str(DIGITS), optimizer="momentum"), lr=0.05)
    trainer.step({"image": SAMPLE["image"], "labels": SAMPLE["label"].astype(np.int64)})
    found = proof.proven(trainer, "torch", steps=2, data="data.npz", batch=4)
    assert found.status == "verified", found
