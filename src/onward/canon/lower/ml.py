"""Classical preprocessing and linear models of `ai.onnx.ml`, in standard ops.

Where ONNX leaves a case open, the result is ONNX Runtime's.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.canon.lower.registry import lowering
from onward.errors import UnsupportedError
from onward.graph.rewriter import Rewriter, describe, dims, needed, rank, require, take

_D = ir.DataType

TO_THE_END = 2**31 - 1


def as_float(x: ir.Value, op: Rewriter) -> ir.Value:
    return x if x.dtype == _D.FLOAT else op("Cast", x, to=_D.FLOAT)


def as_rows(x: ir.Value, op: Rewriter) -> ir.Value:
    """`x` of shape (rows, features); a single row may come without an axis for rows."""
    known = rank(x)
    if known == 2:
        return x
    if known == 1:
        return op("Unsqueeze", x, op.ints([0]))
    return op("Reshape", x, op("Concat", op.ints([-1]), op("Shape", x, start=-1), axis=0))


def weight(array: npt.NDArray[Any], name: str, op: Rewriter) -> ir.Value:
    """A weight of the model that so far was an attribute of the node: its name, followed by `name`."""
    base = op.node.name or next((o.name for o in op.node.outputs if o.name), "") or op.node.op_type.lower()
    value = ir.Value(name=op.names.value(base + name))
    value.const_value = ir.tensor(array, name=value.name)
    value.type, value.shape = ir.TensorType(value.const_value.dtype), ir.Shape(array.shape)
    op.graph.register_initializer(value)
    return value


def per_feature(values: Sequence[Any], x: ir.Value, dtype: Any, op: Rewriter) -> ir.Value:
    """One number for all features or one for each, along the last axis of `x`."""
    if len(values) == 1:
        return op.constant(np.array(values[0], dtype))
    if (rank(x) or 0) > 2:
        raise UnsupportedError(f"{describe(op.node)}: its input has more than two dimensions")
    return op.constant(np.array(values, dtype))


@lowering("ai.onnx.ml::Scaler")
def scaler(node: ir.Node, op: Rewriter) -> None:
    x, offset, scale = needed(node, 0), take(node, "offset", [0.0]), take(node, "scale", [1.0])
    kept = x if x.dtype == _D.DOUBLE else as_float(x, op)
    dtype = np.float64 if x.dtype == _D.DOUBLE else np.float32
    singles = [np.asarray(values, np.float32) for values in (offset, scale)]
    shift, factor = (per_feature(list(values), x, dtype, op) for values in singles)
    op.replace(as_float(op("Mul", op("Sub", kept, shift), factor), op))


@lowering("ai.onnx.ml::Binarizer")
def binarizer(node: ir.Node, op: Rewriter) -> None:
    x = needed(node, 0)
    above = op("Greater", x, op.number(take(node, "threshold", 0.0), x))
    op.replace(op("CastLike", above, x) if x.dtype is None else op("Cast", above, to=x.dtype))


@lowering("ai.onnx.ml::Normalizer")
def normalizer(node: ir.Node, op: Rewriter) -> None:
    x = as_float(needed(node, 0), op)
    reduction = {"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}[take(node, "norm", "MAX")]
    norm = op(reduction, x, op.ints([-1]), keepdims=1)
    safe = op("Where", op("Equal", norm, op.floats(0.0)), op.floats(1.0), norm)
    op.replace(op("Div", x, safe))


@lowering("ai.onnx.ml::Imputer")
def imputer(node: ir.Node, op: Rewriter) -> None:
    x = needed(node, 0)
    if x.dtype is None:
        raise UnsupportedError(f"{describe(node)}: the element type of its input is not known")
    kind = ("imputed_value_floats", "replaced_value_float", 0.0)
    if not x.dtype.is_floating_point():
        kind = ("imputed_value_int64s", "replaced_value_int64", 0)
    values, replaced = require(node, kind[0]), take(node, kind[1], kind[2])
    known = dims(x)
    if len(values) > 1 and known and known[-1] not in (None, len(values)):
        values = values[:1]
    is_nan = replaced != replaced
    missing = op("IsNaN", x) if is_nan else op("Equal", x, op.constant(np.array(replaced, x.dtype.numpy())))
    op.replace(op("Where", missing, per_feature(values, x, x.dtype.numpy(), op), x))


@lowering("ai.onnx.ml::FeatureVectorizer")
def feature_vectorizer(node: ir.Node, op: Rewriter) -> None:
    """Each input gives as many columns as `inputdimensions` says: cut, or filled up with zeros."""
    sizes = require(node, "inputdimensions")
    parts = []
    for x, size in zip(node.inputs, sizes, strict=True):
        assert x is not None
        columns = as_rows(x, op) if rank(x) in (1, 2) else _flat_rows(x, op)
        columns = as_float(columns, op)
        known = dims(columns)
        if known is None or known[1] != size:
            columns = op("Slice", columns, op.ints([0]), op.ints([size]), op.ints([1]))
            lacking = op("Sub", op.ints([size]), op("Shape", columns, start=1, end=2))
            columns = op("Pad", columns, op("Concat", op.ints([0]), lacking, axis=0), None, op.ints([1]))
        parts.append(columns)
    op.replace(parts[0] if len(parts) == 1 else op("Concat", *parts, axis=1))


def _flat_rows(x: ir.Value, op: Rewriter) -> ir.Value:
    """Everything after the first axis as one row; a vector is one row."""
    if rank(x) is not None:
        return op("Flatten", x, axis=1)
    shape = op("Concat", op.ints([1]), op("Shape", x), axis=0)
    is_vector = op("Equal", op.rank(x), op.ints([1]))
    first = op(
        "Slice",
        shape,
        op("Where", is_vector, op.ints([0]), op.ints([1])),
        op("Where", is_vector, op.ints([1]), op.ints([2])),
    )
    return op("Reshape", x, op("Concat", first, op.ints([-1]), axis=0))


@lowering("ai.onnx.ml::LinearRegressor")
def linear_regressor(node: ir.Node, op: Rewriter) -> None:
    targets = take(node, "targets", 1)
    coefficients = np.asarray(require(node, "coefficients"), np.float32).reshape(targets, -1)
    intercepts = np.asarray(take(node, "intercepts", []), np.float32)
    bias = weight(intercepts, ".bias", op) if len(intercepts) == targets else None
    x = as_float(as_rows(needed(node, 0), op), op)
    scores = op("Gemm", x, weight(coefficients, ".weight", op), bias, transB=1)
    op.replace(transformed(scores, take(node, "post_transform", "NONE"), targets, op))


def transformed(scores: ir.Value, transform: str, columns: int, op: Rewriter) -> ir.Value:
    """The scores after `post_transform`; of the transforms of a single column only PROBIT means something."""
    if transform == "PROBIT":
        return probit(scores, op)
    if columns == 1 or transform == "NONE":
        return scores
    if transform == "SOFTMAX_ZERO":
        return softmax_zero(scores, op)
    return op("Softmax", scores, axis=-1) if transform == "SOFTMAX" else op("Sigmoid", scores)


def probit(p: ir.Value, op: Rewriter) -> ir.Value:
    """The quantile of the normal distribution, in the approximation that ONNX Runtime computes."""
    x = op("Sub", op("Mul", p, op.floats(2.0)), op.floats(1.0))
    one = op.floats(1.0)
    log = op("Log", op("Mul", op("Sub", one, x), op("Add", one, x)))
    v = op("Add", op.floats(2 / (np.pi * 0.147)), op("Mul", op.floats(0.5), log))
    root = op("Sqrt", op("Sub", op("Mul", v, v), op("Div", log, op.floats(0.147))))
    size = op("Mul", op.floats(np.sqrt(2)), op("Sqrt", op("Sub", root, v)))
    return op("Where", op("Less", x, op.floats(0.0)), op("Neg", size), size)


def softmax_zero(x: ir.Value, op: Rewriter) -> ir.Value:
    """Softmax over the last axis in which scores of zero stay zero."""
    last = op.ints([-1])
    top = op("ReduceMax", x, last, keepdims=1)
    is_zero = op("LessOrEqual", op("Abs", x), op.floats(1e-7))
    powers = op("Where", is_zero, op.floats(0.0), op("Exp", op("Sub", x, top)))
    scaled = op("Where", is_zero, op("Mul", x, op("Exp", op("Neg", top))), powers)
    return op("Div", scaled, op("ReduceSum", powers, last, keepdims=1))


@lowering("ai.onnx.ml::SVMRegressor")
def svm_regressor(node: ir.Node, op: Rewriter) -> None:
    """The kernel of each row and each support vector, weighted; `post_transform` is ignored."""
    x = as_float(as_rows(needed(node, 0), op), op)
    vectors = np.asarray(take(node, "support_vectors", []), np.float32)
    coefficients = np.asarray(require(node, "coefficients"), np.float32)[None]
    rho = np.asarray(require(node, "rho"), np.float32)[:1]
    count, params = take(node, "n_supports", 0), take(node, "kernel_params", [0.0] * 3)
    if count > 0:
        x = kernel(x, vectors.reshape(count, -1), take(node, "kernel_type", "LINEAR"), params, op)
    y = op("Gemm", x, weight(coefficients, ".weight", op), weight(rho, ".bias", op), transB=1)
    if take(node, "one_class", 0):
        y = op("Where", op("Greater", y, op.floats(0.0)), op.floats(1.0), op.floats(-1.0))
    op.replace(y)


def kernel(x: ir.Value, vectors: npt.NDArray[np.float32], kind: str, params: Sequence[float], op: Rewriter) -> ir.Value:
    """How alike each row of `x` is to each support vector: (rows, vectors)."""
    gamma, coef0, degree = (*params, 0.0, 0.0, 0.0)[:3]
    if kind == "RBF":
        difference = op("Sub", op("Unsqueeze", x, op.ints([1])), weight(vectors, "_vectors", op))
        distance = op("ReduceSumSquare", difference, op.ints([2]), keepdims=0)
        return op("Exp", op("Mul", distance, op.floats(-gamma)))
    product = op("Gemm", x, weight(vectors, "_vectors", op), transB=1)
    if kind == "LINEAR":
        return product
    shifted = op("Add", op("Mul", product, op.floats(gamma)), op.floats(coef0))
    return op("Tanh", shifted) if kind == "SIGMOID" else op("Pow", shifted, op.floats(degree))


@lowering("ai.onnx.ml::ArrayFeatureExtractor")
def array_feature_extractor(node: ir.Node, op: Rewriter) -> None:
    """Columns of the last axis; a vector is taken as one row."""
    x, columns = needed(node, 0), needed(node, 1)
    known = rank(x)
    if known == 1:
        x = op("Unsqueeze", x, op.ints([0]))
    elif known is None:
        is_vector = op("Equal", op.rank(x), op.ints([1]))
        shape = op("Concat", op.ints([1]), op("Shape", x), axis=0)
        begin = op("Where", is_vector, op.ints([0]), op.ints([1]))
        x = op("Reshape", x, op("Slice", shape, begin, op.ints([TO_THE_END])), allowzero=1)
    flat = columns if rank(columns) == 1 else op("Reshape", columns, op.ints([-1]))
    op.replace(op("Gather", x, flat, axis=-1))
