"""Texts of pandas: what follows `.str`, joining, order, numbers. The model computes what pandas computes."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from frame_compare import same  # noqa: E402

import onward  # noqa: E402
from onward.errors import UnsupportedError  # noqa: E402

SAMPLE = ["Ab-12 c", "x,y;z", None, "foo bar baz", "12", "-7"]
EDGE = [
    "", None, "Ünïcode ß", "  padded \t", "汽车", "UPPER", "lower", "a,b;c", "x\ty", "😀 smile", "0", "nan", "ab\n",
    "\n", "a\u0130b", "ıIiſKk", "ΑΣ ΣΑΣ", "-5", "+12", "½²٣", "a.b.c", "A-1-B", "...", " ", "aaaa", "Dž ǆ",
    "\x1cab\x1d", "éa", "Ab-12 Ab-34", "a\x85b\xa0c", "--", "x=1;y=22", "K", "0012", "1_000", "it's o'clock",
]  # fmt: skip
KINDS = {
    "str": "str",
    "object": object,
    "string": "string",
    "python": pd.StringDtype("python", na_value=np.nan),
}


def column(values: list[Any], kind: str) -> Any:
    return pd.DataFrame({"s": pd.Series(values, dtype=KINDS[kind]), "n": np.arange(len(values))})


def check(function: Callable[[Any], Any], kind: str = "str", sample: Any = SAMPLE, edge: Any = EDGE) -> None:
    """The same for the sample, for edge cases, for some rows of them by themselves, and for no rows."""
    model = onward.from_dataframe(function, column(sample, kind), check=False)
    frames = [sample, edge, *([value] for value in edge[:: 3 if kind == "str" else 11]), []]
    for values in frames:
        frame = column(values, kind)
        if not values or all(value is None for value in values):
            onward.run(model, frame)
            continue
        difference = same(function(frame.copy()), onward.run(model, frame))
        assert difference is None, f"{values}: {difference}"


METHODS: dict[str, Callable[[Any], Any]] = {
    "upper": lambda s: s.str.upper(),
    "lower": lambda s: s.str.lower(),
    "capitalize": lambda s: s.str.capitalize(),
    "title": lambda s: s.str.title(),
    "swapcase": lambda s: s.str.swapcase(),
    "casefold": lambda s: s.str.casefold(),
    "strip": lambda s: s.str.strip(),
    "lstrip": lambda s: s.str.lstrip("a "),
    "rstrip": lambda s: s.str.rstrip(),
    "removeprefix": lambda s: s.str.removeprefix("a"),
    "removesuffix": lambda s: s.str.removesuffix("b"),
    "pad": lambda s: s.str.pad(6, side="both", fillchar="*"),
    "center": lambda s: s.str.center(5),
    "ljust": lambda s: s.str.ljust(4, "."),
    "rjust": lambda s: s.str.rjust(4),
    "zfill": lambda s: s.str.zfill(5),
    "repeat": lambda s: s.str.repeat(3),
    "slice": lambda s: s.str.slice(1, 3),
    "slice_last": lambda s: s.str[-3:-1],
    "reversed": lambda s: s.str[::-1],
    "get": lambda s: s.str.get(1),
    "last": lambda s: s.str[-1],
    "second_last": lambda s: s.str[-2],
    "len": lambda s: s.str.len(),
    "count": lambda s: s.str.count("a"),
    "count_dot": lambda s: s.str.count(r"\."),
    "count_digits": lambda s: s.str.count(r"\d+"),
    "count_end": lambda s: s.str.count(r"b$"),
    "find": lambda s: s.str.find("b"),
    "rfind": lambda s: s.str.rfind("b"),
    "contains": lambda s: s.str.contains("a"),
    "contains_na": lambda s: s.str.contains("a", na=True),
    "contains_no_na": lambda s: s.str.contains("a|1", na=False),
    "contains_none": lambda s: s.str.contains("a", na=None),
    "contains_ignoring": lambda s: s.str.contains("ai|K", case=False),
    "contains_ignoring_text": lambda s: s.str.contains("i", case=False, regex=False),
    "contains_ignoring_end": lambda s: s.str.contains("i|b$", case=False),
    "contains_ignoring_word": lambda s: s.str.contains(r"i\w|\di", case=False),
    "contains_flags": lambda s: s.str.contains("I", flags=re.IGNORECASE),
    "contains_inline": lambda s: s.str.contains("(?i)i"),
    "contains_compiled": lambda s: s.str.contains(re.compile("i", re.IGNORECASE)),
    "contains_dot": lambda s: s.str.contains(".", regex=False),
    "contains_word": lambda s: s.str.contains(r"\bbar\b"),
    "contains_space": lambda s: s.str.contains(r"\s"),
    "contains_end": lambda s: s.str.contains("b$"),
    "match": lambda s: s.str.match("a|x"),
    "match_ignoring": lambda s: s.str.match("ab", case=False),
    "match_flags": lambda s: s.str.match("a.", flags=re.DOTALL | re.IGNORECASE),
    "fullmatch": lambda s: s.str.fullmatch(r"[+-]?\d+"),
    "fullmatch_ends": lambda s: s.str.fullmatch(r"^\d+$"),
    "fullmatch_choice": lambda s: s.str.fullmatch("a|lower$"),
    "startswith": lambda s: s.str.startswith("a"),
    "startswith_some": lambda s: s.str.startswith(("a", "U")),
    "endswith": lambda s: s.str.endswith("b", na=False),
    "isalpha": lambda s: s.str.isalpha(),
    "isalnum": lambda s: s.str.isalnum(),
    "isdecimal": lambda s: s.str.isdecimal(),
    "isdigit": lambda s: s.str.isdigit(),
    "isnumeric": lambda s: s.str.isnumeric(),
    "isspace": lambda s: s.str.isspace(),
    "isascii": lambda s: s.str.isascii(),
    "isupper": lambda s: s.str.isupper(),
    "islower": lambda s: s.str.islower(),
    "replace": lambda s: s.str.replace("a", "bb"),
    "replace_dot": lambda s: s.str.replace(".", ""),
    "replace_once": lambda s: s.str.replace("a", "b", n=1),
    "replace_pattern": lambda s: s.str.replace(r"[^a-z]", "", regex=True),
    "replace_spaces": lambda s: s.str.replace(r"\s+", "_", regex=True),
    "replace_start": lambda s: s.str.replace(r"^a", "x", regex=True),
    "replace_end": lambda s: s.str.replace(r"b$", "x", regex=True),
    "replace_ignoring": lambda s: s.str.replace("k", "_", case=False),
    "replace_compiled": lambda s: s.str.replace(re.compile("[IK]", re.IGNORECASE), "_", regex=True),
    "replace_groups": lambda s: s.str.replace(r"([A-Za-z]+)-(\d+)", r"\2-\1!", regex=True),
    "replace_named": lambda s: s.str.replace(r"(?P<k>\w)=(?P<v>\d*)", r"<\g<v>\\\g<0>>", regex=True),
    "replace_table": lambda s: s.str.replace({"a": "b", "b": "c"}),
    "slice_replace": lambda s: s.str.slice_replace(1, 2, "zz"),
    "slice_replace_rest": lambda s: s.str.slice_replace(2, repl="_"),
    "extract": lambda s: s.str.extract(r"(\d+)", expand=False),
    "extract_named": lambda s: s.str.extract(r"(?P<word>[A-Za-z]+)-(?P<number>\d*)"),
    "extract_one": lambda s: s.str.extract(r"=(\d+)"),
    "extract_flags": lambda s: s.str.extract(r"([k]+)", flags=re.IGNORECASE, expand=False),
    "split_first": lambda s: s.str.split(",").str[0],
    "split_get": lambda s: s.str.split(",").str.get(1),
    "split_last": lambda s: s.str.split(".").str[-1],
    "split_space": lambda s: s.str.split().str[0],
    "split_space_last": lambda s: s.str.split().str[-1],
    "split_space_n": lambda s: s.str.split(n=1).str[1],
    "split_space_rest": lambda s: s.str.split(None, n=1).str[-1],
    "split_n": lambda s: s.str.split("a", n=2).str[2],
    "split_n_last": lambda s: s.str.split("a", n=2).str[-1],
    "split_n_beyond": lambda s: s.str.split("a", n=1).str[2],
    "split_long": lambda s: s.str.split("aa").str[1],
    "split_pattern": lambda s: s.str.split(r"\s+").str[1],
    "split_class": lambda s: s.str.split(r"[,;]").str[-1],
    "split_escaped": lambda s: s.str.split(r"\.", regex=True).str[1],
    "split_comma": lambda s: s.str.split(r"\s*,\s*").str[1],
    "rsplit": lambda s: s.str.rsplit("-", n=1).str[0],
    "rsplit_last": lambda s: s.str.rsplit("-", n=1).str[-1],
    "rsplit_space": lambda s: s.str.rsplit(n=1).str[-1],
    "rsplit_all": lambda s: s.str.rsplit("-").str[0],
    "partition": lambda s: s.str.partition("a")[[0, 1, 2]].set_axis(["x", "y", "z"], axis=1),
    "rpartition": lambda s: s.str.rpartition("b")[2],
    "add": lambda s: s + "_x",
    "added": lambda s: "x" + s + s,
    "times": lambda s: s * 2,
    "cat": lambda s: s.str.cat(s, sep="-"),
    "cat_na": lambda s: s.str.cat([s.str.upper(), s], sep="-", na_rep="?"),
    "before": lambda s: s.fillna("") < "a",
    "after": lambda s: s.fillna("") > "ab",
    "at_most": lambda s: s.fillna("") <= "lower",
    "at_least": lambda s: s.fillna("") >= "汽",
    "beside": lambda s: s.fillna("") < s.fillna("").str.upper(),
    "replace_values": lambda s: s.replace("^a", "_", regex=True),
    "replace_values_table": lambda s: s.replace({"^a": "b", "b": "c", r"\d+": "#"}, regex=True),
    "replace_values_gone": lambda s: s.replace(r"^\s*$", np.nan, regex=True),
    "replace_values_by": lambda s: s.replace(regex={"a": "_"}),
}  # fmt: skip


def of_column(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def run(df: Any) -> Any:
        made = function(df["s"])
        return made if hasattr(made, "columns") else made.rename("r")

    return run


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", METHODS)
def test_methods_of_texts(name: str, kind: str) -> None:
    check(of_column(METHODS[name]), kind)


LABELS = ["Ab-12", "x,y", "K\u0130", "12"]


@pytest.mark.parametrize("labels", ["str", object])
@pytest.mark.parametrize(
    "name", ["upper", "title", "len", "contains", "contains_na", "contains_ignoring", "isupper", "replace", "zfill",
             "split_first", "extract", "extract_named", "cat", "get", "slice", "startswith", "partition"],
)  # fmt: skip
def test_categories_are_texts(name: str, labels: Any) -> None:
    """Pandas computes their labels by Python."""
    kind = pd.CategoricalDtype(pd.Index(LABELS, dtype=labels))

    def frame(values: list[Any]) -> Any:
        return pd.DataFrame({"s": pd.Series(values, dtype=kind)})

    function, sample = of_column(METHODS[name]), frame([*LABELS, None])
    model = onward.from_dataframe(function, sample, check=False)
    for values in ([*LABELS, None], ["K\u0130", "x,y"], ["12"]):
        assert same(function(frame(values)), onward.run(model, frame(values))) is None
    assert len(onward.run(model, frame([]))) == 0


APPLIED: dict[str, Callable[[str], Any]] = {
    "upper": lambda s: s.upper(),
    "title": lambda s: s.title(),
    "count": lambda s: s.count("."),
    "split": lambda s: s.split(",", 1)[0],
    "split_named": lambda s: s.split(" ", maxsplit=1)[-1],
    "split_long": lambda s: s.split("..")[0],
    "rsplit": lambda s: s.rsplit("-", 1)[0],
    "words": lambda s: len(s.split()),
    "isalpha": lambda s: s.isalpha(),
    "added": lambda s: s + "!",
    "replace": lambda s: s.replace("a", "b", 1),
    "branch": lambda s: "a" if s.startswith("a") else s.strip().lower(),
    "order": lambda s: s < "b",
    "find": lambda s: s.find("b"),
}


@pytest.mark.parametrize("name", APPLIED)
def test_functions_of_single_texts_have_the_methods_of_python(name: str) -> None:
    present = [value for value in EDGE if value is not None]
    check(lambda df: df["s"].apply(APPLIED[name]).rename("r"), sample=["Ab-12 c", "x,y;z", "12"], edge=present)


@pytest.mark.parametrize("name", ["added", "order", "upper", "split"])
def test_a_missing_value_has_no_methods(name: str) -> None:
    model = onward.from_dataframe(lambda df: df["s"].apply(APPLIED[name]), column(["a", "b"], "str"), check=False)
    with pytest.raises(Exception, match=r"apply|function|missing"):
        onward.run(model, column(["a", None], "str"))


NUMBERS = ["1", " 2 ", "-3", "+4", "1.5", "1e3", "", None, "abc", "5%", "1,234", "0x1A", "inf", "-inf", "nan", ".5",
           "5.", "1_000", "12345678901234567890", "9007199254740993", "-0", "1e400", "٣", "True", "--1",
           "1 2"]  # fmt: skip


@pytest.mark.parametrize("kind", ["str", "object", "python"])
def test_to_numeric(kind: str) -> None:
    def coerced(df: Any) -> Any:
        return pd.to_numeric(df["s"], errors="coerce")

    check(coerced, kind, ["1", "2.5", None], [v for v in NUMBERS if v is None or len(v) < 15])
    model = onward.from_dataframe(coerced, column(["1", "2"], kind), check=False)
    for values in (["1", "2"], NUMBERS, ["1", "x"], [None], ["7"], ["999999999999999"]):
        assert same(coerced(column(values, kind)), onward.run(model, column(values, kind))) is None
    with pytest.raises(Exception, match="15 digits"):
        onward.run(model, column(["9007199254740993", "1"], kind))


def test_to_numeric_raises_for_what_is_no_number() -> None:
    model = onward.from_dataframe(lambda df: pd.to_numeric(df["s"]), column(["1", "2.5"], "str"), check=False)
    assert onward.run(model, column(["1", "", None], "str")).tolist()[0] == 1
    with pytest.raises(Exception, match="no number"):
        onward.run(model, column(["1", "x"], "str"))


@pytest.mark.parametrize("kind", ["str", "object", "python"])
@pytest.mark.parametrize("target", ["int64", "int32", "uint8", "float64", "float32", int, float])
def test_texts_as_numbers(kind: str, target: Any) -> None:
    def cast(df: Any) -> Any:
        return df["s"].astype(target)

    model = onward.from_dataframe(cast, column(["1", "2"], kind), check=False)
    for value in NUMBERS:
        frame = column(["1", value], kind)
        try:
            wanted = cast(frame)
        except Exception:
            with pytest.raises(Exception, match="astype"):
                onward.run(model, frame)
        else:
            assert same(wanted, onward.run(model, frame)) is None, value


@pytest.mark.parametrize("dtype", ["int64", "int8", "int32", "uint8", "uint64", "bool", "Int64", "boolean", "Int8"])
@pytest.mark.parametrize("target", ["str", str, "string"])
def test_numbers_as_texts(dtype: str, target: Any) -> None:
    values: list[Any] = [True, False] if dtype.startswith("bool") else [0, 1, 100]
    if "int" in dtype and dtype[0] == "i":
        values += [-5, np.iinfo(dtype).min, np.iinfo(dtype).max]
    values += [None] if dtype[0] in "IB" or dtype == "boolean" else []
    values += [2**64 - 1] if dtype == "uint64" else []
    frame = pd.DataFrame({"n": pd.Series(values, dtype=dtype)})

    def cast(df: Any) -> Any:
        return df["n"].astype(target)

    model = onward.from_dataframe(cast, frame, check=False)
    assert same(cast(frame), onward.run(model, frame)) is None
    assert len(onward.run(model, frame[:0])) == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["get", "second_last", "split_get", "split_long", "extract"])
def test_a_sample_without_such_a_part(name: str, kind: str) -> None:
    """Pandas makes floats of a sample where all are missing, and texts of other data."""
    check(of_column(METHODS[name]), kind, sample=["a", "", None])


def test_split_into_columns() -> None:
    def expanded(df: Any) -> Any:
        return df["s"].str.split("-", expand=True)

    def known(df: Any) -> Any:
        return df["s"].str.split("-", n=1, expand=True)

    sample = column(["a-b-c", None, "x"], "str")
    for function in (expanded, known):
        model = onward.from_dataframe(function, sample, check=False)
        assert same(function(sample), onward.run(model, sample)) is None
        few = onward.run(model, column(["a", "b-c", ""], "str"))
        assert few["0"].tolist() == ["a", "b", ""] and few["1"].fillna("?").tolist() == ["?", "c", "?"]
        assert len(onward.run(model, column([], "str"))) == 0
    model = onward.from_dataframe(expanded, sample, check=False)
    with pytest.raises(Exception, match="more parts"):
        onward.run(model, column(["a-b-c-d"], "str"))


def test_index_fails_where_a_text_is_not_found() -> None:
    model = onward.from_dataframe(lambda df: df["s"].str.index("a"), column(["a", "ba"], "str"), check=False)
    assert onward.run(model, column(["ba", None], "str")).tolist()[0] == 1
    with pytest.raises(Exception, match="not found"):
        onward.run(model, column(["x"], "str"))


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "istitle": (lambda s: s.str.istitle(), "istitle"),
    "normalize": (lambda s: s.str.normalize("NFC"), "normal forms"),
    "findall": (lambda s: s.str.findall("a"), "depends on the data"),
    "get_dummies": (lambda s: s.str.get_dummies("|"), "depend on the data"),
    "all_as_one": (lambda s: s.str.cat(sep=","), "no rows"),
    "lists": (lambda s: s.str.split(","), "ListColumn"),
    "lists_used": (lambda s: s.str.split(",").explode(), "lists"),
    "list_slice": (lambda s: s.str.split(",").str[1:], "lists"),
    "tuples": (lambda s: s.str.partition(",", expand=False), "tuples"),
    "escape": (lambda s: s.str.replace(r"(\d)", r"<\1\n>", regex=True), "escape"),
    "groups_at_end": (lambda s: s.str.replace(r"(\d)$", r"<\1>", regex=True), "beside groups"),
    "function": (lambda s: s.str.replace("a", lambda m: m.group(), regex=True), "function"),
    "posix": (lambda s: s.str.contains("[[:alpha:]]"), "otherwise"),
    "bounds": (lambda s: s.str.contains("a{,2}"), "otherwise"),
    "count_start": (lambda s: s.str.count("^a"), "anew"),
    "count_word": (lambda s: s.str.count(r"\ba"), "anew"),
    "choice": (lambda s: s.str.fullmatch("^a|b$"), "leave out"),
    "look_ahead": (lambda s: s.str.contains("a(?!b)"), "looks ahead"),
    "split_words": (lambda s: s.str.split("and|or").str[0], "split at"),
    "split_groups": (lambda s: s.str.split("(,|;)").str[0], "groups"),
    "split_n_pattern": (lambda s: s.str.split("[,;]", n=1).str[0], "number of times"),
    "to_masked": (lambda s: s.str.len().astype("Int64").astype(str).astype("Int64"), "to_numeric"),
    "repeat_column": (lambda s: s.str.repeat([1, 2]), "whole number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_said_is_refused(name: str) -> None:
    function, words = REFUSED[name]
    with pytest.raises(UnsupportedError, match=words):
        onward.from_dataframe(lambda df: function(df["s"]), column(["a", "b"], "str"))


def test_floats_are_not_written_as_texts() -> None:
    with pytest.raises(UnsupportedError, match="fraction"):
        onward.from_dataframe(lambda df: df["x"].astype(str), pd.DataFrame({"x": [1.5]}))
