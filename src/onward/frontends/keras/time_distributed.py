"""A layer applied to each step of a series: all steps at once, as a larger batch.

Keras writes the layer once for each step; where their number is open, version 3.15 takes the batch for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onward.errors import UnsupportedError


@contextmanager
def steps_as_batch() -> Iterator[None]:
    """While it lasts, `TimeDistributed` joins time and batch where the layer inside treats each row by itself."""
    import keras

    kind = keras.layers.TimeDistributed
    original = kind.call
    kind.call = _joining(original)
    try:
        yield
    finally:
        kind.call = original


def _joining(original: Any) -> Any:
    from keras import ops

    def call(self: Any, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        masked = mask is not None and self.layer._call_has_mask_arg
        if training or masked or not _row_by_row(self.layer):
            if inputs.shape[1] is None:
                raise UnsupportedError(
                    f"TimeDistributed {self.name!r}: {type(self.layer).__name__} over an open number of steps"
                    " is not supported"
                )
            return original(self, inputs, training=training, mask=mask)
        steps = ops.shape(inputs)
        options = {"training": training} if self.layer._call_has_training_arg else {}
        outputs = self.layer.call(ops.reshape(inputs, (-1, *steps[2:])), **options)
        return ops.reshape(outputs, (-1, steps[1], *ops.shape(outputs)[1:]))

    return call


def _row_by_row(layer: Any) -> bool:
    """Whether no row of a batch can depend on another: so it is with Keras' own layers, unless they keep states."""
    import keras

    return all(
        type(part).__module__.startswith("keras.")
        and not isinstance(part, keras.layers.Lambda)
        and not getattr(part, "stateful", False)
        for part in layer._flatten_layers()
    )
