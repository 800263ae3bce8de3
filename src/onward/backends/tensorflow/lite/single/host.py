"""Numbers of shapes in single precision, in which ONNX says nearly all of them, and TensorFlow Lite has its kernels."""

import tensorflow as tf

DOUBLE = tf.float32
