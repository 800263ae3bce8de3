"""Text against ONNX Runtime."""

import numpy as np
import pytest
from harness import check, node_model

from onward.errors import UnsupportedError
from onward.spec.string import python_pattern


def words(*items, shape=None):
    array = np.array(items, dtype=object)
    return array if shape is None else array.reshape(shape)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (words("a", "é"), words("b", "")),
        (words("a", "b", shape=(2, 1)), words("x", "y", "z")),
        (words("a", shape=()), words("b", shape=())),
        (words("a", shape=()), words("b", "c")),
        (words(shape=(0,)), words("b", shape=(1,))),
    ],
)
def test_concat(a, b):
    check(*node_model("StringConcat", [a, b]))
    check(*node_model("StringConcat", [a, b], fixed=(1,)))


@pytest.mark.parametrize("delimiter", [None, "", " ", ",", "--", "a"])
@pytest.mark.parametrize("maxsplit", [None, 1])
@pytest.mark.parametrize(
    "x",
    [
        words("a b c", " leading", "trailing  ", "two  spaces", " a  b "),
        words("1,2,,3", ",,", "none", "a--b----c", "aaa", shape=(1, 5)),
        words("", "x"),
        words("", ""),
        words("one", shape=()),
        words(shape=(0, 2)),
    ],
)
def test_split(x, delimiter, maxsplit):
    attributes = {} if delimiter is None else {"delimiter": delimiter}
    if maxsplit is not None:
        attributes["maxsplit"] = maxsplit
    check(*node_model("StringSplit", [x], 2, **attributes))


def test_split_at_any_white_space():
    """ONNX Runtime knows blanks only."""
    expected = [words("a", "b", "c", shape=(1, 3)), np.array([3])]
    check(*node_model("StringSplit", [words("a\tb\nc")], 2), expected=expected)


@pytest.mark.parametrize(
    "x", [words("monday", "Tuesday", "WEDNESDAY", "Été"), words("monday", "Tuesday", shape=(1, 2))]
)
@pytest.mark.parametrize("case", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("stop", [(), ("monday",), ("TUESDAY", "Monday"), ("monday", "Tuesday", "WEDNESDAY", "Été")])
def test_normalizer(x, case, sensitive, stop):
    attributes = {"stopwords": list(stop)} if stop else {}
    attributes |= {"case_change_action": case, "is_case_sensitive": sensitive, "locale": "C.UTF-8"}
    check(*node_model("StringNormalizer", [x], **attributes))


PATTERNS = [
    r"www\.[\w.-]+\.\bcom\b",
    r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)",
    r"[[:alpha:]]+[[:digit:]_]*",
    r"[^[:space:]]+",
    r"[]a]+",
    r"[^]]",
    r"[[]x",
    r"\d+",
    r"\Qa.b\E+",
    r"a$",
    r"^a\z",
    r"(?i)ABC",
    r"(?i:ab)C",
    r"(?P<name>a)+",
    r"(?:a|b){2,3}",
    r".",
    r"(?s).*",
    r"(?m)a$\n^b$",
    r"\s",
    r"[\S]|[^\S\n]",
    r"\x{e9}",
    r"\pL+",
    r"\p{Greek}",
    r"",
    r"a|",
]
TEXTS = words(
    "www.google.com",
    "account@gmail.com",
    "abc12_",
    "a",
    "]",
    "[x",
    "١",
    "12",
    "a.bb",
    "a\n",
    "aBC",
    "abC",
    "aaa",
    "é",
    "",
    " ",
    "αβ",
    "\n",
    "\v",
    "a\nb",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_regex(pattern):
    model, given = node_model("RegexFullMatch", [TEXTS], pattern=pattern)
    try:
        check(model, given)
    except UnsupportedError:
        assert pattern in (r"\pL+", r"\p{Greek}")


@pytest.mark.parametrize("pattern", [r"(a)\1", r"a(?=b)", r"(?<=a)b", r"a\Z", "(", r"[[:nothing:]]", "\\"])
def test_patterns_that_are_not_valid(pattern):
    with pytest.raises(Exception, match=r"."):
        python_pattern(pattern)


NUMBERS = {
    "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7],
}
TERMS = {"ngram_counts": [0, 2], "ngram_indexes": [3, 0, 1], "pool_strings": ["a", "b", "a", "b"]}


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize(("shortest", "longest"), [(1, 1), (2, 2), (1, 2)])
@pytest.mark.parametrize("skips", [0, 5])
@pytest.mark.parametrize("weighted", [False, True])
def test_tf_idf(mode, shortest, longest, skips, weighted):
    common = {"mode": mode, "min_gram_length": shortest, "max_gram_length": longest, "max_skip_count": skips}
    for inputs, pool in [
        ([np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]])], NUMBERS),
        ([np.array([8, 6, 7, 5, 6, 8], dtype=np.int32)], NUMBERS),
        ([words("a", "b", "c", "b", "a", "a", "b", shape=(1, 7))], TERMS),
    ]:
        weights = {"weights": [0.5 + i for i in range(len(pool["ngram_indexes"]))]} if weighted else {}
        check(*node_model("TfIdfVectorizer", inputs, **common, **pool, **weights))


def test_cast_to_and_from_strings():
    check(*node_model("Cast", [words("1", "-2", "3")], to=7))
    check(*node_model("Cast", [np.array([1, -2, 3])], to=8))


def test_where_and_equal():
    a, b = words("x", "y", "z"), words("x", "q", "z")
    check(*node_model("Equal", [a, b]))
    check(*node_model("Where", [np.array([True, False, True]), a, b]))
    check(*node_model("Where", [np.array([[True], [False]]), a, words("q", shape=())], fixed=(2,)))
