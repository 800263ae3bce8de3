"""How a training shows itself: lines, notebooks, pictures, TensorBoard, and whatever else is told."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from onward.errors import WritingError
from onward.training import Callback, TensorBoard, Trainer, prepare
from onward.training.recipe.adapters import lora
from onward.training.recipe.optimizers import SGD
from onward.training.recipe.schedules import Cosine, Linear, Warmup
from onward.training.runtime.history import History
from onward.training.runtime.tensorboard import event, masked_checksum, record

DIGITS = Path(__file__).parents[3] / "examples/digits/digits.onnx"
SAMPLE = np.load(DIGITS.with_name("sample.npz"))
DATA = {"image": SAMPLE["image"], "labels": SAMPLE["label"].astype(np.int64)}


@pytest.fixture
def trainer() -> Trainer:
    return Trainer(prepare(str(DIGITS), trainable=["head.*"], schedule=Linear(10)))


def test_an_epoch_is_a_line_where_there_is_no_terminal(trainer: Trainer, capsys: pytest.CaptureFixture[str]) -> None:
    history = trainer.fit(DATA, 2, 8, val=DATA)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith(f"epoch 1/2: loss {history.mean_loss(1):.4g}, val loss ")
    assert "val accuracy" in lines[1] and lines[1].endswith(" s)")
    trainer.fit(DATA, 1, 8, progress=False)
    assert capsys.readouterr().err == ""


def test_what_is_said_of_a_history(trainer: Trainer) -> None:
    history = trainer.fit(DATA, 2, 8, val=DATA, progress=False)
    batches = len(history.losses)
    assert repr(history).startswith(f"History({batches} batches, 2 epochs; epoch 1: loss ")
    assert "val accuracy" in repr(history) and len(repr(history)) < 200
    shown = ElementTree.fromstring(history._repr_html_())
    titles = [text.text for text in shown.iter("{http://www.w3.org/2000/svg}text")]
    assert {"loss", "accuracy", "learning rate", "batch", "validation", "running mean"} <= set(titles)
    assert repr(History()) == "History(no batch yet)" and "<svg" in History()._repr_html_()


def test_what_is_said_of_a_trainer(trainer: Trainer) -> None:
    trainer.step(DATA)
    for words in ("adamw", "2 of 330 numbers", "image, labels", "steps: 1"):
        assert words in repr(trainer).lower()
    rows = ElementTree.fromstring(trainer._repr_html_()).iter("tr")
    assert ["steps", "1"] in [[cell.text for cell in row] for row in rows]


def test_what_is_said_of_a_training() -> None:
    options = {"clip_norm": 1.0, "clip_value": 0.1, "accumulate": 2, "average": 0.9, "schedule": Warmup(3, Cosine(9))}
    made = prepare(str(DIGITS), optimizer=SGD(lr=0.1), lora=lora(rank=2), **options)  # type: ignore[arg-type]
    assert repr(made) == (
        f"Trainable(loss: cross_entropy of logits; optimizer: {SGD(lr=0.1)}; "
        "schedule: up over 3 steps, then down to 0 of it along a cosine, over 9 steps; gradients: "
        "norm at most 1, each number within ±0.1; batches for a step: 2; adapters: of rank 2, beside head.weight; "
        "moving average of weights: 0.9 of it stays in a step; weights: 2 of 84 numbers; labels: labels; steps: 0)"
    )
    rows = ElementTree.fromstring(made._repr_html_()).iter("tr")
    assert ["batches for a step", "2"] in [[cell.text for cell in row] for row in rows]


def test_a_page_of_curves(trainer: Trainer, tmp_path: Path) -> None:
    history = trainer.fit(DATA, 2, 8, val=DATA, progress=False)
    history.plot(tmp_path / "curves.html")
    page = (tmp_path / "curves.html").read_text()
    assert page.count('<svg y="') == 3 and "prefers-color-scheme: dark" in page and "<script" not in page


def test_callbacks_are_told_in_order(trainer: Trainer) -> None:
    told: list[str] = []

    class Told(Callback):
        def on_step(self, trainer: Trainer, history: History) -> None:
            told.append(f"step {len(history.losses)}")
            if len(history.losses) == 3:
                raise KeyError("enough")

        def on_epoch(self, trainer: Trainer, history: History) -> None:
            told.append(f"epoch {history.epochs[-1]}")

        def on_end(self, trainer: Trainer, history: History) -> None:
            told.append("end")

    half = -(-len(DATA["labels"]) // 2)
    with pytest.raises(KeyError):
        trainer.fit(DATA, 2, half, callbacks=[Told()], progress=False)
    assert told == ["step 1", "step 2", "epoch 1", "step 3", "end"]


def events(folder: Path) -> list[Any]:
    """As TensorFlow reads them."""
    tf = pytest.importorskip("tensorflow")
    found = []
    for path in sorted(folder.glob("events.out.tfevents.*")):
        for one in tf.data.TFRecordDataset(str(path)):
            found.append(tf.compat.v1.Event.FromString(one.numpy()))
    return found


def test_tensorboard_reads_what_is_written(trainer: Trainer, tmp_path: Path) -> None:
    board = TensorBoard(tmp_path / "runs" / "1")
    history = trainer.fit(DATA, 2, 8, val=DATA, callbacks=[board], progress=False)
    first, *others = events(tmp_path / "runs" / "1")
    assert first.file_version == "brain.Event:2"
    found: dict[str, list[tuple[int, float]]] = {}
    for one in others:
        for value in one.summary.value:
            found.setdefault(value.tag, []).append((one.step, value.simple_value))
    wanted = {"loss/train": history.losses, "learning rate": history.rates}
    for tag, numbers in wanted.items():
        assert [step for step, _ in found[tag]] == list(range(1, len(numbers) + 1))
        assert [number for _, number in found[tag]] == pytest.approx(numbers)
    right = found["accuracy/validation"]
    assert [step for step, _ in right] == [e["batch"] for e in history.evaluations]
    assert [number for _, number in right] == pytest.approx([e["accuracy"] for e in history.evaluations])
    trainer.fit(DATA, 1, 8, callbacks=[board], progress=False)
    assert len(list((tmp_path / "runs" / "1").iterdir())) == 2


def test_records_and_their_checksums() -> None:
    """By the check value of CRC-32C, and a step that takes several bytes."""
    crc = 0xE3069283
    assert masked_checksum(b"123456789") == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    data = event(1.5, 300, {"a": 2.0})
    assert data == bytes([9]) + struct.pack("<d", 1.5) + bytes([16, 0xAC, 2, 42, 10, 10, 8, 10, 1]) + b"a" + bytes(
        [21]
    ) + struct.pack("<f", 2.0)
    assert struct.unpack("<Q", record(data)[:8]) == (len(data),) and len(record(data)) == len(data) + 16


@pytest.mark.skipif(os.name != "posix", reason="a folder of another kind")
def test_a_folder_that_cannot_be_written(trainer: Trainer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WritingError, match="cannot be written"):
        trainer.fit(DATA, 1, 8, callbacks=[TensorBoard(tmp_path / "file")], progress=False)
