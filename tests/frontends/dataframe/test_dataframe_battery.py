"""Every function of the battery, converted and run on ONNX Runtime, computes what its library computes."""

import itertools
import math
from typing import Any

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pytest.importorskip("narwhals")

from frame_cases import Case, Refusal  # noqa: E402
from frame_compare import same  # noqa: E402
from frame_data import FRAMES, VARIANTS, pandas_frame, polars_frame  # noqa: E402
from frame_modules import CASES, REFUSALS  # noqa: E402
from frame_refused import REFUSED  # noqa: E402
from judge import expected, judge, judge_refusal  # noqa: E402

import onward  # noqa: E402
from onward.errors import UnsupportedError  # noqa: E402

converts = pytest.mark.skipif(not hasattr(onward, "from_dataframe"), reason="frames are not converted yet")


@converts
@pytest.mark.parametrize("case", [c for c in CASES if c.name not in REFUSED], ids=lambda case: case.name)
def test_the_library_computes_the_same(case: Case) -> None:
    verdict = judge(case)
    assert verdict.word == "same", str(verdict)


@converts
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_does_not_convert_is_refused(name: str) -> None:
    verdict = judge(next(case for case in CASES if case.name == name))
    assert verdict.word == "refused", str(verdict)


@converts
@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name)
def test_what_cannot_be_said_is_refused_by_name(refusal: Refusal) -> None:
    verdict = judge_refusal(refusal)
    assert verdict.word == "refused", str(verdict)


@pytest.mark.parametrize(
    "case",
    [c for c in CASES if (c.as_if or not c.freeze) and (c.raises or c.name in REFUSED)],
    ids=lambda case: case.name,
)
def test_the_library_runs_what_is_not_compared(case: Case) -> None:
    """It raises where the case says so; what is refused, it computes all the same, each time alike.

    The results of all others were compared with those of the model.
    """
    for variant in VARIANTS:
        if variant in case.raises:
            with pytest.raises(Exception):  # noqa: B017
                expected(case, variant)
        elif case.name in REFUSED:
            assert same(expected(case, variant), expected(case, variant)) is None


@converts
def test_random_numbers_that_nothing_uses_are_allowed() -> None:
    def doubled(df: Any) -> Any:
        df.assign(b=df.a * np.random.rand())
        return df.a * 2

    rows = pd.DataFrame({"a": [1.0, 2.0]})
    assert onward.run(onward.from_dataframe(doubled, rows), rows).tolist() == [2.0, 4.0]


@converts
def test_what_is_not_the_same_each_time_is_refused() -> None:
    count = itertools.count()
    with pytest.raises(UnsupportedError, match="not the same each time"):
        onward.from_dataframe(lambda df: df.a * next(count), pd.DataFrame({"a": [1.0, 2.0]}))


def test_there_are_enough_and_names_are_told_apart() -> None:
    names = [one.name for one in (*CASES, *REFUSALS)]
    assert len(set(names)) == len(names)
    counts = {library: sum(case.library == library for case in CASES) for library in ("pandas", "polars", "narwhals")}
    assert counts["pandas"] >= 330
    assert counts["polars"] >= 70
    assert counts["narwhals"] >= 30
    assert len(REFUSALS) >= 40
    assert REFUSED.keys() <= set(names)


@pytest.mark.parametrize("name", FRAMES)
def test_variants_have_one_schema(name: str) -> None:
    for variant in VARIANTS:
        assert list(pandas_frame(name, variant).dtypes) == list(pandas_frame(name, "sample").dtypes)
        assert polars_frame(name, variant).schema == polars_frame(name, "sample").schema
    assert [len(pandas_frame(name, variant)) for variant in VARIANTS] == [40, 12, 1, 0]


NAN = math.nan
TIME = "2024-02-29"


@pytest.mark.parametrize(
    "wanted, got",
    [
        ({"a": [1, 2]}, {"a": [1.0, 2.0]}),
        ({"a": [1.5, NAN]}, {"a": pd.array([1.5, None], "Float64")}),
        ({"a": [1.0]}, {"a": [1.0 + 5e-13]}),
        ({"a": np.float32([0.1])}, {"a": np.float32([0.1]) * np.float32(1 + 1e-6)}),
        ({"a": pd.Categorical(["x", None])}, {"a": ["x", None]}),
        ({"a": [True, None]}, {"a": pd.array([True, None], "boolean")}),
        ({"a": [NAN]}, {"a": pd.Series([None], dtype="str")}),
        ({"a": pd.cut(pd.Series([1]), [0, 2])}, {"a": ["(0, 2]"]}),
        ({"a": pd.to_datetime([TIME])}, {"a": pd.to_datetime([TIME]).as_unit("ns")}),
    ],
)
def test_the_same_is_the_same(wanted: Any, got: Any) -> None:
    assert same(pd.DataFrame(wanted), pd.DataFrame(got)) is None


@pytest.mark.parametrize(
    "wanted, got",
    [
        ({"a": [1]}, {"b": [1]}),
        ({"a": [1], "b": [1]}, {"b": [1], "a": [1]}),
        ({"a": [1]}, {"a": [1, 1]}),
        ({"a": [1]}, {"a": [2]}),
        ({"a": [1.0]}, {"a": [1]}),
        ({"a": [1]}, {"a": [True]}),
        ({"a": [1.0]}, {"a": [1.0 + 2e-12]}),
        ({"a": [0.0]}, {"a": [1e-300]}),
        ({"a": [2**53 + 1]}, {"a": [float(2**53)]}),
        ({"a": [math.inf]}, {"a": [-math.inf]}),
        ({"a": [1.0, NAN]}, {"a": [1.0, 2.0]}),
        ({"a": ["x", ""]}, {"a": ["x", None]}),
        ({"a": [1.0]}, {"a": np.float32([1.0])}),
        ({"a": ["1"]}, {"a": [1]}),
        ({"a": pd.to_datetime([TIME])}, {"a": pd.to_datetime(["2024-03-01"])}),
    ],
)
def test_what_differs_is_told(wanted: Any, got: Any) -> None:
    assert same(pd.DataFrame(wanted), pd.DataFrame(got)) is not None


def test_frames_of_polars_are_of_one_dtype_and_tell_nan_from_null() -> None:
    assert same(pl.DataFrame({"a": [1.0, None, NAN]}), pl.DataFrame({"a": [1.0, None, NAN]})) is None
    assert same(pl.DataFrame({"a": [1.0, None]}), pl.DataFrame({"a": [1.0, NAN]})) is not None
    assert same(pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [1.0]})) is not None
    assert same(pl.DataFrame({"a": ["x"]}, {"a": pl.Enum(["x"])}), pl.DataFrame({"a": ["x"]})) is None


def test_keys_of_groups_come_first_and_other_indices_are_left_out() -> None:
    frame = pd.DataFrame({"k": [1, 1, 2], "v": [1, 2, 3]})
    assert same(frame.groupby("k")["v"].sum(), pd.DataFrame({"k": [1, 2], "v": [3, 3]})) is None
    assert same(frame[frame.v > 1], pd.DataFrame({"k": [1, 2], "v": [2, 3]})) is None
