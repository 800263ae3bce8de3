import itertools

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from graphs import model, weight

from onward.errors import InvalidDataError
from onward.graph.slots import slots
from onward.verification.data.clues import Clues
from onward.verification.data.regimes import HARD, Field, changed
from onward.verification.data.sets import EDGE_REGIMES, DataSet, data_sets

IMAGES = "g (float[N,3,H,W] x) => (y) { y = Conv(x, w) }"


def labels(sets: list[DataSet]) -> list[str]:
    return [made.label for made in sets]


def by_regime(text: str, **options: object) -> dict[str, dict[str, np.ndarray]]:
    sets = data_sets(model(text), hard=True, **options)  # type: ignore[arg-type]
    return {made.label.partition(",")[0]: made.inputs for made in sets}


def test_labels_name_the_regime_and_the_sizes_and_each_size_takes_two_values() -> None:
    sets = list(data_sets(model(IMAGES, w=weight(4, 3, 3, 3))))
    assert labels(sets) == ["random, N=2, H=64, W=96", "random, N=1, H=224, W=224", "zeros, N=2, H=64, W=96"]
    assert [made.inputs["x"].shape for made in sets] == [(2, 3, 64, 96), (1, 3, 224, 224), (2, 3, 64, 96)]


def test_dimensions_that_must_be_equal_are_named_once() -> None:
    sets = list(data_sets(model("g (float[A,4] x, float[B,4] y) => (z) { z = Add(x, y) }"), regimes=["random"]))
    assert labels(sets) == ["random, A=2", "random, A=1"]
    assert all(made.inputs["x"].shape == made.inputs["y"].shape for made in sets)


def test_hard_adds_a_set_for_each_edge() -> None:
    sets = by_regime("g (float[N,512] x) => (y) { y = Relu(x) }")
    assert list(sets) == ["random", *EDGE_REGIMES]
    x = {regime: inputs["x"] for regime, inputs in sets.items()}
    assert not x["zeros"].any()
    assert 0 < np.isnan(x["NaN"]).sum() < 200 and 0 < np.isinf(x["infinity"]).sum() < 200
    tiny = np.finfo(np.float32).tiny
    assert np.all((np.abs(x["denormal"]) < tiny) & (x["denormal"] != 0))
    assert np.all(np.abs(x["very small"]) < 1e-9) and np.all(np.abs(x["very small"]) >= tiny)
    assert np.all(np.abs(x["very large"]) > 1e9) and np.all(np.isfinite(x["very large"]))
    assert x["empty batch"].shape == (0, 512)
    for regime in ("denormal", "very small", "very large"):
        assert {-1, 1} == set(np.sign(x[regime]).ravel())


def test_what_does_not_apply_is_left_out() -> None:
    assert list(by_regime("g (int64[3] x) => (y) { y = Abs(x) }")) == ["random", "zeros"]
    fixed = by_regime("g (float[2,8] x) => (y) { y = Relu(x) }")
    assert "empty batch" not in fixed and "NaN" in fixed


def test_masks_lengths_and_single_numbers_keep_their_values() -> None:
    text = "g (float[2,8] x, float s, float[2,8] mask) => (y) { a = Mul(x, s) y = Add(a, mask) }"
    sets = by_regime(text)
    for regime in EDGE_REGIMES[:-1]:
        assert not np.array_equal(sets[regime]["x"], sets["random"]["x"]), regime
        assert np.array_equal(sets[regime]["s"], sets["random"]["s"]), regime
        assert np.array_equal(sets[regime]["mask"], sets["random"]["mask"]), regime


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("regime", HARD)
def test_edges_of_every_float(dtype: np.dtype, regime: str) -> None:
    (slot,) = slots(model("g (float[64] x) => (y) { y = Relu(x) }").ir)
    field = Field(slot, (64,), Clues(), 8)
    rng = np.random.default_rng(0)
    made = changed(regime, field, rng.standard_normal(64).astype(dtype), rng)
    values = made.astype(np.float64)
    tiny = float(ir.DataType.from_numpy(np.dtype(dtype)).tiny)
    assert made.dtype == dtype
    assert {
        "NaN": np.isnan(values).any(),
        "infinity": np.isinf(values).any(),
        "denormal": np.all((np.abs(values) < tiny) & (values != 0)),
        "very small": np.all(np.abs(values) < 0.3) and np.all(values != 0),
        "very large": np.all(np.abs(values) > 3) and np.all(np.isfinite(values)),
    }[regime]


def test_a_dtype_without_infinity_is_left_alone() -> None:
    (slot,) = slots(model("g (float[64] x) => (y) { y = Relu(x) }").ir)
    value = np.ones(64, ml_dtypes.float8_e4m3fn)
    assert changed("infinity", Field(slot, (64,), Clues(), 8), value, np.random.default_rng(0)) is value


def test_an_unknown_regime() -> None:
    with pytest.raises(InvalidDataError, match=r"'ones'.*random, zeros"):
        list(data_sets(model("g (float[2] x) => (y) { y = Relu(x) }"), regimes=["ones"]))


def test_the_same_seed_gives_the_same_sets_and_another_others() -> None:
    net = model("g (float[N,8] x, int64[N,3] i) => (y) { a = Cast<to=1>(i) b = ReduceSum(a) y = Mul(x, b) }", opset=17)
    runs = [list(data_sets(net, seed=seed, hard=True)) for seed in (0, 0, 1)]
    for a, b, c in itertools.zip_longest(*runs):
        assert a.label == b.label == c.label
        for name in a.inputs:
            np.testing.assert_array_equal(a.inputs[name], b.inputs[name])
    assert not np.array_equal(runs[0][0].inputs["x"], runs[2][0].inputs["x"])


def test_sizes_and_values_that_the_source_refuses_are_left_out() -> None:
    net = model("g (float[N,T] x) => (y) { y = Relu(x) }")
    sets = data_sets(net, runs=lambda feeds: feeds["x"].shape[1] in (576, 256), regimes=["random"])
    assert [made.inputs["x"].shape for made in sets] == [(2, 576), (1, 256)]
