"""Texts, sequences and classical models as MATLAB source: what a file says reaches it as data, never as code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onward import runners
from onward.advice.extras import is_installed
from onward.backends.matlab.convert import generate
from onward.backends.matlab.package import write_files
from onward.backends.matlab.patterns import matlab_pattern
from onward.backends.matlab.render import literal_text
from onward.errors import UnsupportedError
from onward.model import load
from onward.spec.string import python_pattern

octave = pytest.mark.skipif(not is_installed("octave"), reason="GNU Octave is not installed")
HOSTILE = [
    "x'); system('touch owned'); %",
    "a\n%{\nsystem('touch owned')",
    "nul\0end",
    "é日😀",
    '"$(touch owned)',
    "''",
    "",
    "...",
]


def model(*nodes: onnx.NodeProto, outputs: dict[str, int]) -> onnx.ModelProto:
    sides = [helper.make_tensor_value_info(name, kind, None) for name, kind in outputs.items()]
    x = helper.make_tensor_value_info("x", TensorProto.STRING, ["n"])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 4)]
    return helper.make_model(helper.make_graph(nodes, "texts", [x], sides), opset_imports=imports, ir_version=10)


def every_text() -> onnx.ModelProto:
    """A model in which texts of the file are keys, values, stop words, a delimiter and a constant."""
    table = {"keys_strings": HOSTILE, "values_strings": HOSTILE[::-1], "default_string": HOSTILE[0]}
    return model(
        helper.make_node("LabelEncoder", ["x"], ["names"], domain="ai.onnx.ml", **table),
        helper.make_node("StringNormalizer", ["x"], ["kept"], stopwords=HOSTILE[:3], is_case_sensitive=1),
        helper.make_node("StringSplit", ["x"], ["parts", "counts"], delimiter="'); system('touch owned'); %"),
        helper.make_node("Constant", [], ["more"], value_strings=HOSTILE),
        helper.make_node("StringConcat", ["x", "more"], ["both"]),
        outputs={"names": 8, "kept": 8, "parts": 8, "counts": 7, "both": 8},
    )


@octave
def test_texts_of_a_file_are_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = np.array(HOSTILE, object)
    found = runners.prepare("matlab", load(every_text()))({"x": given})
    assert found["names"].tolist() == HOSTILE[::-1]
    assert found["kept"].tolist() == HOSTILE[3:]
    assert found["parts"].tolist()[0] == ["x", ""] and found["counts"].tolist()[-1] == 1
    assert found["both"].tolist() == [text + text for text in HOSTILE]
    assert not list(tmp_path.rglob("owned"))


def test_both_dialects_read_the_package(tmp_path: Path) -> None:
    folder = tmp_path / "+net"
    folder.mkdir()
    write_files(generate(load(every_text())), folder, "net")
    for dialect in ((), ("--octave", "7.2")):
        command = [
            Path(sys.executable).with_name("mh_lint"),
            "--single",
            "--brief",
            "--ignore-config",
            *dialect,
            tmp_path,
        ]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        assert "everything seems fine" in done.stdout, done.stdout


def test_what_is_no_unicode_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="not valid UTF-8"):
        literal_text("a\udcff")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"a$", r"^(?:a(?![\s\S]))(?![\s\S])"),
        (r"(?i:ab)+", r"^(?:(?:(?:[Aa][Bb]))+)(?![\s\S])"),
        (r"[^\w'%]{2,}", r"^(?:(?:[^%'0-9A-Z_a-z]){2,})(?![\s\S])"),
        ("\n|", r"^(?:(?:\x{A}|))(?![\s\S])"),
    ],
)
def test_patterns_in_the_common_syntax(pattern: str, text: str) -> None:
    assert matlab_pattern(python_pattern(pattern), "node").replace(r"\%\'", "%'") == text


def test_patterns_that_matlab_lacks_are_refused() -> None:
    for pattern in ("(?i)é", "(?i)[^é]"):
        with pytest.raises(UnsupportedError, match="which MATLAB does not have"):
            matlab_pattern(python_pattern(pattern), "node")
