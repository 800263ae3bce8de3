"""Batch normalisation that trains as in other frameworks."""

from typing import Any

import keras
from keras import layers


@keras.saving.register_keras_serializable("onward")
class UnbiasedBatchNormalization(layers.BatchNormalization):
    """Batch normalisation whose running variance takes in the unbiased variance of each batch, as PyTorch's does."""

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        kept = self.momentum * self.moving_variance
        y = super().call(inputs, training=training, mask=mask)
        if training and self.trainable:
            count = keras.ops.cast(keras.ops.size(inputs) // keras.ops.size(kept), kept.dtype)
            taken_in = (self.moving_variance - kept) * count / keras.ops.maximum(count - 1, 1)
            self.moving_variance.assign(kept + taken_in)
        return y
