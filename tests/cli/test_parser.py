"""What the command line says to words that it does not know."""

from pathlib import Path

import pytest

from conftest import Run

DIGITS = Path(__file__).parents[2] / "examples/digits/digits.onnx"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("verfy", "did you mean verify?"),
        ("convert x --to pytorch", "did you mean torch?"),
        ("convert x --to tf", "did you mean tensorflow?"),
        ("convert x --too torch", "there is no option --too; did you mean --to?"),
        ("convert x --to torch --quantise int8", "there is no option --quantise; did you mean --quantize?"),
        (
            "convert x --to torch --quantize int9",
            "there is no 'int9'; there are float16, dynamic, int8, int4; did you mean",
        ),
        ("convert x --to torch --verif", "there is no option --verif"),
        ("train prepare x --out y --optimiser adam", "did you mean --optimizer?"),
        ("train prepair", "did you mean prepare?"),
        ("layout x --out y --to channels_last", "there are nhwc, nchw; did you mean nhwc?"),
        ("inspect --traceback x", "there is no option --traceback; write it before inspect"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(run: Run, line: str, words: str) -> None:
    code, printed, errors = run(*line.split())
    assert code == 2 and not printed and words in errors
    assert errors.startswith("usage: onward") and errors.count("\n") == 2, "what is wrong is not buried"


@pytest.mark.parametrize("option", ["--inputs-nh", "--verify", "--calib"])
def test_options_are_not_abbreviated(run: Run, option: str) -> None:
    code, _, errors = run("convert", "model.onnx", "--to", "tflite", option, "x")
    assert code == 2 and f"there is no option {option}" in errors


def test_what_follows_two_dashes_is_no_option(run: Run) -> None:
    code, _, errors = run("inspect", "--", "--no-such-file.onnx")
    assert code == 2 and "--no-such-file.onnx: " in errors and "no option" not in errors


def test_files_stand_before_and_after_options(run: Run) -> None:
    file = str(DIGITS)
    code, printed, errors = run("verify", file, "--on", "onnxruntime", file, "--quick")
    assert code == 0 and printed.startswith("Same: "), errors
    code, _, errors = run("inspect", file, "--json", "another.onnx")
    assert code == 2 and "unrecognized arguments: another.onnx" in errors


@pytest.mark.parametrize(("line", "commands"), [("", "scoreboard"), ("train", "prepare")])
def test_a_line_that_ends_early_gets_the_commands_that_may_follow(run: Run, line: str, commands: str) -> None:
    code, printed, errors = run(*line.split())
    assert code == 2 and not printed and errors.startswith("usage: onward") and commands in errors


def test_all_that_is_missing_is_told(run: Run) -> None:
    assert "are required: model, --to\n" in run("convert")[2]
    assert "are required: model\n" in run("verify")[2]


@pytest.mark.parametrize("line", ["inspect {}", "convert {} --to torch", "verify {}", f"verify {DIGITS} {{}}"])
def test_a_file_that_is_not_there_gets_a_suggestion(run: Run, tmp_path: Path, line: str) -> None:
    (tmp_path / "network.onnx").write_bytes(DIGITS.read_bytes())
    code, printed, errors = run(*line.format(tmp_path / "netwrk.onnx").split())
    assert code == 2 and not printed and errors.count("\n") == 1, "nothing was run"
    assert errors.endswith("netwrk.onnx: this file or folder does not exist; did you mean network.onnx?\n")


def test_what_is_like_nothing_gets_no_suggestion(run: Run, tmp_path: Path) -> None:
    """The dashes of options and the endings of files do not make them alike."""
    assert "there is no option --runners\n" in run("scoreboard", "--out", tmp_path, "--runners", "torch")[2]
    (tmp_path / "l.onnx").touch()
    assert run("inspect", tmp_path / "nofile.onnx")[2].endswith("does not exist; check the path\n")
    assert "did you mean l.onnx?" in run("inspect", tmp_path / "l")[2]


def test_versions_of_what_is_installed(run: Run) -> None:
    code, printed, errors = run("--version")
    names = {line.split()[0] for line in printed.splitlines()}
    assert code == 0 and not errors and printed.startswith("onward 0.")
    assert {"python", "numpy", "onnx", "onnx-ir", "onnxruntime"} <= names
