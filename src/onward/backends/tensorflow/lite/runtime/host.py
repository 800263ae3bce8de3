"""What TensorFlow Lite is told of shapes."""

import tensorflow as tf


def dims_of(x: tf.Tensor) -> tf.Tensor:
    """The size of each axis, by the one kind of numbers in which the converter folds it right."""
    return tf.cast(tf.shape(x), tf.int64)


def of_shape(x: tf.Tensor, shape: tf.TensorShape) -> tf.Tensor:
    """A tensor of which this is known of its shape, said by an op: the converter forgets everything else."""
    if shape.rank is None or all(n is None for n in shape):
        return x
    sizes = tf.shape(x)
    return tf.reshape(x, [sizes[i] if n is None else n for i, n in enumerate(shape)])
