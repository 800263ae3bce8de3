"""Training over epochs: kinds of data, evaluation, early stopping, curves, Ctrl-C."""

from __future__ import annotations

import csv
import math
import os
import re
import signal
import sys
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from small_networks import batches, network, onnx_of
from torch.utils.data import DataLoader, TensorDataset

from onward.errors import InvalidDataError, OnwardError
from onward.training.recipe.optimizers import SGD, AdamW, Optimizer
from onward.training.runtime.callbacks import Callback
from onward.training.runtime.curve import smoothed, write_plot
from onward.training.runtime.epochs import History
from onward.training.runtime.trainer import DivergedError, Trainer
from onward.training.trainable import prepare

PARTS = batches("mlp", 6, size=16)
X, Y = (torch.cat(parts).numpy() for parts in zip(*PARTS, strict=True))
DATA = {"x": X, "labels": Y}
VAL = batches("mlp", 1, size=64, seed=3)


@pytest.fixture(scope="module")
def mlp() -> bytes:
    return onnx_of(network("mlp"), PARTS[0][0])


def trainer(mlp: bytes, optimizer: Optimizer | None = None) -> Trainer:
    return Trainer(prepare(mlp, optimizer=optimizer or AdamW(lr=1e-2)), threads=1)


FORMS: dict[str, Any] = {
    "tuple": (X, Y),
    "tensors": (torch.from_numpy(X), torch.from_numpy(Y)),
    "tuples": [(x, y) for x, y in PARTS],
    "dicts": [{"labels": y, "x": x} for x, y in PARTS],
    "loader": DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), batch_size=16),
}


@pytest.mark.parametrize("form", FORMS)
def test_data_of_any_form_give_the_same_curve(form: str, mlp: bytes) -> None:
    expected = trainer(mlp).fit(DATA, epochs=2, batch=16, shuffle=False)
    assert trainer(mlp).fit(FORMS[form], epochs=2, batch=16, shuffle=False) == expected
    assert len(expected.losses) == 12 and expected.epochs == [1] * 6 + [2] * 6


def test_shuffling_follows_the_seed_and_leaves_nothing_out(mlp: bytes) -> None:
    first, same, other = (trainer(mlp, SGD(lr=0.0)).fit(DATA, 2, 40, seed=seed) for seed in (0, 0, 1))
    assert first == same and first.losses != other.losses
    assert first.losses[:3] != first.losses[3:], "each epoch has its own order"
    whole = trainer(mlp).evaluate(DATA)["loss"]
    for epoch in (first.losses[:3], first.losses[3:], other.losses[:3]):
        assert np.average(epoch, weights=[40, 40, 16]) == pytest.approx(whole, rel=1e-5)


def test_evaluation_after_each_epoch(mlp: bytes) -> None:
    made = trainer(mlp)
    told: list[int] = []

    class Told(Callback):
        def on_epoch(self, trainer: Trainer, history: History) -> None:
            told.append(len(history.losses))

    history = made.fit(DATA, 30, 16, val=VAL, callbacks=[Told()])
    assert [e["epoch"] for e in history.evaluations] == list(range(1, 31)) and told == list(range(6, 181, 6))
    first, last = history.evaluations[0], history.evaluations[-1]
    assert last["accuracy"] > 0.8 and last["accuracy"] > first["accuracy"] and last["loss"] < first["loss"]
    assert history.evaluations[-1] == {"batch": 180, "epoch": 30, **made.evaluate(VAL)}


def test_early_stopping_goes_back_to_the_best_weights(mlp: bytes) -> None:
    made = trainer(mlp, AdamW(lr=0.3))
    history = made.fit(DATA, 60, 16, val=VAL, patience=3)
    losses = [e["loss"] for e in history.evaluations]
    best = int(np.argmin(losses))
    assert history.stopped == "early" and len(losses) == best + 4 < 60
    assert made.evaluate(VAL)["loss"] == losses[best]


def test_ctrl_c_ends_after_a_whole_step_with_a_checkpoint(mlp: bytes, tmp_path: Path) -> None:
    def pressed() -> Any:
        for i, part in enumerate(PARTS):
            if i == 3:
                os.kill(os.getpid(), signal.SIGINT)
            yield part

    before = signal.getsignal(signal.SIGINT)
    made = trainer(mlp)
    history = made.fit(pressed(), checkpoint=tmp_path / "c")
    assert history.stopped == "interrupted" and len(history.losses) == 4
    assert signal.getsignal(signal.SIGINT) is before
    again = trainer(mlp)
    rest = again.fit(PARTS, checkpoint=tmp_path / "c", resume=True)
    assert rest.losses == trainer(mlp).fit(PARTS).losses


def test_a_thread_may_train(mlp: bytes) -> None:
    found: list[History] = []
    thread = threading.Thread(target=lambda: found.append(trainer(mlp).fit(PARTS)))
    thread.start()
    thread.join()
    assert found[0] == trainer(mlp).fit(PARTS)


