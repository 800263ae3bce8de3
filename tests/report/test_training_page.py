"""The page and the lines of a verification of training."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from rich.console import Console

from onward.report.training_page import page
from onward.report.training_text import show
from onward.training.runtime.chart import WIDTH, Line, chart, stacked
from onward.training.verification.results import Check, SideResult, TrainingReport

CHECKS = (
    Check(1, "forward", "<y>", "same", 1e-7, 1e-4),
    Check(1, "gradient", "fc.weight", "different", 0.2, 1e-4, "worst error 0.2 (allowed 0.0001)"),
    Check(2, "state", "fc.weight.exp_avg", "failed", 1.2, 0.9),
)


def report() -> TrainingReport:
    return TrainingReport(
        "<net>.onnx",
        3,
        "made up",
        [2.0, 1.5, 1.2],
        [0.0, 1e-7, 2e-7],
        sides=[
            SideResult("torch", (2.0, 1.5, 1.2), (1e-4, 1e-4, 1e-4), CHECKS[:1]),
            SideResult("jax", (2.0, 1.6, float("nan")), (1e-4, 1e-4, 1e-4), CHECKS, 1, CHECKS[1]),
            SideResult("keras", failure="keras: <crash>"),
        ],
        notes=["dropout is off"],
    )


class Balanced(HTMLParser):
    """Which elements are open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "path", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "rect"):
            assert self.open.pop() == tag


def test_page() -> None:
    text = page(report())
    reader = Balanced()
    reader.feed(text)
    assert reader.open == []
    assert "<crash>" not in text and "&lt;net&gt;.onnx" in text and "&lt;y&gt;" in text
    for words in ("Different", "step 1: the gradient of a weight, fc.weight", "dropout is off", "Drowned in noise"):
        assert words in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


def test_lines(capsys: pytest.CaptureFixture[str]) -> None:
    show(report(), Console(width=200))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("torch  same: 3 steps agree")
    assert "jax  different: step 1: the gradient of a weight, fc.weight" in lines[1]
    assert "keras  not verified: it cannot be run: keras: <crash>" in lines[2]
    assert "3 steps · data made up" in lines[3] and lines[4] == "Note: dropout is off"


def test_chart_has_axes_and_a_legend() -> None:
    text = chart({"a & b": Line([(1, 1.0), (3, 0.001)]), "none": Line([])}, "step", "loss", log=True)
    for words in (">a &amp; b</text>", ">none</text>", ">step</text>", ">loss</text>", ">1e-3</text>", ">1e0</text>"):
        assert words in text
    assert "prefers-color-scheme: dark" in text
    both = stacked([text, text])
    assert both.count("<svg") == 3 and 'y="360"' in both


@pytest.mark.parametrize("points", [[(1, 0.5)], [(1, 2.0), (2, 2.0)], [(1, float("nan"))], [(1, -1e9), (10**6, 1e9)]])
def test_chart_of_odd_numbers(points: list[tuple[int, float]]) -> None:
    assert "nan" not in chart({"loss": Line(points)}, "batch", "loss")


def test_a_long_legend_takes_several_rows() -> None:
    """None of its keys, nor a curve, is beyond the picture or on another."""
    names = ["onnxruntime", *(f"{name} to onnxruntime" for name in ("torch", "keras", "jax", "tensorflow")), "allowed"]
    text = chart({name: Line([(1, 1.0), (2, 3.0)]) for name in names}, "step", "loss")
    found = [re.search(rf'<text x="(\d+)" y="(\d+)">{name}</text>', text) for name in names]
    places = [(int(key[2]), int(key[1]), len(name)) for key, name in zip(found, names, strict=True) if key is not None]
    assert len(places) == len(names)
    assert all(begin + 7 * letters < WIDTH for _, begin, letters in places)
    for (row, begin, letters), (next_row, next_begin, _) in pairwise(places):
        assert next_row > row or next_begin > begin + 7 * letters
    lowest = max(row for row, _, _ in places)
    assert lowest > places[0][0]
    heights = [float(y) for y in re.findall(r'd="M\S+ ([\d.]+)L', text)]
    assert min(heights) > lowest
