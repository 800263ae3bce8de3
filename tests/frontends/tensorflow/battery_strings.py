"""Strings."""

from typing import Any

import numpy as np
import tensorflow as tf
from battery import cases, integers, numbers

TEXTS = np.array(["Ab c", "", "xyz 12"])

WORDS = np.array(["Ab c", "", "xyz 12", "ÄÖ ü"])

DYNAMIC: dict[str, tuple[Any, ...]] = {
    "s_strip": (tf.strings.strip, np.array([" a ", "b "])),
    "s_regex_replace": (lambda x: tf.strings.regex_replace(x, "[0-9]+", "#"), TEXTS),
    "s_split_sep": (lambda x: tf.strings.split(x, ",").to_tensor("-"), np.array(["a,b", "c"])),
    "s_bytes_split": (lambda x: tf.strings.bytes_split(x).to_tensor(""), TEXTS),
    "s_length": (tf.strings.length, TEXTS),
    "s_substr": (lambda x: tf.strings.substr(x, 0, 2), np.array(["abc", "defg"])),
    "s_lower": (tf.strings.lower, TEXTS),
    "s_upper": (tf.strings.upper, TEXTS),
    "s_hash": (lambda x: tf.strings.to_hash_bucket_fast(x, 100), TEXTS),
    "s_hash_strong": (lambda x: tf.strings.to_hash_bucket_strong(x, 100, [1, 2]), TEXTS),
    "s_as_string_f": (lambda x: tf.strings.as_string(x, precision=2), numbers(3)),
    "s_as_string_b": (lambda x: tf.strings.as_string(x > 0), numbers(3)),
    "s_format": (lambda x: tf.strings.format("v={}", x), np.array(3, np.int32)),
    "s_ngrams": (lambda x: tf.strings.ngrams(x, 2), np.array(["a", "b", "c"])),
    "s_to_number_i": (lambda x: tf.strings.to_number(x, tf.int32), np.array(["1", "22"])),
    "s_join_sep": (lambda x, y: tf.strings.join([x, y], "-"), np.array(["a", "b"]), np.array(["c", "d"])),
    "s_reduce_join": (lambda x: tf.strings.reduce_join(x, axis=0, separator=" "), np.array([["a", "b"], ["c", "d"]])),
    "s_unicode_len": (lambda x: tf.strings.length(x, unit="UTF8_CHAR"), WORDS),
    "s_unicode_decode": (lambda x: tf.strings.unicode_decode(x, "UTF-8").to_tensor(), WORDS),
    "s_lookup_str": (
        lambda x: tf.lookup.StaticVocabularyTable(
            tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([0, 1], tf.int64)), 1
        ).lookup(x),
        np.array(["a", "b", "a"]),
    ),
    "s_equal_const": (lambda x: tf.equal(x, "a"), np.array(["a", "b"])),
    "s_concat": (lambda x: tf.concat([x, ["z"]], 0), np.array(["a", "b"])),
    "s_unique": (lambda x: tf.unique(x), np.array(["a", "b", "a"])),
    "s_onehot_table": (
        lambda x: tf.one_hot(
            tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1]), -1).lookup(x), 3
        ),
        np.array(["a", "b", "q"]),
    ),
    "s_pad": (lambda x: tf.pad(x, [[0, 1]], constant_values="p"), np.array(["a", "b"])),
    "s_tile": (lambda x: tf.tile(x, [2]), np.array(["a", "b"])),
    "s_b64": (tf.io.encode_base64, np.array(["ab"])),
    "s_zfill": (lambda x: tf.strings.as_string(x, width=5, fill="0"), integers(3, low=0)),
}
STATIC: dict[str, tuple[Any, ...]] = {}

CASES = cases(DYNAMIC) + cases(STATIC, static=True)
