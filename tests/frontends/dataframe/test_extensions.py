"""Patterns that need onnxruntime-extensions: opt-in, exact, and refused where RE2 and the library differ."""

import itertools
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("onnxruntime_extensions")

import onward  # noqa: E402
from onward.errors import MissingPackageError, RunFailure, UnsupportedError  # noqa: E402
from onward.formats.dataframe.schema import KEY  # noqa: E402
from onward.frontends.dataframe.tensors.text.text_extensions import replacing, taking  # noqa: E402
from onward.graph.names import EXTENSIONS  # noqa: E402
from onward.verification.frames import differing  # noqa: E402

ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def without_tensorflow(request: pytest.FixtureRequest) -> None:
    """Beside it the library leaves texts as they are, so such models are refused there."""
    if "tensorflow" in sys.modules and not request.node.name.startswith("test_beside_tensorflow"):
        pytest.skip("TensorFlow is loaded: these run in a process of their own")


def test_beside_tensorflow_these_run_in_a_process_of_their_own() -> None:
    if "tensorflow" not in sys.modules:
        pytest.skip("they run here")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]


def test_beside_tensorflow_patterns_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", sys.modules.get("tensorflow") or sys)
    sample = pd.DataFrame({"t": ["xaabx", None]})
    with pytest.raises(onward.OnwardError, match="TensorFlow is loaded in this process"):
        onward.from_dataframe(
            lambda df: df.assign(r=df.t.str.replace("a+?b", "R", regex=True)), sample, extensions=True
        )


TEXTS = [
    "",
    "a",
    "A",
    "ab 12-34",
    "é\n5-6\n",
    "x1y22z",
    "\n",
    "aab\n\n",
    "ſ K k",
    "日本 7",
    "٣-٤",
    " a\u2028b\x85",
    None,
    "1.50 kg",
    "bA",
]
TEXTS += ["".join(letters) for letters in itertools.product("ab\n", repeat=3)]
REPLACED = [
    (r"(\d+?)-(\d+)$", r"\2/\1"),
    (r"(a)|(b)", r"[\1\2]"),
    (r"((a)b)?1", r"\1"),
    (r"a|ab", r"-"),
    (r"a+?b", r"R"),
    (r"^(\w+)\s*", r"\1:"),
    (r"^\s*", r"\g<0>> "),
    (r"^(?:a|(?i:A))", r"<\g<0>>"),
    (r"b(?:a|(?i:A))+?", r"\\"),
    (r"(?m)^(.)", r"(\1)"),
    (r"(?P<left>\w+?)(?P<right>\W)", r"\g<right>\g<left>"),
    (r"(.)$", r"\1!"),
]
EXTRACTED = [
    r"(a|ab)(.*)",
    r".*(\d+)",
    r"(?:(a)|(\d))\D*",
    r"(\w+?)(\d+)?$",
    r"((\d+)-(\d+))",
    r"(\s+)$",
    r"(\d*)",
    r"(?s)^(.*?)\n",
]


def same(function: Any, sample: Any, rows: Any) -> onward.Model:
    model = onward.from_dataframe(function, sample, extensions=True)
    assert EXTENSIONS in model.ir.opset_imports
    assert '"needs": ["onnxruntime-extensions"]' in model.ir.metadata_props[KEY]
    assert not differing(function, lambda part: onward.run(model, part), rows)
    return model


@pytest.mark.parametrize("dtype", ["str", "object"])
@pytest.mark.parametrize(("pattern", "new"), REPLACED)
def test_replaced_as_by_pandas(pattern: str, new: str, dtype: str) -> None:
    frame = pd.DataFrame({"t": pd.Series(TEXTS, dtype=dtype)})
    same(lambda df: df.assign(r=df.t.str.replace(pattern, new, regex=True)), frame, frame)


@pytest.mark.parametrize("pattern", EXTRACTED)
def test_extracted_as_by_pandas(pattern: str) -> None:
    frame = pd.DataFrame({"t": TEXTS})

    def function(df: Any) -> Any:
        found = df.t.str.extract(pattern)
        return df.assign(**{f"group {i}": found[i] for i in range(re.compile(pattern).groups)})

    same(function, frame, frame)


