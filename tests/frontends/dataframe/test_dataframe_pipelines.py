"""Pipelines of scikit-learn with a function on a data frame inside become one model that computes the same."""

import warnings
from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")

from pipelines import PIPELINES, fitted_pipeline, fresh_rows, methods_of  # noqa: E402

import onward  # noqa: E402

converts = pytest.mark.skipif(not hasattr(onward, "from_dataframe"), reason="frames are not converted yet")


def expected(pipeline: Any, method: str, rows: Any) -> Any:
    """What scikit-learn computes, as a matrix."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = getattr(pipeline, method)(rows.copy())
    return np.asarray(found).reshape(len(rows), -1)


@converts
@pytest.mark.parametrize("name", PIPELINES)
def test_the_pipeline_computes_the_same(name: str) -> None:
    pipeline, sample = fitted_pipeline(name)
    for method in methods_of(pipeline):
        model = onward.from_sklearn(pipeline, sample, methods=[method])
        for variant, rows in fresh_rows(name).items():
            wanted = expected(pipeline, method, rows)
            found = onward.run(model, rows).to_numpy()
            if wanted.dtype.kind in "fc":
                np.testing.assert_allclose(found.astype(float), wanted, rtol=1e-9, atol=1e-12, err_msg=variant)
            else:
                np.testing.assert_array_equal(found, wanted, err_msg=variant)


@pytest.mark.parametrize("name", PIPELINES)
def test_scikit_learn_runs_them(name: str) -> None:
    pipeline, _ = fitted_pipeline(name)
    for method in methods_of(pipeline):
        for rows in fresh_rows(name).values():
            assert len(expected(pipeline, method, rows)) == len(rows) > 0


def test_there_are_twenty() -> None:
    assert len(PIPELINES) == 20
