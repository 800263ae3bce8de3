"""Linear and support vector classifiers of `ai.onnx.ml`: scores in standard ops, then labels and probabilities.

Where ONNX leaves a case open, the result is ONNX Runtime's.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.canon.lower.ml import as_float, as_rows, kernel, transformed, weight
from onward.canon.lower.registry import lowering
from onward.errors import InvalidModelError, UnsupportedError
from onward.gate.bounds import check_room
from onward.graph.rewriter import Rewriter, describe, needed, require, take

Floats = npt.NDArray[np.float32]
Names = Sequence[int] | Sequence[str]


def _names(node: ir.Node) -> Names:
    strings: Names = take(node, "classlabels_strings", ())
    ints: Names = take(node, "classlabels_ints", ())
    return strings or ints


def _labels(index: ir.Value, names: Names, op: Rewriter) -> ir.Value:
    """The label of each class index."""
    if list(names) == list(range(len(names))):
        return index
    if isinstance(names[0], str):
        return op("Gather", op("Constant", value_strings=list(names)), index, axis=0)
    return op("Gather", op.ints([int(name) for name in names]), index, axis=0)


def _first(scores: ir.Value, op: Rewriter) -> ir.Value:
    """The index of the highest score of each row, the first one of equals."""
    return op("ArgMax", scores, axis=1, keepdims=0)


def _pair(score: ir.Value, transform: str, is_share: bool, op: Rewriter) -> ir.Value:
    """One score for two classes as two: s and 1 - s if it `is_share`, else s and -s."""
    if transform == "PROBIT":
        raise UnsupportedError(f"{describe(op.node)}: PROBIT of a single score for two classes has no meaning")
    if transform == "LOGISTIC":
        return op("Sigmoid", op("Concat", op("Neg", score), score, axis=1))
    other = op("Sub", op.floats(1.0), score) if is_share else op("Neg", score)
    return op("Concat", other, score, axis=1)


@lowering("ai.onnx.ml::LinearClassifier")
def linear_classifier(node: ir.Node, op: Rewriter) -> None:
    names, transform = _names(node), take(node, "post_transform", "NONE")
    intercepts = np.asarray(take(node, "intercepts", []), np.float32)
    targets = len(intercepts)
    if targets == 0 or (targets > 1 and targets > len(names)):
        raise InvalidModelError(f"{describe(node)}: it has {targets} intercepts for {len(names)} classes")
    coefficients = np.asarray(require(node, "coefficients"), np.float32).reshape(targets, -1)
    x = as_float(as_rows(needed(node, 0), op), op)
    scores = op("Gemm", x, weight(coefficients, ".weight", op), weight(intercepts, ".bias", op), transB=1)
    if targets > 1:
        op.replace(_labels(_first(scores, op), names, op), transformed(scores, transform, targets, op))
        return
    positive = op("Squeeze", op("Greater", scores, op.floats(0.0)), op.ints([1]))
    default: Names = ["0", "1"] if names and isinstance(names[0], str) else [0, 1]
    label = _labels(op("Cast", positive, to=ir.DataType.INT64), names if len(names) == 2 else default, op)
    pair = _pair(scores, transform, True, op) if len(names) == 2 else transformed(scores, transform, 1, op)
    op.replace(label, pair)


@lowering("ai.onnx.ml::SVMClassifier")
def svm_classifier(node: ir.Node, op: Rewriter) -> None:
    names, transform = _names(node), take(node, "post_transform", "NONE")
    coefficients = np.asarray(require(node, "coefficients"), np.float32)
    rho = np.asarray(require(node, "rho"), np.float32)
    prob_a, prob_b = (np.asarray(take(node, name, []), np.float32) for name in ("prob_a", "prob_b"))
    counts = [int(n) for n in take(node, "vectors_per_class", [])]
    if len(names) < 2:
        raise UnsupportedError(f"{describe(node)}: a classifier of {len(names)} classes is not supported")
    x = as_float(as_rows(needed(node, 0), op), op)
    if sum(counts) == 0:
        _linear(x, coefficients.reshape(len(names), -1), rho, len(prob_a) > 0, names, transform, op)
        return
    vectors = np.asarray(take(node, "support_vectors", []), np.float32).reshape(sum(counts), -1)
    params = take(node, "kernel_params", [])
    alike = kernel(x, vectors, take(node, "kernel_type", "LINEAR"), params, op)
    check_room("SVMClassifier: the pairs of its classes", (len(names), len(names)), 64)
    pairs = list(combinations(range(len(names)), 2))
    if len(counts) != len(names) or min(len(rho), len(prob_a) or len(pairs), len(prob_b) or len(pairs)) < len(pairs):
        raise InvalidModelError(f"{describe(node)}: its attributes do not fit {len(names)} classes")
    matrix = _pair_coefficients(coefficients.reshape(-1, sum(counts)), counts, pairs)
    scores = op("Gemm", alike, weight(matrix, ".weight", op), weight(rho[: len(pairs)], ".bias", op), transB=1)
    label = _labels(_first(_votes(scores, len(names), pairs, op), op), names, op)
    if len(prob_a):
        shares = _shares(scores, prob_a[: len(pairs)], prob_b[: len(pairs)], len(names), pairs, op)
        op.replace(label, transformed(shares, transform, len(names), op))
    elif len(names) == 2:
        op.replace(label, _pair(scores, transform, transform != "NONE", op))
    else:
        op.replace(label, transformed(scores, transform, len(pairs), op))


def _linear(
    x: ir.Value, coefficients: Floats, rho: Floats, has_shares: bool, names: Names, transform: str, op: Rewriter
) -> None:
    """One score for each class, without support vectors."""
    bias = np.full(len(names), rho[0], np.float32)
    scores = op("Gemm", x, weight(coefficients, ".weight", op), weight(bias, ".bias", op), transB=1)
    index = _first(scores, op)
    if len(names) == 2 and not has_shares:
        highest = op("ReduceMax", scores, op.ints([1]), keepdims=0)
        if (coefficients >= 0).all():
            is_second = op("GreaterOrEqual", highest, op.floats(0.5))
        else:
            is_second = op("Greater", highest, op.floats(0.0))
        index = op("Where", is_second, op.ints(1), index)
    op.replace(_labels(index, names, op), transformed(scores, transform, len(names), op))


def _pair_coefficients(coefficients: Floats, counts: Sequence[int], pairs: Sequence[tuple[int, int]]) -> Floats:
    """What each support vector adds to the score of each pair of classes: (pairs, vectors).

    Row k of the attribute is about the class that is number k among the *other* classes.
    """
    ends = np.cumsum(counts)
    check_room("SVMClassifier: a number for each pair of classes and vector", (len(pairs), int(ends[-1])), 4)
    matrix = np.zeros((len(pairs), int(ends[-1])), np.float32)
    for row, (i, j) in zip(matrix, pairs, strict=True):
        of_i, of_j = slice(ends[i] - counts[i], ends[i]), slice(ends[j] - counts[j], ends[j])
        row[of_i], row[of_j] = coefficients[j - 1, of_i], coefficients[i, of_j]
    return matrix


def _votes(scores: ir.Value, classes: int, pairs: Sequence[tuple[int, int]], op: Rewriter) -> ir.Value:
    """How many pairs each class wins: the first of a pair does if the score is above zero."""
    check_room("SVMClassifier: a number for each pair of classes and class", (len(pairs), classes), 4)
    gain, start = np.zeros((len(pairs), classes), np.float32), np.zeros(classes, np.float32)
    for row, (i, j) in zip(gain, pairs, strict=True):
        row[i], row[j] = 1, -1
        start[j] += 1
    wins = op("Cast", op("Greater", scores, op.floats(0.0)), to=ir.DataType.FLOAT)
    return op("Add", op("MatMul", wins, op.constant(gain)), op.constant(start))


def _shares(
    scores: ir.Value, a: Floats, b: Floats, classes: int, pairs: Sequence[tuple[int, int]], op: Rewriter
) -> ir.Value:
    """Probabilities of the classes from those of each pair, which are logistic in its score."""
    logit = op("Neg", op("Add", op("Mul", scores, op.constant(a)), op.constant(b)))
    share = op("Clip", op("Sigmoid", logit), op.floats(1e-7), op.constant(np.asarray(np.float32(1) - np.float32(1e-7))))
    place = np.zeros((classes, classes), np.int64)
    for k, (i, j) in enumerate(pairs):
        place[i, j], place[j, i] = k, len(pairs) + k
    both = op("Concat", share, op("Sub", op.floats(1.0), share), axis=1)
    return _coupled(op("Gather", both, op.constant(place), axis=1), classes, op)


def _coupled(pairs: ir.Value, classes: int, op: Rewriter) -> ir.Value:
    """`onward::CouplePairs`: the probabilities of the classes that fit those of all pairs best.

    Its input is (rows, classes, classes): the probability of one class against another; the diagonal is not used.
    """
    value = op("CouplePairs", pairs)
    op.created[-1].domain, op.created[-1].version = "onward", 1
    value.type, value.shape = ir.TensorType(ir.DataType.FLOAT), ir.Shape([None, classes])
    return value
