import io
import re

import pytest
import report_samples as samples
from rich.console import Console

from onward.report.verify_text import MOST_ROWS, show
from onward.report.wording import number, share
from onward.verification.results import Report, SideResult, Trial


def shown(report: Report, width: int = 80, terminal: bool = False, verbose: bool = False) -> str:
    stream = io.StringIO()
    colours = "standard" if terminal else "auto"
    console = Console(file=stream, width=width, force_terminal=terminal, highlight=False, color_system=colours)
    show(report, console, verbose=verbose)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("report", "first"),
    [
        (samples.same(), "Same: torch and openvino agree with models/digits.onnx on onnxruntime."),
        (
            samples.different(),
            "Different: torch and openvino do not agree with models/vision.onnx on onnxruntime; reference does.",
        ),
        (samples.failed(), "Not verified: openvino and torch could not be compared with m.onnx on onnxruntime."),
        (Report("m.onnx", "onnxruntime"), "Not verified: nothing was compared."),
    ],
)
def test_the_first_line_is_the_verdict(report: Report, first: str) -> None:
    assert shown(report).splitlines()[0] == first


def test_a_side_that_differs_says_where_by_how_much_and_why_that_is_too_much() -> None:
    text = shown(samples.different())
    for expected in (
        r"logits +different +0\.137 +7\.1e-05 +0\.425 +18\.0 %",
        r"boxes +shape *\n",
        r"random, batch=2: boxes: shape \[1, 4, 2\] instead of \[1, 2, 4\]",
        r"allowed for logits and model/decoder/layers\.11…: the floor of float32",
        r"The first node that differs is conv_7 \(Conv\)\.",
        r"off by 0\.137; 1\.1e-06 is allowed\.\s+Found in 5 runs\.",
        r"The smallest model that shows it: reduced/model\.onnx",
        r"Note: onnxruntime does not run on NaN",
    ):
        assert re.search(expected, text), expected
    assert "SNR" not in text
    assert "SNR 121 dB" in re.sub(r"\s+", " ", shown(samples.different(), verbose=True))


def test_what_could_not_be_run_is_no_difference_and_no_agreement() -> None:
    text = shown(samples.failed())
    assert "could not be prepared: openvino is not installed" in text
    assert "random: could not be run: took longer than 60 s" in text
    assert "torch  not verified, 1 data set compared" in text


@pytest.mark.parametrize("report", [samples.same(), samples.different(), samples.failed(), samples.large()])
def test_a_pipe_gets_80_columns_without_colour(report: Report) -> None:
    first, *rest = shown(report).splitlines()
    assert "\x1b" not in first + "".join(rest)
    assert all(len(line) <= 80 for line in rest)


@pytest.mark.parametrize(
    ("report", "colour"), [(samples.same(), 32), (samples.different(), 31), (samples.failed(), 33)]
)
def test_the_verdict_is_coloured_in_a_terminal(report: Report, colour: int) -> None:
    assert shown(report, terminal=True).startswith(f"\x1b[1;{colour}m")


def test_an_output_is_shown_where_it_fared_worst() -> None:
    trials = [Trial(data, (samples.output("y", worst),)) for data, worst in (("a", 1e-6), ("b", 0.5), ("c", 0.2))]
    text = shown(Report("m.onnx", "onnxruntime", [SideResult("torch", tuple(trials))]))
    assert re.search(r"y +different +0\.5 ", text)
    assert "b: y: values differ by up to 0.5, 7.1e-05 allowed (and in 1 more data set)" in text


def test_a_long_table_is_cut_but_never_before_what_differs() -> None:
    outputs = tuple(samples.output(f"o{i}", 0.5 if i == 40 else 1e-6) for i in range(50))
    report = Report("m.onnx", "onnxruntime", [SideResult("torch", (Trial("random", outputs),))])
    text = shown(report)
    assert re.search(r"o40 +different", text)
    assert len(re.findall(r"^  o\d+ ", text, re.MULTILINE)) == MOST_ROWS
    assert "… and 38 more outputs, all the same; --verbose shows them" in text
    assert len(re.findall(r"^  o\d+ ", shown(report, verbose=True), re.MULTILINE)) == 50


def test_names_from_a_file_cannot_control_the_terminal() -> None:
    text = shown(samples.hostile(), verbose=True)
    assert all(character.isprintable() or character == "\n" for character in text)


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0"), (1.0, "1"), (0.01234, "0.0123"), (7.1e-5, "7.1e-05"), (12345.6, "12346"), (3e7, "3.0e+07"),
     (float("inf"), "infinite"), (float("nan"), "NaN"), (None, "")],
)  # fmt: skip
def test_number(value: float | None, words: str) -> None:
    assert number(value) == words


@pytest.mark.parametrize(
    ("part", "words"),
    [(0.0, "0 %"), (1.0, "100 %"), (1e-9, "<0.1 %"), (1 - 1e-9, ">99.9 %"), (0.183, "18.3 %")],
)
def test_only_all_is_100_percent_and_only_none_is_0(part: float, words: str) -> None:
    assert share(part) == words
