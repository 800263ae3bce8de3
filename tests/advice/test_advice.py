"""What messages advise."""

import tomllib
from pathlib import Path

import pytest

from onward.advice.extras import EXTRAS, missing_packages, require, to_install
from onward.advice.nearest import meant
from onward.advice.options import option, option_list, typed
from onward.errors import MissingPackageError

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize(
    ("word", "found"),
    [
        ("pytorch", "torch"),
        ("TensorFlow", "tensorflow"),
        ("saved_model", "savedmodel"),
        ("tf", "tensorflow"),
        ("ort", ""),
        ("cobol", ""),
    ],
)
def test_the_word_that_was_meant(word: str, found: str) -> None:
    known = ["torch", "tensorflow", "savedmodel", "tflite", "keras", "onnx"]
    assert meant(word, known) == (f"; did you mean {found}?" if found else "")


def test_options_are_spelled_as_the_user_knows_them() -> None:
    asked = option("cast", "up"), option("trust", True), option("dims", {"batch": 4}), option("verify", False)
    assert asked == ("cast='up'", "trust=True", "dims={'batch': 4}", "verify=False")
    assert option_list("inputs", "inputs_nhwc") == "inputs and inputs_nhwc"
    with typed():
        told = option("cast", "up"), option("trust", True), option("dims", {"batch": 4}), option("verify", False)
        assert told == ("--cast up", "--trust", "--dim batch=4", "--no-verify")
        assert option("input", ["x:int64[n]"]) == "--input 'x:int64[n]'"
        assert option("dims", {"$(date)": 1}) == "--dim '$(date)=1'"
        assert option_list("input", "inputs_nhwc", "cast") == "--input, --inputs-nhwc and --cast"
    assert option("cast") == "cast"


def test_every_extra_that_is_advised_exists() -> None:
    assert set(EXTRAS.values()) <= PROJECT["optional-dependencies"].keys()
    assert to_install("skops.io") == "pip install 'onward[sklearn]'"
    assert to_install("abacus") == "pip install abacus"


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTRAS, "abacus", "counting")
    with pytest.raises(
        MissingPackageError, match=r"net.bin: abacus is not installed: pip install 'onward\[counting\]'"
    ):
        require("onnx", "abacus", what="net.bin")
    with pytest.raises(MissingPackageError, match="abacus is not installed"), missing_packages():
        import abacus.beads  # type: ignore[import-not-found]  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match=r"onnx\.abacus"), missing_packages():
        import onnx.abacus  # type: ignore[import-not-found]  # noqa: F401