REFUSED = {
    "an iterator": (lambda: iter(PARTS), {"epochs": 2}, "no batch in epoch 2; an iterator gives its batches only once"),
    "no batch": (list, {}, "no batch in epoch 1$"),
    "one array": (lambda: X, {}, "data of type ndarray cannot be trained on"),
    "too few": (lambda: [(X,)], {}, "batch 1 consists of 1 arrays, but a step takes x, labels"),
    "no sample": (lambda: {"x": X[:0], "labels": Y[:0]}, {}, "the data hold no sample"),
    "rows": (lambda: {"x": X, "labels": Y[:7]}, {}, "different numbers of samples: x has 96, labels has 7"),
    "text": (lambda: ["a"], {}, "batch 1 is a str"),
    "epochs": (lambda: DATA, {"epochs": 0}, "epochs is 0: give at least 1"),
    "patience": (lambda: DATA, {"patience": 2}, "patience needs data to evaluate on"),
    "every": (lambda: DATA, {"every": 2}, "there is no checkpoint"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, mlp: bytes) -> None:
    data, options, message = REFUSED[case]
    with pytest.raises(OnwardError, match=message):
        trainer(mlp).fit(data(), **options)


def test_an_error_names_the_data(mlp: bytes) -> None:
    with pytest.raises(InvalidDataError, match="'labels' at 0 is 7"):
        trainer(mlp).fit({"x": X, "labels": np.full_like(Y, 7)})


def test_curve_as_csv_and_svg(mlp: bytes, tmp_path: Path) -> None:
    history = trainer(mlp).fit(DATA, 3, 16, val=VAL)
    history.csv(tmp_path / "curve.csv")
    lines = list(csv.DictReader((tmp_path / "curve.csv").open()))
    assert [float(line["loss"]) for line in lines] == history.losses
    assert [float(line["val_loss"]) for line in lines if line["val_loss"]] == [e["loss"] for e in history.evaluations]
    history.plot(tmp_path / "curve.svg")
    assert [len(points) for points in curves(tmp_path / "curve.svg")] == [len(lines), len(lines), 3, 3]
    assert {float(line["lr"]) for line in lines} == {history.rates[0]} and len(history.rates) == len(lines)
    with pytest.raises(OnwardError, match="cannot be written"):
        history.csv(tmp_path / "nowhere" / "curve.csv")


def curves(path: Path) -> list[list[tuple[float, float]]]:
    """The points of each line in a picture, in its own units."""
    drawn = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}path")
    paths = [d for line in drawn if "h0" in (d := line.get("d", ""))]
    pairs = [re.findall(r"([\d.]+) ([\d.]+)", line) for line in paths]
    return [[(float(x), float(y)) for x, y in line] for line in pairs]


@pytest.mark.parametrize("losses", [[], [1.0], [2.0, 2.0], [3.0, 1.0, 2.0], [2.0, math.inf, 1.0]])
def test_any_curve_can_be_drawn(losses: list[float], tmp_path: Path) -> None:
    write_plot(tmp_path / "curve.svg", losses, [{"batch": len(losses), "loss": loss} for loss in losses[-1:]])
    found = curves(tmp_path / "curve.svg")
    assert [len(line) for line in found[:1]] == [sum(map(math.isfinite, losses))] * bool(losses)
    assert all(0 <= x <= 800 and 0 <= y <= 360 for line in found for x, y in line)
    assert len(smoothed(losses)) == len(losses) and (not losses or smoothed(losses)[0] == losses[0])


def test_a_higher_loss_is_drawn_higher(tmp_path: Path) -> None:
    write_plot(tmp_path / "curve.svg", [3.0, 1.0, 2.0], [])
    (x0, y0), (x1, y1), (x2, y2) = curves(tmp_path / "curve.svg")[0]
    assert x0 < x1 < x2 and y0 < y2 < y1


def test_a_long_curve_keeps_its_peaks(tmp_path: Path) -> None:
    losses = [1.0] * 50_000
    losses[31_234] = 9.0
    write_plot(tmp_path / "curve.svg", losses, [])
    line = curves(tmp_path / "curve.svg")[0]
    assert len(line) <= 2000 and sum(y < 100 for _, y in line) == 1


def test_a_png_is_drawn_by_matplotlib(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write_plot(tmp_path / "curve.png", [3.0, 1.0, 2.0], [{"batch": 3, "loss": 2.0, "accuracy": 0.5}], [0.1, 0.2, 0.3])
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("name", "message"),
    [("a.png", r"matplotlib is not installed: pip install .onward\[plots\]"), ("a.gif", r"\.svg, \.html or \.png")],
)
def test_a_curve_that_cannot_be_drawn(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(OnwardError, match=message):
        write_plot(tmp_path / name, [1.0], [])
    assert not list(tmp_path.iterdir())


def test_ruined_weights_do_not_take_the_place_of_a_good_checkpoint(mlp: bytes, tmp_path: Path) -> None:
    """The last step of an epoch goes too far: no loss has shown it when the checkpoint is due."""
    path, size = tmp_path / "checkpoint", len(DATA["labels"])

    def made() -> Trainer:
        return Trainer(prepare(mlp, schedule=lambda step: np.inf if step == 2 else 1.0), threads=1)

    made().fit(DATA, epochs=1, batch=size, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(DivergedError, match=r"step 2 went too far: the weight .* Try a smaller learning rate"):
        made().fit(DATA, epochs=2, batch=size, checkpoint=path, resume=True)
    assert path.read_bytes() == before
    with pytest.raises(DivergedError, match="step 2 went too far"):
        made().fit(DATA, epochs=2, batch=size)


def test_what_was_learnt_before_a_bad_batch_is_kept(mlp: bytes, tmp_path: Path) -> None:
    """Training that goes on from there with whole data is as if nothing had happened."""
    whole = trainer(mlp).fit(PARTS, epochs=2)
    bad = [*PARTS[:4], (PARTS[4][0][:, :5], PARTS[4][1]), *PARTS[5:]]
    with pytest.raises(InvalidDataError, match=r"'x' is of shape \[16, 5\], but a step takes"):
        trainer(mlp).fit(bad, epochs=2, checkpoint=tmp_path / "checkpoint")
    later = trainer(mlp).fit(PARTS, epochs=2, checkpoint=tmp_path / "checkpoint", resume=True)
    assert later.losses == whole.losses
