"""Losses that optax lacks, or has in part, as source for `train.py`."""

from collections.abc import Mapping

CLASS_LOSS = '''
def class_loss(
    logp: Array,
    labels: Array,
    weight: Any = None,
    ignored: int | None = None,
    smoothing: float = 0.0,
    reduction: str = "mean",
) -> Array:
    """The negative logarithm of the labelled class's probability: a mean over what counts, or a sum."""
    counts = jnp.ones(labels.shape, logp.dtype) if ignored is None else (labels != ignored).astype(logp.dtype)
    index = jnp.where(counts > 0, labels, 0)
    share = counts if weight is None else counts * jnp.array(weight, logp.dtype)[index]
    losses = -jnp.take_along_axis(logp, index[:, None], axis=1)[:, 0] * share
    if smoothing:
        ends = [1] * (logp.ndim - 2)
        even = logp if weight is None else logp * jnp.array(weight, logp.dtype).reshape(-1, *ends)
        losses = losses * (1 - smoothing) - even.mean(axis=1) * counts * smoothing
    return losses.sum() / share.sum() if reduction == "mean" else losses.sum()
'''
SOFT_CLASS_LOSS = '''
def soft_class_loss(
    logp: Array, p: Array, weight: Any = None, smoothing: float = 0.0, reduction: str = "mean"
) -> Array:
    """The cross entropy of probabilities of every class."""
    p = p * (1 - smoothing) + smoothing / logp.shape[1]
    if weight is not None:
        p = p * jnp.array(weight, logp.dtype).reshape(-1, *[1] * (logp.ndim - 2))
    losses = -(p * logp).sum(axis=1)
    return losses.mean() if reduction == "mean" else losses.sum()
'''
CTC_LOSS = '''
def ctc_loss(
    logp: Array,
    labels: Array,
    times: Array,
    lengths: Array,
    blank: int = 0,
    zero_infinity: bool = False,
    reduction: str = "mean",
) -> Array:
    """The negative logarithm of the probability of labels [batch, most labels], over all ways to time them.

    `logp` is [time, batch, classes], of which the first `times` count; `lengths` says how many labels do.
    """
    never = -1e30
    inside = jnp.arange(labels.shape[1]) < lengths[:, None]
    pairs = jnp.stack([jnp.full_like(labels, blank), jnp.where(inside, labels, blank)], 2)
    places = jnp.pad(pairs.reshape(len(labels), -1), ((0, 0), (0, 1)), constant_values=blank)
    seen = jnp.maximum(jnp.take_along_axis(logp, places[None], 2), never)
    alive = jnp.arange(len(logp))[:, None, None] < times[:, None]

    def shifted(x: Array, by: int, filled: float) -> Array:
        return jnp.pad(x, ((0, 0), (by, 0)), constant_values=filled)[:, : x.shape[1]]

    skips = (places != blank) & (places != shifted(places, 2, blank))

    def step(state: Array, now: Any) -> Any:
        likely, counts = now
        over_blank = jnp.where(skips, shifted(state, 2, never), never)
        ways = jnp.stack([state, shifted(state, 1, never), over_blank])
        return jnp.where(counts, jax.nn.logsumexp(ways, axis=0) + likely, state), None

    start = jnp.full(places.shape, never, logp.dtype).at[:, 0].set(0)
    end, _ = jax.lax.scan(step, start, (seen, alive))
    last = 2 * lengths[:, None]
    ways = jnp.take_along_axis(end, jnp.concatenate([last, jnp.maximum(last - 1, 0)], 1), 1)
    losses = -jax.nn.logsumexp(ways.at[:, 1].set(jnp.where(lengths > 0, ways[:, 1], never)), axis=1)
    losses = jnp.where(losses < 1e29, losses, 0 if zero_infinity else jnp.inf)
    return (losses / jnp.maximum(lengths, 1)).mean() if reduction == "mean" else losses.sum()
'''
HELPERS: Mapping[str, str] = {"class_loss": CLASS_LOSS, "soft_class_loss": SOFT_CLASS_LOSS, "ctc_loss": CTC_LOSS}
"""By the name that a loss calls it."""
