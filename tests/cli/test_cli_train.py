"""`onward train`: the way from a model to a tuned one, and bad input in one line."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from onward.cli import main

ROOT = Path(__file__).parents[2]
DIGITS = ROOT / "examples/digits/digits.onnx"
SAMPLE = np.load(DIGITS.with_name("sample.npz"))
IMAGES, LABELS = np.tile(SAMPLE["image"], (8, 1, 1, 1)), np.tile(SAMPLE["label"].astype(np.int64), 8)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", image=IMAGES, labels=LABELS)
    return tmp_path


def outputs(path: str) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {"image": SAMPLE["image"]})[0]


def prepared(*options: str) -> None:
    assert main(["train", "prepare", str(DIGITS), *options, "--out", "trainable.onnx"]) == 0


def trained(out: str, *options: str) -> int:
    return main(["train", "run", "trainable.onnx", "--data", "data.npz", "--batch", "16", "--out", out, *options])


def test_modes_make_steps_evaluate_or_do_both(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepared("--trainable", "head.*", "--lr", "0.01")
    capsys.readouterr()
    assert main(["train", "run", "trainable.onnx", "--data", "data.npz", "--mode", "inference"]) == 0
    said = re.fullmatch(r"trainable.onnx: loss ([\d.e-]+), accuracy ([\d.]+)\n", capsys.readouterr().out)
    right = (outputs(str(DIGITS)).argmax(1) == SAMPLE["label"]).mean()
    assert said and float(said[2]) == pytest.approx(right, abs=1e-3)
    assert {p.name for p in folder.iterdir()} == {"data.npz", "trainable.onnx"}
    assert trained("tuned.onnx", "--mode", "both") == 0
    assert "val accuracy" in capsys.readouterr().out
    assert trained("tuned.onnx", "--mode", "inference") == 2
    assert "--out is for training" in capsys.readouterr().err
    assert main(["train", "run", "trainable.onnx", "--data", "data.npz"]) == 2
    assert "say with --out" in capsys.readouterr().err


def test_fine_tuning_changes_what_was_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepared("--trainable", "head.*", "--lr", "0.01", "--no-train-mode")
    assert "2 weights, 330 numbers, are trained; labels: labels" in capsys.readouterr().out
    onnx.checker.check_model("trainable.onnx")
    np.testing.assert_allclose(outputs("trainable.onnx"), outputs(str(DIGITS)), rtol=1e-4, atol=1e-4)
    assert trained("tuned.onnx", "--val", "data.npz", "--epochs", "3", "--tensorboard", "runs") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("tuned.onnx: ") and "val accuracy" in printed and printed.count("\n") == 1
    assert {p.name for p in folder.iterdir()} == {
        "data.npz", "trainable.onnx", "tuned.onnx", "tuned.csv", "tuned.svg", "tuned.checkpoint", "runs",
    }  # fmt: skip
    before, after = (
        {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
        for path in (DIGITS, "tuned.onnx")
    )
    changed = {name for name, array in before.items() if not np.array_equal(array, after[name])}
    assert changed == {"head.weight", "head.bias"} and not onnx.load("tuned.onnx").training_info


def test_resumed_run_gives_the_same_model(folder: Path) -> None:
    prepared("--optimizer", "sgd", "--set", "momentum=0.9", "--set-loss", "label_smoothing=0.1", "--lr", "0.01")
    assert trained("whole.onnx", "--epochs", "3") == 0
    assert trained("parts.onnx", "--epochs", "1") == 0
    assert trained("parts.onnx", "--epochs", "3", "--resume", "--save-trainable", "later.onnx") == 0
    assert Path("whole.csv").read_text() == Path("parts.csv").read_text()
    assert Path("whole.onnx").read_bytes() == Path("parts.onnx").read_bytes()
    assert described("later.onnx")["steps"] == len(Path("whole.csv").read_text().splitlines()) - 1


def described(path: str) -> dict:
    command = [sys.executable, "-m", "onward", "train", "inspect", path, "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_inspect(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepared("--trainable", "head.*", "--clip-norm", "1", "--schedule", "cosine:steps=10,warmup=2")
    found = described("trainable.onnx")
    assert found["parameters"] == {"head.weight": [10, 32], "head.bias": [10]} and found["labels"] == ["labels"]
    assert found["optimizer"]["name"] == "adamw" and found["clip_norm"] == 1 and "Cosine" in found["schedule"]
    assert found["loss"] == "cross_entropy of logits" and found["ops"]["Conv"] == "rule"
    assert {"head.weight", "head.bias"} <= found["bindings"][0]["update"].keys()
    capsys.readouterr()
    assert main(["train", "inspect", "trainable.onnx"]) == 0
    shown = capsys.readouterr().out
    assert "head.weight" in shown and "AdamW" in shown and "every op is differentiated" in shown
    assert main(["train", "inspect", str(DIGITS)]) == 0
    assert "no training information" in capsys.readouterr().out


def test_from_scratch(folder: Path) -> None:
    prepared("--scratch", "--lr", "0.01")
    assert trained("a.onnx", "--initialize", "--epochs", "1") == 0
    losses = [float(line.split(",")[2]) for line in Path("a.csv").read_text().splitlines()[1:]]
    assert losses[0] > 1.5, "random weights know nothing"


def test_ctrl_c_saves(folder: Path) -> None:
    prepared("--lr", "0.001")
    command = [sys.executable, "-m", "onward", "train", "run", "trainable.onnx", "--data", "data.npz", "--batch", "8"]
    process = subprocess.Popen(
        [*command, "--epochs", "100000", "--every", "1", "--out", "tuned.onnx"], stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while not Path("tuned.checkpoint").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted: --resume goes on" in printed
    assert outputs("tuned.onnx").shape == (len(SAMPLE["image"]), 10) and Path("tuned.csv").exists()


BAD = {
    "no loss": (["prepare", str(DIGITS), "--loss", "hinge", "--out", "o.onnx"], "there is no loss 'hinge'"),
    "no optimizer": (["prepare", str(DIGITS), "--optimizer", "x", "--out", "o.onnx"], "there is no optimizer 'x'"),
    "no option": (["prepare", str(DIGITS), "--set", "beta=1", "--out", "o.onnx"], "adamw has no option 'beta'"),
    "no value": (["prepare", str(DIGITS), "--set", "beta", "--out", "o.onnx"], "--set beta: write it as NAME=VALUE"),
    "no weight": (["prepare", str(DIGITS), "--trainable", "tail*", "--out", "o.onnx"], "no float weight is called"),
    "no output": (["prepare", str(DIGITS), "--output", "z", "--out", "o.onnx"], "no value 'z'"),
    "no schedule": (["prepare", str(DIGITS), "--schedule", "z", "--out", "o.onnx"], "there is no schedule 'z'"),
    "lora": (["prepare", str(DIGITS), "--lora", "size=3", "--out", "o.onnx"], "--lora has no option 'size'"),
    "no folder": (["prepare", str(DIGITS), "--out", "nowhere/o.onnx"], "there is no folder nowhere"),
    "no file": (
        ["run", "none.onnx", "--data", "data.npz", "--out", "o.onnx"],
        "none.onnx: this file or folder does not exist",
    ),
    "no data": (
        ["run", "trainable.onnx", "--data", "none.npz", "--out", "o.onnx"],
        "none.npz: this file or folder does not exist",
    ),
    "text": (["run", "trainable.onnx", "--data", "text.npz", "--out", "o.onnx"], "text.npz: it is damaged"),
    "plain": (["run", str(DIGITS), "--data", "data.npz", "--out", "o.onnx"], "no training information"),
    "names": (["run", "trainable.onnx", "--data", "names.npz", "--out", "o.onnx"], "the batch has no 'labels'"),
    "labels": (["run", "trainable.onnx", "--data", "labels.npz", "--out", "o.onnx"], "'labels' at 3 is 10"),
    "val": (["run", "trainable.onnx", "--data", "data.npz", "--val", "labels.npz", "--out", "o.onnx"], "'labels' at 3"),
    "epochs": (["run", "trainable.onnx", "--data", "data.npz", "--epochs", "0", "--out", "o.onnx"], "epochs is 0"),
    "nan": (["run", "trainable.onnx", "--data", "nan.npz", "--out", "o.onnx"], "the loss is nan at step 1"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(case: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if BAD[case][0][0] == "run":
        prepared("--trainable", "head.*")
    Path("text.npz").write_text("no archive")
    np.savez("names.npz", image=IMAGES, y=LABELS)
    np.savez("labels.npz", image=IMAGES, labels=np.where(np.arange(len(LABELS)) == 3, 10, LABELS))
    np.savez("nan.npz", image=IMAGES * np.float32(np.nan), labels=LABELS)
    capsys.readouterr()
    arguments, message = BAD[case]
    assert main(["train", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.err.startswith("onward: ") and printed.err.count("\n") == 1
    assert not printed.out and not list(folder.glob("**/o.*"))


def test_the_page_shows_what_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs/guide/training.md").read_text()
    (script, *commands), (program, from_torch, from_keras, from_tensorflow, from_jax, watching, workers) = (
        re.findall(r"```sh\n(.*?)```", text, re.DOTALL)[0].splitlines(),
        re.findall(r"```python\n(.*?)```", text, re.DOTALL),
    )
    assert script.startswith("python examples/digits/tune.py --out build/digits ")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "build/digits").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    tune = runpy.run_path("examples/digits/tune.py")
    for name, data in zip(("train", "val"), tune["load_data"](0), strict=True):
        np.savez(f"build/digits/{name}.npz", **data)
    for command in commands:
        word, *arguments = shlex.split(command)
        assert word == "onward" and main(arguments) == 0
    made: dict[str, object] = {}
    exec(program, made)
    assert made["history"].evaluations[-1]["accuracy"] > 0.95
    exec(from_torch, made)
    assert made["trainable"].optimizer.name == "adamw" and not made["model"].training_info
    if find_spec("keras") is not None:
        exec(from_keras, made)
        assert made["trainable"].labels == ["labels"]
        exec(from_tensorflow, made)
        assert made["trainable"].buffers.keys() == {"w"}
    exec(from_jax, made)
    assert made["trainable"].labels == ["label"]
    exec(watching, made)
    assert list(Path("build/digits/runs/1").glob("events.out.tfevents.*"))
    Path("workers.py").write_text(workers)
    assert float(subprocess.run([sys.executable, "workers.py"], check=True, capture_output=True, text=True).stdout) < 1
    train = [sys.executable, "-m", "build.digits.net.train", "build/digits/train.npz"]
    assert "epoch 1: loss" in subprocess.run(train, check=True, capture_output=True, text=True).stdout
    head = tune["head_only"](*tune["load_data"](0), epochs=3, seed=0, out=Path("build/digits"))
    assert head[0] < 0.1 and head[1] > 0.9


def test_averages_and_masks(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepared("--average", "0.5", "--no-decay", "*.bias", "--lr", "0.01")
    assert trained("last.onnx", "--seed", "3") == 0
    assert trained("average.onnx", "--seed", "3", "--averaged") == 0
    assert not np.allclose(outputs("last.onnx"), outputs("average.onnx"), atol=1e-6)
    prepared("--no-decay", "vectors", "--set", "weight_decay=0.1")
    assert trained("average.onnx", "--averaged") == 2
    assert "there are no averages of weights" in capsys.readouterr().err


def test_data_that_are_no_npz(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepared("--trainable", "head.*")
    assert main(["train", "run", "trainable.onnx", "--data", str(DIGITS), "--out", "tuned.onnx"]) == 2
    message = capsys.readouterr().err
    assert "not a file of arrays: numpy.savez writes one" in message and "pickle" not in message


def test_one_of_several_trainings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepared("--trainable", "head.*", "--optimizer", "sgd")
    assert main(["train", "prepare", "trainable.onnx", "--trainable", "stem.*", "--out", "both.onnx"]) == 0
    given = ["--data", "data.npz", "--batch", "16", "--out", "tuned.onnx"]
    changed = []
    for index in ("0", "1"):
        assert main(["train", "run", "both.onnx", *given, "--index", index]) == 0
        before, after = (
            {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load(path).graph.initializer}
            for path in (DIGITS, "tuned.onnx")
        )
        names = {n for n, array in before.items() if "running" not in n and not np.array_equal(array, after[n])}
        changed.append({name.partition(".")[0] for name in names})
    assert changed == [{"head"}, {"stem"}]
    assert main(["train", "run", "both.onnx", *given, "--index", "2"]) == 2
    assert "there is no training info 2; there are 2" in capsys.readouterr().err
