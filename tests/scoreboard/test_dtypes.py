"""Models for every dtype are valid, have data that means something, and an answer of the type they declare."""

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from onward.scoreboard import catalog, dtypes, types
from onward.scoreboard.catalog import FAMILIES, NETWORKS
from onward.scoreboard.dtypes import Cell

OPSET = 26


@cache
def cells(op: str) -> dict[tuple[str, str], Cell]:
    return {(cell.parameter, cell.type): cell for cell in dtypes.cells(op, OPSET)}


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([0.4, -0.4, 2.0], "int8", [1, -1, 6]),
        ([0.4, -0.4, 2.0], "uint8", [1, 1, 6]),
        ([1.0, -2.0], "int64", [1, -2]),
        ([300, -300], "int8", [127, -128]),
        ([9, -9], "int4", [7, -8]),
        ([0.5, -1.0], "bool", [True, False]),
        ([1e6, np.inf, -1.0], "float16", [65504, np.inf, -1]),
        ([1.5, 2.0], "string", ["1.5", "2.0"]),
        (["7", "x"], "float", [7, 1]),
        ([1.5], "complex64", [1.5 + 0j]),
    ],
)
def test_values_in_other_dtypes(value: list[Any], dtype: str, expected: list[Any]) -> None:
    found = types.convert(np.array(value), dtype)
    assert found.dtype == types.numpy_dtype(dtype)
    assert found.astype(object).tolist() == np.array(expected, found.dtype).astype(object).tolist()


def test_structures_are_kept() -> None:
    found = types.convert([np.array([1.5]), None], "bfloat16")
    assert found[0].dtype == ml_dtypes.bfloat16 and found[1] is None
    assert types.with_leaf("optional(seq(tensor(float)))", "int8") == "optional(seq(tensor(int8)))"
    assert types.leaf("seq(tensor(float16))") == "float16"


def test_every_type_of_the_schema_is_there() -> None:
    schema = onnx.defs.get_schema("Add", OPSET, "")
    [constraint] = schema.type_constraints
    assert {kind for _, kind in cells("Add")} == set(constraint.allowed_type_strs)
    for (_, kind), cell in cells("Add").items():
        a, b = cell.inputs
        wide = np.float32 if types.leaf(kind) in dtypes.NARROW else a.dtype
        with np.errstate(all="ignore"):
            answer = (a.astype(wide) + b.astype(wide)).astype(a.dtype)
        assert a.dtype == types.numpy_dtype(types.leaf(kind))
        np.testing.assert_array_equal(cell.expected[0], answer)
        assert np.count_nonzero(a.astype(np.float64)) > a.size // 2, "not all is rounded to 0"


@pytest.mark.parametrize("op", ["Cast", "Div", "Resize", "If", "SequenceInsert", "QuantizeLinear"])
def test_models_are_valid_and_answers_are_of_their_types(op: str) -> None:
    known = [cell for cell in cells(op).values() if cell.truth]
    assert len(known) > len(cells(op)) / 2
    for cell in known:
        model = onnx.load_from_string(cell.model)
        onnx.checker.check_model(model, full_check=True)
        assert model.opset_import[0].version == OPSET
        assert cell.type in {types.kind_of(info.type) for info in (*model.graph.input, *model.graph.output)}
        assert dtypes.checked(model, cell.expected, "")[0] is not None
    for cell in cells(op).values():
        assert bool(cell.truth) != bool(cell.why), "there is an answer, or a reason why not"


def test_integers_are_in_the_domain_of_the_op() -> None:
    for (_, kind), cell in cells("Div").items():
        if types.leaf(kind).startswith(("int", "uint")):
            assert np.all(cell.inputs[1] != 0)


def test_an_answer_of_another_structure_is_none() -> None:
    """The reference evaluator wraps what Optional gives in a list."""
    cell = cells("Optional")["V", "tensor(float)"]
    assert cell.model and not cell.truth and "does not give optional(tensor(float))" in cell.why


def test_a_reference_in_single_precision_asks_for_no_more() -> None:
    """The reference evaluator computes Erf of doubles in float32."""
    assert cells("Erf")["T", "tensor(double)"].noise["y"] == dtypes.SINGLE
    assert cells("Exp")["T", "tensor(double)"].noise == {}


def test_random_ops_have_no_reference() -> None:
    assert {cell.truth for op in dtypes.RANDOM for cell in cells(op).values()} == {""}


def test_ops_that_came_later_are_in_their_first_version() -> None:
    found = dtypes.ops(OPSET)
    assert found["SwiGLU"].since_version == 28 and found["Cast"].since_version <= OPSET
    assert len(found) > 195 and "Upsample" not in found


def test_every_case_has_its_place() -> None:
    found = catalog.tests()
    assert len(found) == 2033 and sum(not test.counted for test in found.values()) == 6
    assert {test.family for test in found.values()} == FAMILIES.keys()
    assert found["test_resnet50"].op == NETWORKS and found["test_resnet50"].family == "light"
    assert found["test_adam"].op == "ai.onnx.preview.training.Adam" and found["test_adam"].family == "training"
    expanded = found["test_nllloss_NC_expanded"]
    assert expanded.op == "NegativeLogLikelihoodLoss" and expanded.opset.startswith("ai.onnx ")
