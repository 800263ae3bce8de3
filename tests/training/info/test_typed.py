"""What a file holds as JSON is looked at before it becomes part of a training: a file may hold anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import parser

from onward.cli import main
from onward.errors import InvalidModelError
from onward.training.info.read import load
from onward.training.recipe.described import KEY
from onward.training.recipe.groups import Group
from onward.training.recipe.losses import CrossEntropy, Penalty, Term
from onward.training.recipe.optimizers import AdamW
from onward.training.recipe.schedules import Cosine, Warmup
from onward.training.trainable import prepare

MODEL = """<ir_version: 10, opset_import: ["" : 21]> net (float[n, 2] x) => (float[n, 2] y)
<float[2, 2] w = {1, 2, 3, 4}, float[2] b = {1, 2}> { y = Gemm (x, w, b) }"""


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    made = prepare(
        parser.parse_model(MODEL).SerializeToString(),
        [Term(CrossEntropy(label_smoothing=0.1))],
        AdamW(lr=0.1),
        schedule=Warmup(2, Cosine(9)),
        clip_value=1.0,
        penalties=[Penalty(0.1)],
        groups=[Group("b", lr=0.5)],
    )
    made.save(tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def said(path: Path, place: tuple[Any, ...], value: Any) -> None:
    """Let a file say something else of its training."""
    model = onnx.load(path)
    entry = next(entry for entry in model.metadata_props if entry.key.startswith(KEY))
    recipe = part = json.loads(entry.value)
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = value
    entry.value = json.dumps(recipe)
    onnx.save(model, path)


WRONG: list[tuple[tuple[Any, ...], Any]] = [
    (("loss",), ["a"]),
    (("parameters",), {"w": 3}),
    (("state", "w.exp_avg"), [1, 2]),
    (("labels",), "labels"),
    (("clip_norm",), "1"),
    (("clip_norm",), float("nan")),
    (("accumulate",), 10**30),
    (("optimizer", "name"), ["adamw"]),
    (("optimizer", "value"), "0.1"),
    (("optimizer", "inner"), None),
    (("optimizer", "inner", "lr"), "__import__('os')"),
    (("optimizer", "inner", "betas"), [0.9]),
    (("optimizer", "inner", "eps"), True),
    (("rules", "w"), {"lr": 1, "decay": None}),
    (("penalties", 0, "power"), 3),
    (("schedule", "name"), "none"),
    (("schedule", "then", "steps"), 9.5),
    (("adapters",), {"w": {"a": "x"}}),
    (("unheard",), 1),
]


@pytest.mark.parametrize(("place", "value"), WRONG, ids=lambda part: str(part)[:40])
def test_what_does_not_fit_is_refused(
    place: tuple[Any, ...], value: Any, saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(saved, place, value)
    with pytest.raises(InvalidModelError):
        load(saved)
    assert main(["train", "export", str(saved), "--to", "torch", "--out", str(saved.parent / "net")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1 and not (saved.parent / "net").exists()


@pytest.mark.parametrize("value", [{"label_smoothing": "x"}, {"reduction": "none"}, 7, {"unheard": 1}])
def test_a_loss_that_is_not_known_is_one_that_is_a_graph(value: Any, saved: Path) -> None:
    assert load(saved).loss is not None
    said(saved, ("terms", 0, "options"), value)
    assert load(saved).loss is None