@pytest.mark.parametrize(
    ("pattern", "new"), [(r"(\d+?)-(\d+)", "$2/${1}x"), (r"a|ab", "-"), (r"(?P<w>a+?)b", "$$$w"), (r"(a)|(b)", "$2$1")]
)
def test_replaced_as_by_polars(pattern: str, new: str) -> None:
    frame = pl.DataFrame({"t": TEXTS})
    column = pl.col("t").str
    function = lambda df: df.with_columns(a=column.replace_all(pattern, new), b=column.replace(pattern, new))  # noqa: E731
    same(function, frame, frame)


def test_extracted_as_by_polars() -> None:
    frame = pl.DataFrame({"t": TEXTS})
    same(lambda df: df.with_columns(a=pl.col("t").str.extract(r"(a|ab)(.+)", 2)), frame, frame)


@pytest.mark.parametrize(
    "pattern",
    [
        r"a*",
        r"\s*$",
        r"(?:a*)*b",
        r"(?=a)b",
        r"(?<!a)b",
        r"(a)\1",
        r"\bab?|a",
        r"\s+?$",
        r"^(?:|a)",
        r"a*?$",
        r"\Bab?|a",
    ],
)
def test_what_differs_is_refused(pattern: str) -> None:
    with pytest.raises(UnsupportedError, match="the pattern"):
        replacing(pattern, ["R"])


def test_groups_that_differ_are_refused() -> None:
    for pattern in (r"(?:(a)|b)*", r"(?:(a*)|b)c"):
        with pytest.raises(UnsupportedError, match="has a group"):
            taking(pattern)
    with pytest.raises(UnsupportedError, match="has a group in a repeat"):
        replacing(r"(?:(a)|b)+", [1])
    with pytest.raises(UnsupportedError, match="more than 9 groups"):
        replacing("(a)" * 10, list(range(1, 11)))


def test_a_pattern_too_large_for_re2_is_refused() -> None:
    frame = pd.DataFrame({"t": TEXTS})
    with pytest.raises(UnsupportedError, match="too large for RE2"):
        onward.from_dataframe(
            lambda df: df.t.str.replace(r"(?:\w{1,500}){1,500}?(a)", r"\1", regex=True), frame, extensions=True
        )


def test_without_the_option_the_refusal_tells_of_it() -> None:
    frame = pd.DataFrame({"t": TEXTS})
    with pytest.raises(UnsupportedError, match="extensions=True"):
        onward.from_dataframe(lambda df: df.t.str.replace("a+?b", "R", regex=True), frame)
    with pytest.raises(UnsupportedError) as refusal:
        onward.from_dataframe(lambda df: df.t.str.replace("(?=a)b", "R", regex=True), frame)
    assert "onnxruntime-extensions" not in str(refusal.value)


def test_what_onnx_runtime_can_do_needs_no_extensions() -> None:
    frame = pd.DataFrame({"t": TEXTS})
    model = onward.from_dataframe(lambda df: df.t.str.replace(r"(\d+)", r"<\1>", regex=True), frame, extensions=True)
    assert EXTENSIONS not in model.ir.opset_imports and "needs" not in model.ir.metadata_props[KEY]


def test_texts_with_the_character_0_are_refused_and_no_rows_are_none(tmp_path: Path) -> None:
    frame = pd.DataFrame({"t": TEXTS})
    function = lambda df: df.assign(r=df.t.str.replace("a+?b", "R", regex=True))  # noqa: E731
    same(function, frame, frame.iloc[:0]).save(tmp_path / "f.onnx")
    assert onward.run(tmp_path / "f.onnx", frame).equals(function(frame))
    with pytest.raises(RunFailure, match="a text with the character 0"):
        onward.run(tmp_path / "f.onnx", pd.DataFrame({"t": ["aab\0aab"]}))


def test_without_the_package_the_command_that_brings_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"t": TEXTS})
    model = onward.from_dataframe(lambda df: df.t.str.replace("a+?b", "R", regex=True), frame, extensions=True)
    monkeypatch.setattr("onward.advice.extras.is_installed", lambda package: False)
    with pytest.raises(MissingPackageError, match=r"pip install 'onward\[extensions\]'"):
        onward.run(onward.Model(model.ir), frame)
    with pytest.raises(MissingPackageError, match=r"pip install 'onward\[extensions\]'"):
        onward.from_dataframe(lambda df: df, frame, extensions=True)
