"""What tests of boosted trees share: rows that try every threshold, and how results are compared."""

from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
from boosting_variants import VARIANTS, Variant, odd_codes, rows

import onward
from onward.model import Model

Array = npt.NDArray[Any]
IDS = [f"{variant.library}-{variant.name}".replace(" ", "_") for variant in VARIANTS]
SINGLE, DOUBLE = 3e-6, 1e-13
"""Of the largest number: sums of a few trees in float32 or float64."""


def converted(variant: Variant, model: Any, **options: Any) -> Model:
    return (onward.from_xgboost if variant.library == "xgboost" else onward.from_lightgbm)(model, **options)


def on_runtime(model: Model, x: Array) -> list[Any]:
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, {"x": x}))


def hard_rows(variant: Variant, model: Model, dtype: Any) -> Array:
    """Rows of every kind; many have thresholds of the model as features, or the numbers next to these."""
    x = rows()
    x = (odd_codes(x) if variant.is_categorical else x).astype(dtype)
    rng = np.random.default_rng(3)
    for node in model.ir.graph:
        if node.op_type != "TreeEnsemble":
            continue
        splits = node.attributes.get_tensor("nodes_splits")
        assert splits is not None
        features, thresholds = np.asarray(node.attributes.get_ints("nodes_featureids")), splits.numpy()
        for feature in np.unique(features):
            chosen = rng.choice(thresholds[features == feature], len(x) - 60).astype(dtype)
            near = np.stack([chosen, np.nextafter(chosen, dtype(-np.inf)), np.nextafter(chosen, dtype(np.inf))])
            x[60:, feature] = near[rng.integers(0, 3, chosen.size), np.arange(chosen.size)]
    x[60:][rng.random(x[60:].shape) < 0.2] = np.nan
    if variant.library == "lightgbm":
        x[60:][rng.random(x[60:].shape) < 0.05] = np.inf
        x[60:][rng.random(x[60:].shape) < 0.05] = -np.inf
        x[60:][rng.random(x[60:].shape) < 0.05] = 1e-36
    return x


def check(found: list[Any], wanted: list[Array], tolerance: float) -> None:
    for mine, own in zip(found, wanted, strict=True):
        array = np.asarray(mine)
        assert array.shape == own.shape
        if own.dtype.kind in "OUbiu":
            np.testing.assert_array_equal(array.astype(own.dtype), own)
        else:
            finite = np.abs(own[np.isfinite(own)])
            np.testing.assert_allclose(array, own, rtol=tolerance, atol=tolerance * max(finite.max(initial=0), 1e-9))
