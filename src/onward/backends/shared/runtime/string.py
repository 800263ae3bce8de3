"""Text in numpy object arrays."""

import re
from collections import Counter
from typing import Any

import numpy as np


def join_strings(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Each string of `a` followed by that of `b`."""
    return np.asarray(a + b, dtype=object)


def parts_of_text(x: np.ndarray, delimiter: str | None, limit: int = -1) -> tuple[np.ndarray, np.ndarray]:
    """The parts of each string, filled up with empty strings along a new last axis, and how many there are.

    Without a delimiter, strings are split at white space, and none is left around them. An empty string has no parts.
    """
    texts = x.reshape(-1) if delimiter else [text.strip() for text in x.reshape(-1)]
    parts = [text.split(delimiter, limit) if text else [] for text in texts]
    counts = [len(p) for p in parts]
    width = max(counts, default=0)
    out = np.full((len(parts), width), "", dtype=object)
    for row, words in zip(out, parts, strict=True):
        row[: len(words)] = words
    return out.reshape(*x.shape, width), np.array(counts, dtype=np.int64).reshape(x.shape)


def normalize_text(x: np.ndarray, case: str | None, stop_words: list[str], case_sensitive: bool) -> np.ndarray:
    """Drop stop words and change to 'lower' or 'upper' case; one empty string is left where nothing else is."""
    stop = set(stop_words)
    kept = [w for w in x.reshape(-1) if (w if case_sensitive else w.lower()) not in stop]
    changed = [getattr(w, case)() for w in kept] if case else kept
    return np.array(changed or [""], dtype=object).reshape([1] * (x.ndim - 1) + [-1])


def matches(x: np.ndarray, pattern: str) -> np.ndarray:
    """Whether each string as a whole matches a regular expression."""
    found = [re.fullmatch(pattern, text, re.ASCII) is not None for text in x.reshape(-1)]
    return np.array(found, dtype=bool).reshape(x.shape)


def ngram_counts(
    x: Any, pool: Any, starts: list[int], indexes: Any, lengths: tuple[int, int], skips: int
) -> np.ndarray:
    """How often each n-gram of a pool occurs in a row of words (or in each of several rows).

    `pool` holds all 1-grams, then all 2-grams and so on, from `starts` on; n-gram number i is counted at `indexes[i]`.
    The words of an n-gram follow each other directly or, up to `skips`, each with the same number of words between.
    """
    words, columns = pool.tolist(), indexes.tolist()
    place: dict[tuple[Any, ...], int] = {}
    number = 0
    for n, (start, end) in enumerate(zip(starts, [*starts[1:], len(words)], strict=True), 1):
        for i in range(start, end - n + 1, n):
            place[tuple(words[i : i + n])] = columns[number]
            number += 1
    rows = x.tolist() if x.ndim > 1 else [x.tolist()]
    out = np.zeros((len(rows), max(columns) + 1), dtype=np.float32)
    for r, row in enumerate(rows):
        for n in range(lengths[0], lengths[1] + 1):
            for step in range(1, skips + 2 if n > 1 else 2):
                last = len(row) - step * (n - 1)
                grams = Counter(tuple(row[i : i + step * (n - 1) + 1 : step]) for i in range(last))
                for gram, count in grams.items():
                    if gram in place:
                        out[r, place[gram]] += count
    return out if x.ndim > 1 else out[0]
