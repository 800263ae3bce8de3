"""Decompositions whose transform searches for a solution: the same steps, in a loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.sklearn.registry import Outputs, rule
from onward.frontends.sklearn.writer import Writer
from onward.graph.build import Tensor

Step = Callable[[list[Tensor]], tuple[Tensor, list[Tensor]]]


def looped(op: Writer, most: int, start: Tensor, state: Sequence[Tensor], step: Step) -> list[Tensor]:
    """Repeat a step on what it returned, at most so many times, while its condition holds; `start` is the first one."""

    def named(dtype: ir.DataType) -> ir.Value:
        return ir.Value(name=op.names.value("loop"), type=ir.TensorType(dtype), shape=ir.Shape([]))

    inner = [op.input_like(one.value) for one in state]
    body = ir.Graph([named(ir.DataType.INT64), named(ir.DataType.BOOL), *inner], [], nodes=[], name="step")
    with op.inside(body):
        go_on, found = step([op.tensor(value) for value in inner])
        body.outputs.extend(op.Identity(one).value for one in (go_on, *found))
    return op.many("Loop", len(state), op.index(most), start, *state, body=ir.AttrGraph("body", body))


@rule("NMF")
def non_negative(op: Writer, model: Any, x: Tensor) -> Outputs:
    """Coordinate descent: each component in turn, until the gradients are small beside the first ones."""
    if model.solver != "cd" or model.shuffle:
        raise UnsupportedError("NMF: only the solver 'cd' without shuffling has a rule")
    parts = np.asarray(model.components_, np.float64)
    first, _, second, _ = model._compute_regularization(np.zeros((1, parts.shape[1])))
    gram = parts @ parts.T + second * np.eye(len(parts))
    wanted = op.MatMul(x, op.reals(parts.T)) - float(first)

    def sweep(weights: Tensor) -> tuple[Tensor, Tensor]:
        columns = [op.take(weights, [t]) for t in range(len(parts))]
        off: list[Tensor] = []
        for t, row in enumerate(gram):
            slope = op.MatMul(op.hstack(columns), op.reals(row[:, np.newaxis])) - op.take(wanted, [t])
            at_zero = op.Equal(columns[t], 0.0)
            off.append(op.Abs(op.Where(at_zero, op.Min(slope, op.reals(0.0)), slope)))
            if row[t] != 0:
                columns[t] = op.Max(columns[t] - slope / float(row[t]), op.reals(0.0))
        return op.hstack(columns), op.sum(op.hstack(off), keepdims=False)

    weights, violation = sweep(op.zeros_like(wanted))

    def step(state: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        found, left = sweep(state[0])
        return left / violation > float(model.tol), [found]

    start = op.And(violation > 0, op.constant(np.asarray(model.tol < 1)))
    return {"transform": looped(op, model.max_iter - 1, start, [weights], step)[0]}


@rule("MiniBatchNMF")
def non_negative_batches(op: Writer, model: Any, x: Tensor) -> Outputs:
    """Multiplicative updates, until the weights stay as they are; they start from the mean of all that is given."""
    if model._beta_loss != 2:
        raise UnsupportedError("MiniBatchNMF: only the Frobenius norm as its loss has a rule")
    parts = np.asarray(model.components_, np.float64)
    first, _, second, _ = model._compute_regularization(np.zeros((1, parts.shape[1])))
    wanted, gram = op.MatMul(x, op.reals(parts.T)), op.reals(parts @ parts.T)
    tiny = float(np.finfo(np.float32).eps)

    def step(state: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        weights = state[0]
        divisor = op.MatMul(weights, gram)
        if first > 0:
            divisor = divisor + float(first)
        if second > 0:
            divisor = divisor + weights * float(second)
        change = wanted / op.where(op.Equal(divisor, 0.0), tiny, divisor)
        found = weights * (change if model._gamma == 1 else op.Pow(change, float(model._gamma)))
        moved = _norm(op, found - weights) / _norm(op, found)
        return op.Not(moved <= float(model.tol)) if model.tol > 0 else op.Not(moved < -1.0), [found]

    start = op.Sqrt(op.ReduceMean(x, keepdims=0) / float(len(parts)))
    weights = op.Expand(start, op.Shape(wanted))
    true = op.constant(np.asarray(True))
    return {"transform": looped(op, int(model._transform_max_iter), true, [weights], step)[0]}


def _norm(op: Writer, x: Tensor) -> Tensor:
    return op.Sqrt(op.sum(x * x, keepdims=False))


@rule("LatentDirichletAllocation")
def topics(op: Writer, model: Any, x: Tensor) -> Outputs:
    """The topics of each document by itself, until they stay as they are."""
    words = np.asarray(model.exp_dirichlet_component_, np.float64)
    prior, eps = float(model.doc_topic_prior_), float(np.finfo(np.float64).eps)
    many, table, back = x, op.reals(words), op.reals(words.T)

    def spread(mixture: Tensor) -> Tensor:
        return op.Exp(_digamma(op, mixture) - _digamma(op, op.sum(mixture, [1])))

    def step(state: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        mixture, weight, going = state
        seen = op.MatMul(weight, table) + eps
        new = weight * op.MatMul(many / seen, back) + prior
        going_on = going > 0
        moved = op.mean(op.Abs(new - mixture), 1, keepdims=True) >= float(model.mean_change_tol)
        still = op.And(going_on, moved).cast(op.real)
        kept = op.Where(going_on, new, mixture)
        return op.ReduceMax(still, keepdims=0) > 0, [kept, op.Where(going_on, spread(new), weight), still]

    ones = op.filled(op.MatMul(x, back), 1.0)
    state = [ones, spread(ones), op.filled(op.take(ones, [0]), 1.0)]
    start = op.constant(np.asarray(True))
    return {"transform": op.share(looped(op, model.max_doc_update_iter, start, state, step)[0])}


def _digamma(op: Writer, x: Tensor) -> Tensor:
    """The derivative of log Γ of positive numbers, to the ten digits that scikit-learn has of it here."""
    found = op.zeros_like(x)
    for _ in range(6):
        small = x < 6.0
        found = op.Where(small, found - 1.0 / x, found)
        x = op.Where(small, x + 1.0, x)
    r = 1.0 / x
    square = r * r
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252)))
    return found + op.Log(x) - r * 0.5 - series


@rule("DictionaryLearning", "MiniBatchDictionaryLearning")
def dictionary(op: Writer, model: Any, x: Tensor) -> Outputs:
    return _coded(op, model, x, model.components_)


@rule("SparseCoder")
def sparse_coder(op: Writer, model: Any, x: Tensor) -> Outputs:
    return _coded(op, model, x, model.dictionary)


MOST_ATOMS = 64
"""Of which systems are solved by elimination that is written out."""


def _coded(op: Writer, model: Any, x: Tensor, atoms: Any) -> Outputs:
    atoms = np.asarray(atoms, np.float64)
    close = op.MatMul(x, op.reals(atoms.T))
    if model.transform_algorithm == "threshold":
        alpha = model.transform_alpha if model.transform_alpha is not None else getattr(model, "alpha", 1.0)
        code = op.Sign(close) * op.Max(op.Abs(close) - float(alpha), op.reals(0.0))
        code = op.Max(code, op.reals(0.0)) if model.positive_code else code
    elif model.transform_algorithm == "omp" and len(atoms) <= MOST_ATOMS:
        count = model.transform_n_nonzero_coefs
        steps = int(min(max(atoms.shape[1] / 10, 1), len(atoms)) if count is None else count)
        code = _pursued(op, close, atoms @ atoms.T, steps)
    else:
        what = f"{model.transform_algorithm!r} with {len(atoms)} components"
        raise UnsupportedError(
            f"{type(model).__name__}: the algorithm {what} has no rule; 'threshold' has, and 'omp' up to {MOST_ATOMS}"
        )
    if model.split_sign:
        code = op.hstack([op.Max(code, op.reals(0.0)), op.Max(-code, op.reals(0.0))])
    return {"transform": code}


def _pursued(op: Writer, close: Tensor, gram: Any, steps: int) -> Tensor:
    """Orthogonal matching pursuit: the atom nearest to what is left, then the best mixture of those taken."""
    size = len(gram)
    eye = op.reals(np.eye(size)[np.newaxis])
    taken, code, left = op.zeros_like(close), op.zeros_like(close), close
    for _ in range(steps):
        best = op.Equal(op.column(op.argmax(op.Abs(left))), op.ints(range(size))).cast(op.real)
        taken = op.Max(taken, best)
        row, column = op.Unsqueeze(taken, op.ints([1])), op.Unsqueeze(taken, op.ints([2]))
        system = op.reals(gram[np.newaxis]) * row * column + eye * (1.0 - row)
        code = op.Squeeze(solved(op, system, op.Unsqueeze(close * taken, op.ints([2])), size), op.ints([2]))
        left = close - op.MatMul(code, op.reals(gram))
    return code


def solved(op: Writer, matrix: Tensor, right: Tensor, size: int) -> Tensor:
    """The solutions, (batch, size, 1), of systems whose matrices are positive definite: no pivots are looked for."""
    table = op.Concat(matrix, right, axis=2)
    for k in range(size):
        pivot = op.Gather(table, op.ints([k]), axis=1)
        pivot = pivot / op.Gather(pivot, op.ints([k]), axis=2)
        column = op.Gather(table, op.ints([k]), axis=2)
        keep = op.reals(np.eye(size)[np.newaxis, :, k : k + 1])
        table = (table - column * pivot) * (1.0 - keep) + pivot * keep
    return op.Gather(table, op.ints([size]), axis=2)
