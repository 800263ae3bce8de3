"""Upgrades of elementwise ops, activations and reductions."""

import numpy as np
import pytest
from old_files import Old, cases, check, floats, ints, upgraded
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

A = floats(2, 3, 4, 5)
SLOPE = floats(3)
BOOLS = floats(2, 3, 4) > 0


def begin_at(b: np.ndarray, axis: int) -> np.ndarray:
    return b.reshape(b.shape + (1,) * (A.ndim - axis - b.ndim))


def selu(x: np.ndarray) -> np.ndarray:
    alpha, gamma = np.float32(1.6732), np.float32(1.0507)
    return gamma * np.where(x > 0, x, alpha * np.exp(x) - alpha)


BROADCAST = [
    Old("Add", 1, [A, A], {"consumed_inputs": [0, 0]}, expect=np.add),
    Old("Add", 6, [A, floats(5)], {"broadcast": 1}, expect=np.add),
    Old("Sub", 6, [A, floats(3, 4)], {"broadcast": 1, "axis": 1}, expect=lambda a, b: a - begin_at(b, 1)),
    Old("Mul", 6, [A, floats(2)], {"broadcast": 1, "axis": 0}, expect=lambda a, b: a * begin_at(b, 0)),
    Old("Div", 6, [A, floats(4)], {"broadcast": 1, "axis": -2}, expect=lambda a, b: a / begin_at(b, 2)),
    Old("Add", 6, [A, floats(4, 5)], {"broadcast": 1, "axis": 2}, expect=np.add),
    Old("Add", 6, [A, floats(1, 1)], {"broadcast": 1, "axis": 1}, expect=np.add),
    Old("Add", 6, [A, np.float32(3)], {"broadcast": 1}, expect=np.add),
    Old("Pow", 1, [abs(A), floats(3)], {"broadcast": 1, "axis": 1}, expect=lambda a, b: a ** begin_at(b, 1)),
    Old("And", 1, [BOOLS, BOOLS[0]], {"broadcast": 1}, expect=np.logical_and),
    Old(
        "Or",
        1,
        [BOOLS, BOOLS[:, 0, 0]],
        {"broadcast": 1, "axis": 0},
        expect=lambda a, b: a | b[:, None, None],
    ),
    Old("Xor", 1, [BOOLS, BOOLS], {}, expect=np.logical_xor),
    Old(
        "Equal",
        1,
        [ints([1, 2], [3, 4]), ints(1, 3)],
        {"broadcast": 1, "axis": 0},
        expect=lambda a, b: a == b[:, None],
    ),
    Old("Greater", 1, [A, floats(3)], {"broadcast": 1, "axis": 1}, expect=lambda a, b: a > begin_at(b, 1)),
    Old("Less", 1, [A, floats(3)], {"broadcast": 1, "axis": 1}, expect=lambda a, b: a < begin_at(b, 1)),
    Old("PRelu", 6, [A, SLOPE], expect=lambda x, s: np.where(x > 0, x, x * s[:, None, None])),
    Old("PRelu", 1, [A, SLOPE[:1]], {"consumed_inputs": [0]}, expect=lambda x, s: np.where(x > 0, x, x * s)),
    Old("PRelu", 6, [A, SLOPE.reshape(3, 1, 1)], expect=lambda x, s: np.where(x > 0, x, x * s)),
    Old("PRelu", 6, [A[:, :, 0, 0], SLOPE], expect=lambda x, s: np.where(x > 0, x, x * s)),
    Old(
        "Gemm",
        6,
        [A[0, 0], floats(5, 3), SLOPE],
        {"broadcast": 1},
        expect=lambda a, b, c: a @ b + c,
        rtol=1e-5,
    ),
]

UNARY = [
    Old("Relu", 1, [A], {"consumed_inputs": [0]}, expect=lambda x: np.maximum(x, 0)),
    Old("Selu", 1, [A], {"consumed_inputs": [0]}, expect=selu),
    Old(
        "Selu",
        1,
        [A],
        {"alpha": 2.0, "gamma": 3.0},
        expect=lambda x: 3 * np.where(x > 0, x, 2 * np.exp(x) - 2),
    ),
    Old(
        "Clip",
        1,
        [A],
        {"max": 0.25, "consumed_inputs": [0]},
        expect=lambda x: np.minimum(x, np.float32(0.25)),
    ),
    Old("Clip", 6, [A], {"min": -0.5, "max": 0.25}),
    Old("Clip", 6, [A], {"min": -0.5}),
    Old("Clip", 10, [A]),
    Old("Clip", 6, [A.astype(np.float16)], {"min": -0.5, "max": 0.3}),
    Old("Cast", 1, [A], {"to": "INT32"}, expect=lambda x: x.astype(np.int32)),
    Old("Cast", 1, [A], {"to": "double"}, expect=lambda x: x.astype(np.float64)),
    Old("Erf", 9, [ints(-3, 0, 1, 4)], expect=lambda x: ints(0, 0, 0, 0) + (x > 3) - (x < -3)),
    Old("Dropout", 6, [A], {"is_test": 1, "ratio": 0.3}, expect=lambda x: x),
    Old("Dropout", 7, [A], {"ratio": 0.3}),
    Old("Dropout", 9, [A], {"ratio": 0.3}, outputs=2, compare=[0]),
    Old("Dropout", 10, [A], {}, outputs=2, compare=[0]),
]

SOFTMAX = [
    Old(op, opset, [x], attributes)
    for op in ("Softmax", "LogSoftmax", "Hardmax")
    for opset, x, attributes in (
        (1, A, {}),
        (7, A, {"axis": 2}),
        (9, A, {"axis": 3}),
        (11, A, {"axis": -3}),
        (11, A, {"axis": 0}),
        (12, floats(2, 7, 1, 1), {}),
        (12, floats(2, 1, 7), {}),
        (12, floats(2, 7), {}),
        (12, floats(2, 1), {}),
    )
]

REDUCE = [
    Old(f"Reduce{op}", opset, [x], attributes, rtol=1e-5)
    for op in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
    for opset, x, attributes in (
        (1, abs(A), {"axes": [1, 2]}),
        (11, abs(A), {"axes": [-1], "keepdims": 0}),
        (11, abs(A), {"keepdims": 0}),
        (12, abs(A), {}),
    )
]

INTEGERS = [Old(op, 18, [ints([3, 5], [7, 2], dtype=np.int32), ints(1)]) for op in ("ReduceLogSum", "ReduceLogSumExp")]


@cases([*BROADCAST, *UNARY, *SOFTMAX, *REDUCE, *INTEGERS])
def test_upgraded_file_computes_the_same(case: Old, shapes: bool) -> None:
    check(case, shapes)


@pytest.mark.parametrize("opset", [1, 6])
def test_dropout_that_was_not_in_test_mode_stays_random(opset: int) -> None:
    nodes = upgraded(Old("Dropout", opset, [A], {"ratio": 0.3}).model(True)).graph.node
    constants = {n.output[0]: numpy_helper.to_array(n.attribute[0].t) for n in nodes if n.op_type == "Constant"}
    dropout = next(node for node in nodes if node.op_type == "Dropout")
    assert constants[dropout.input[1]] == np.float32(0.3)
    assert constants[dropout.input[2]] == np.True_


def test_mask_of_dropout_keeps_its_type() -> None:
    """ONNX Runtime fills the old mask with zeros, the newer versions say ones: nothing is dropped."""
    model = upgraded(Old("Dropout", 9, [A], outputs=2).model(True))
    _, mask = ReferenceEvaluator(model).run(None, {"x0": A})
    assert mask.dtype == np.float32
    assert (mask == 1).all()
