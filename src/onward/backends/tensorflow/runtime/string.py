"""Text in string tensors."""

from collections.abc import Sequence

import tensorflow as tf

from onward.backends.tensorflow.runtime.host import dims_of, greatest, size


def split_text(x: tf.Tensor, delimiter: str | None, limit: int = -1) -> tuple[tf.Tensor, tf.Tensor]:
    """The parts of each string, filled up with empty strings along a new last axis, and how many there are.

    Without a delimiter, strings are split at white space, and none is left around them. An empty string has no parts.
    """
    texts = tf.reshape(x if delimiter else tf.strings.strip(x), [-1])
    parts = tf.strings.split(texts, delimiter, limit) if limit else tf.RaggedTensor.from_tensor(texts[:, tf.newaxis])
    rows = parts.to_tensor("", shape=[None, None])
    if delimiter:
        counts = tf.where(texts == "", tf.zeros([], tf.int64), parts.row_lengths())
    else:
        counts = tf.reduce_sum(tf.cast(rows != "", tf.int64), 1)
    width = tf.reduce_max(tf.concat([counts, [0]], 0))
    shape = dims_of(x)
    return tf.reshape(rows[:, :width], tf.concat([shape, [width]], 0)), tf.reshape(counts, shape)


def normalize_text(x: tf.Tensor, case: str | None, stop_words: list[str], case_sensitive: bool) -> tf.Tensor:
    """Drop stop words and change to 'lower' or 'upper' case; one empty string is left where nothing else is."""
    words = tf.reshape(x, [-1])
    if stop_words:
        compared = words if case_sensitive else tf.strings.lower(words, encoding="utf-8")
        is_stop = tf.reduce_any(compared[:, tf.newaxis] == tf.constant(stop_words), 1)
        words = tf.boolean_mask(words, ~is_stop)
    if case:
        words = (tf.strings.lower if case == "lower" else tf.strings.upper)(words, encoding="utf-8")
    nothing = tf.fill([tf.cast(tf.equal(tf.size(words), 0), tf.int32)], "")
    return tf.reshape(tf.concat([words, nothing], 0), [*[1] * (x.shape.rank - 1), -1])


def count_ngrams(
    x: tf.Tensor,
    pool: tf.Tensor,
    starts: Sequence[int],
    columns: tf.Tensor,
    width: int,
    lengths: tuple[int, int],
    skips: int,
) -> tf.Tensor:
    """How often each n-gram of a pool occurs in a row of words (or in each of several rows).

    `pool` holds all 1-grams, then all 2-grams and so on, from `starts` on; n-gram number i is counted in `columns[i]`.
    The words of an n-gram follow each other directly or, up to `skips`, each with the same number of words between.
    """
    rows = x if x.shape.rank > 1 else x[tf.newaxis]
    rows = rows if x.dtype == tf.string else tf.cast(rows, tf.int64)
    counts = []
    for n in range(1, len(starts)):
        known = tf.reshape(pool[starts[n - 1] : starts[n]], [-1, n])
        found = tf.zeros([size(rows, 0), size(known, 0)])
        if lengths[0] <= n <= lengths[1]:
            for step in range(1, skips + 2 if n > 1 else 2):
                found = found + occurrences(rows, known, n, step)
        counts.append(found)
    total = tf.math.unsorted_segment_sum(tf.transpose(tf.concat(counts, 1)), columns, width)
    return tf.transpose(total) if x.shape.rank > 1 else total[:, 0]


def occurrences(rows: tf.Tensor, known: tf.Tensor, n: int, step: int) -> tf.Tensor:
    """How often each of the known n-grams occurs in each row, its words `step` apart."""
    places = greatest(size(rows, 1) - step * (n - 1), 0)
    equal = [rows[:, k * step : k * step + places, tf.newaxis] == known[:, k] for k in range(n)]
    return tf.reduce_sum(tf.cast(tf.reduce_all(tf.stack(equal), 0), tf.float32), 1)
