"""Two ops of a laboratory, as a plugin: `onward plugins check examples/plugins/lab.py` compares all that it says.

An installed package is found by its entry point, whose name is the domain of the ops:

    [project.entry-points."onward.plugins"]
    "my.lab" = "mylab.onward_ops"
"""

import jax.numpy as jnp
import numpy as np
import tensorflow as tf
import torch
from onnxscript import opset20 as ox
from onnxscript import script

from onward.plugins import CustomOp

solve = CustomOp("my.lab::SolveSPD", inputs="a:T b:T", outputs="y:T", attributes={"ridge": 0.0})


@solve.infer
def _(a, b, *, ridge):
    return b


@solve.numpy
def _(a, b, *, ridge):
    return np.linalg.solve(a + a.dtype.type(ridge) * np.eye(a.shape[-1], dtype=a.dtype), b)


@solve.torch
def _(a, b, *, ridge):
    return torch.linalg.solve(a + ridge * torch.eye(a.shape[-1], dtype=a.dtype, device=a.device), b)


@solve.tensorflow
def _(a, b, *, ridge):
    return tf.linalg.solve(a + tf.cast(ridge, a.dtype) * tf.eye(tf.shape(a)[-1], dtype=a.dtype), b)


@solve.jax
def _(a, b, *, ridge):
    return jnp.linalg.solve(a + ridge * jnp.eye(a.shape[-1], dtype=a.dtype), b)


@solve.vjp
def _(c, g, a, b, *, ridge):
    back = solve(c, c.op.Transpose(a, perm=[1, 0]), g, ridge=ridge)
    return -(back @ c.op.Transpose(c.y, perm=[1, 0])), back


solve.from_torch("lab::solve")
solve.from_tensorflow("LabSolve")

fancy = CustomOp("my.lab::FancyGelu", inputs="x:T", outputs="y:T", attributes={"alpha": 1.702})


@fancy.body
@script(default_opset=ox)
def fancy_gelu(x, alpha: float = 1.702):
    return x * ox.Sigmoid(x * ox.CastLike(alpha, x))


fancy.from_torch("lab::fancy_gelu")
