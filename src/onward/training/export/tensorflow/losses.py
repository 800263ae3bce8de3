"""Losses that TensorFlow lacks, or has in part, as source for `train.py`."""

import re
from collections.abc import Mapping, Sequence

CLASS_LOSS = '''
def class_loss(
    logp: tf.Tensor,
    labels: tf.Tensor,
    weight: Any = None,
    ignored: int | None = None,
    smoothing: float = 0.0,
    reduction: str = "mean",
) -> tf.Tensor:
    """The negative logarithm of the labelled class's probability: a mean over what counts, or a sum."""
    counts = tf.ones_like(labels, logp.dtype)
    if ignored is not None:
        counts = tf.cast(labels != ignored, logp.dtype)
        labels = tf.where(labels == ignored, tf.zeros_like(labels), labels)
    share = counts if weight is None else counts * tf.gather(tf.constant(weight, logp.dtype), labels)
    rank = logp.shape.rank
    classes_last = tf.transpose(logp, [0, *range(2, rank), 1])
    losses = -tf.gather(classes_last, labels, batch_dims=rank - 1) * share
    if smoothing:
        even = classes_last if weight is None else classes_last * tf.constant(weight, logp.dtype)
        losses = losses * (1 - smoothing) - tf.reduce_mean(even, -1) * counts * smoothing
    total = tf.reduce_sum(losses)
    return total / tf.reduce_sum(share) if reduction == "mean" else total
'''
SOFT_CLASS_LOSS = '''
def soft_class_loss(
    logp: tf.Tensor, p: tf.Tensor, weight: Any = None, smoothing: float = 0.0, reduction: str = "mean"
) -> tf.Tensor:
    """The cross entropy of probabilities of every class."""
    p = p * (1 - smoothing) + smoothing / logp.shape[1]
    if weight is not None:
        p = p * tf.reshape(tf.constant(weight, logp.dtype), [-1, *[1] * (logp.shape.rank - 2)])
    losses = -tf.reduce_sum(p * logp, 1)
    return tf.reduce_mean(losses) if reduction == "mean" else tf.reduce_sum(losses)
'''
HUBER_LOSS = '''
def huber_loss(error: tf.Tensor, delta: float) -> tf.Tensor:
    """Half the square of an error, which beyond `delta` goes on as a straight line."""
    size = tf.abs(error)
    return tf.where(size <= delta, 0.5 * error * error, delta * (size - 0.5 * delta))
'''
CTC_LOSS = '''
def ctc_loss(
    logp: tf.Tensor,
    labels: tf.Tensor,
    times: tf.Tensor,
    lengths: tf.Tensor,
    blank: int = 0,
    zero_infinity: bool = False,
    reduction: str = "mean",
) -> tf.Tensor:
    """The negative logarithm of the probability of labels [batch, most labels], over all ways to time them.

    `logp` is [time, batch, classes], of which the first `times` count; `lengths` says how many labels do.
    """
    never = tf.constant(-1e30, logp.dtype)
    lengths, times = tf.cast(lengths, labels.dtype), tf.cast(times, tf.int32)
    inside = tf.range(tf.shape(labels, labels.dtype)[1]) < lengths[:, None]
    blanks = tf.fill(tf.shape(labels), tf.cast(blank, labels.dtype))
    pairs = tf.stack([blanks, tf.where(inside, labels, blanks)], 2)
    places = tf.pad(tf.reshape(pairs, [tf.shape(labels)[0], -1]), [[0, 0], [0, 1]], constant_values=blank)
    seen = tf.gather(tf.transpose(logp, [1, 0, 2]), places, axis=2, batch_dims=1)
    seen = tf.maximum(tf.transpose(seen, [1, 0, 2]), never)
    alive = tf.range(tf.shape(logp)[0])[:, None, None] < times[:, None]

    def shifted(x: tf.Tensor, by: int, filled: Any) -> tf.Tensor:
        return tf.pad(x, [[0, 0], [by, 0]], constant_values=filled)[:, : tf.shape(x)[1]]

    skips = (places != blank) & (places != shifted(places, 2, blank))

    def step(state: tf.Tensor, now: Any) -> tf.Tensor:
        likely, counts = now
        over_blank = tf.where(skips, shifted(state, 2, never), never)
        ways = tf.stack([state, shifted(state, 1, never), over_blank])
        return tf.where(counts, tf.reduce_logsumexp(ways, 0) + likely, state)

    first = tf.range(tf.shape(places)[1])[None] == 0
    start = tf.where(tf.broadcast_to(first, tf.shape(places)), tf.zeros([], logp.dtype), never)
    end = tf.scan(step, (seen, alive), start)[-1]
    last = 2 * lengths[:, None]
    ways = tf.gather(end, tf.concat([last, tf.maximum(last - 1, 0)], 1), batch_dims=1)
    without = tf.stack([tf.ones_like(lengths, tf.bool), lengths > 0], 1)
    losses = -tf.reduce_logsumexp(tf.where(without, ways, never), 1)
    losses = tf.where(losses < 1e29, losses, 0.0 if zero_infinity else float("inf"))
    if reduction == "mean":
        return tf.reduce_mean(losses / tf.cast(tf.maximum(lengths, 1), losses.dtype))
    return tf.reduce_sum(losses)
'''
HELPERS: Mapping[str, str] = {
    "class_loss": CLASS_LOSS,
    "soft_class_loss": SOFT_CLASS_LOSS,
    "huber_loss": HUBER_LOSS,
    "ctc_loss": CTC_LOSS,
}
"""By the name that a loss calls it."""


def called(lines: Sequence[str]) -> list[str]:
    """The sources of those that some lines call."""
    text = "\n".join(lines)
    return [source for name, source in HELPERS.items() if re.search(rf"\b{name}\(", text)]
