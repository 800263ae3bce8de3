"""Texts: what is replaced in them, and runs of their words."""

import re
import string
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from test_battery import check, expected, run  # noqa: E402

from onward.errors import UnsupportedError  # noqa: E402
from onward.exporters import from_tensorflow  # noqa: E402

TEXTS = np.array([["A fox, a fox!<br />Über..", "x"], ["", "(-)[*]\\ 'é_'"]])
FOUND = {
    "text": (r"<br />", " "),
    "escaped text": (r"\.\.", "…"),
    "punctuation": (f"[{re.escape(string.punctuation)}]", ""),
    "range": ("[,-.]", " + "),
    "one of two": ("[fx]", "<>"),
}
REFUSED = {
    "repeated": ("a+", ""),
    "not one of": ("[^a]", ""),
    "class": (r"[\d]", ""),
    "group": ("(a)", r"\1"),
    "text in itself": ("[a-]", "-a"),
}


def converted(function: Any, *data: Any) -> None:
    specs = [tf.TensorSpec([None] * x.ndim, tf.string if x.dtype.kind == "U" else x.dtype) for x in data]
    concrete = tf.function(function).get_concrete_function(*specs)
    for one, other in zip(run(from_tensorflow(concrete, check=False), data), expected(concrete, data), strict=True):
        check(one, other)


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_is_replaced(name: str) -> None:
    pattern, rewrite = FOUND[name]
    converted(lambda x: tf.strings.regex_replace(x, pattern, rewrite), TEXTS)


@pytest.mark.parametrize("name", REFUSED)
def test_what_takes_more_than_a_split_is_refused(name: str) -> None:
    pattern, rewrite = REFUSED[name]
    with pytest.raises(UnsupportedError, match="regular expression"):
        from_tensorflow(lambda x: tf.strings.regex_replace(x, pattern, rewrite), [tf.TensorSpec([None], tf.string)])


@pytest.mark.parametrize("widths", [[1], [2], [1, 2, 3], [3, 1]], ids=str)
def test_runs_of_words(widths: list[int]) -> None:
    texts = np.array(["one two three four", "", "five", "six seven"])

    def runs(x: Any) -> Any:
        found = tf.strings.ngrams(tf.strings.split(x), widths, separator="_")
        return found.values, found.row_splits

    converted(runs, texts)


@pytest.mark.parametrize("binary", [False, True], ids=["how often", "whether"])
def test_bins_of_ragged_rows(binary: bool) -> None:
    splits = np.array([0, 3, 3, 7])
    values = np.array([1, 1, 9, 0, 2, 2, 2])

    def counted(splits: Any, values: Any) -> Any:
        return tf.raw_ops.RaggedBincount(
            splits=splits, values=values, size=np.int64(4), weights=tf.zeros([0]), binary_output=binary
        )

    converted(counted, splits, values)


def test_hashes_of_numbers() -> None:
    rng = np.random.default_rng(0)
    edges = np.array([0, 1, -1, 10, -(2**63), 2**63 - 1, 2**53 + 1])
    numbers = np.concatenate([edges, *(rng.integers(-(10**k), 10**k, 4) for k in range(1, 19))])
    converted(lambda x: tf.strings.to_hash_bucket_fast(tf.as_string(x), 1000003), numbers)
    converted(lambda x: tf.strings.to_hash_bucket_fast(tf.as_string(x), 7), numbers[:12].astype(np.int32).reshape(3, 4))


def test_a_single_bucket_holds_every_string() -> None:
    converted(lambda x: tf.strings.to_hash_bucket_fast(x, 1), TEXTS)


def test_hashes_of_strings_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="into 7 buckets, and ONNX has no op for the bytes of a string"):
        from_tensorflow(lambda x: tf.strings.to_hash_bucket_fast(x, 7), [tf.TensorSpec([None], tf.string)])
