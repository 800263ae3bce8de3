"""What tables have at their edges: rows that look back, nulls, labels, lengths that differ, and files made to harm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onnx.parser import parse_model
from pyarrow import csv, feather

import onward
from onward.errors import InvalidDataError, OnwardError, UnsupportedError
from onward.model import load

SAME = "g (float[N] x) => (float[N] y) {y = Identity(x)}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scored(graph: str, data: str, out: str, **options: Any) -> int:
    model = load(parse_model(f'<ir_version: 10, opset_import: ["": 20]> {graph}').SerializeToString())
    return onward.score(model, data, out, force=True, **options)


LOOKING_BACK = {
    "a running sum": "g (float[N] x) => (float[N] y) {a = Constant<value_int=0>() y = CumSum(x, a)}",
    "the row before": "g (int64[N] x) => (int64[N] y) { z = Constant<value_ints=[0]>() e = Constant<value_ints=[-1]>()"
    " s = Slice(x, z, e) y = Concat<axis=0>(z, s) }",
}


@pytest.mark.parametrize("name", LOOKING_BACK)
def test_rows_that_depend_on_those_before_are_refused(name: str) -> None:
    """The first half of a batch gives the same by itself; of the other half, and of single rows, it does not."""
    np.save("x.npy", np.arange(5000).astype(np.float32 if "sum" in name else np.int64))
    with pytest.raises(UnsupportedError, match="depends on the rows that are scored with it"):
        scored(LOOKING_BACK[name], "x.npy", "out.npz", batch=4096)


@pytest.mark.parametrize("name", ["cumsum", "shift"])
def test_frames_that_look_back_are_refused(name: str) -> None:
    rows = pd.DataFrame({"k": np.arange(50)})
    model = onward.from_dataframe(lambda df: df.assign(h=getattr(df.k, name)()), rows)
    rows.to_parquet("rows.parquet")
    with pytest.raises(UnsupportedError, match="depends on the rows that are scored with it"):
        onward.score(model, "rows.parquet", "out.parquet", batch=10)


def test_a_model_that_runs_on_several_rows_only_is_scored() -> None:
    """It takes an even number of rows, and swaps nothing among them."""
    pairs = "g (float[N,2] x) => (float[N,2] y) { s = Constant<value_ints=[-1, 4]>() t = Constant<value_ints=[-1, 2]>()"
    np.save("x.npy", np.arange(64, dtype=np.float32).reshape(32, 2))
    assert scored(f"{pairs} r = Reshape(x, s) y = Reshape(r, t) }}", "x.npy", "out.npz", batch=8) == 32


def test_two_outputs_of_the_same_column_are_refused() -> None:
    graph = "g (float[N,2] x) => (float[N,2] z, float[N] z_0) {z = Neg(x) i = Constant<value_int=0>()"
    np.save("x.npy", np.ones((5, 2), np.float32))
    with pytest.raises(UnsupportedError, match=r"two outputs give a column 'z_0': choose one of them"):
        scored(f"{graph} z_0 = Gather<axis=1>(x, i)}}", "x.npy", "out.csv")


def test_an_output_without_numbers_is_refused() -> None:
    graph = "g (float[N,2] x) => (float[N,0] y) {i = Constant<value_ints=[0]>() a = Constant<value_ints=[1]>()"
    np.save("x.npy", np.ones((5, 2), np.float32))
    with pytest.raises(UnsupportedError, match=r"'y' has rows of shape \[0\]"):
        scored(f"{graph} y = Slice(x, i, i, a)}}", "x.npy", "out.csv")


def test_outputs_of_a_fixed_batch_that_differ_in_width_are_refused() -> None:
    x = np.ones((8, 2), np.float32)
    x[4:, 0] = -1
    np.save("x.npy", x)
    graph = "g (float[4,2] x) => (float[4,M] y) {z = Constant<value_float=0.0>() a = Constant<value_ints=[0]>()"
    with pytest.raises(InvalidDataError, match="'y' has rows of different shapes"):
        scored(f"{graph} s = ReduceMax<keepdims=0>(x, a) c = Greater(s, z) y = Compress<axis=1>(x, c)}}", "x.npy",
               "out.npz", mixed=True)  # fmt: skip


def test_bytes_of_numpy_are_texts() -> None:
    np.save("x.npy", np.array(["é".encode(), b"d"]))
    scored("g (string[N] x) => (string[N] y) {y = Identity(x)}", "x.npy", "out.parquet")
    assert pq.read_table("out.parquet")["y"].to_pylist() == ["é", "d"]


def test_a_text_of_a_csv_file_is_what_stands_there() -> None:
    """`NA` is a country, as long as no library that takes it for a null made the model."""
    Path("rows.csv").write_text("x,k\nNA,1\n,2\n")
    scored("g (string[N] x) => (string[N] y) {y = Identity(x)}", "rows.csv", "out.parquet")
    assert pq.read_table("out.parquet")["y"].to_pylist() == ["NA", ""]


def test_an_integer_that_the_dtype_does_not_hold_is_named() -> None:
    pq.write_table(pa.table({"x": [1, 100_000]}), "rows.parquet")
    with pytest.raises(InvalidDataError, match="row 2: column 'x' has 100000, which float16 does not hold"):
        scored("g (float16[N] x) => (float16[N] y) {y = Identity(x)}", "rows.parquet", "out.parquet")


def test_lines_within_texts_are_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.scoring.sources.BLOCK", 4096)
    texts = [f"one line\nand another, {i}" for i in range(2000)]
    csv.write_csv(pa.table({"x": np.arange(2000, dtype=np.float32), "s": texts}), "rows.csv")
    assert scored(SAME, "rows.csv", "out.csv", keep="s") == 2000
    assert pd.read_csv("out.csv")["s"].tolist() == texts


def test_a_null_in_a_single_column_is_a_row() -> None:
    rows = pd.DataFrame({"a": [1.5, None, 3.0, None]})
    model = onward.from_dataframe(lambda df: df.assign(a=df.a * 2), rows)
    rows.to_parquet("rows.parquet")
    onward.score(model, "rows.parquet", "out.csv")
    np.testing.assert_array_equal(pd.read_csv("out.csv")["a"], [3.0, np.nan, 6.0, np.nan])
    onward.score(model, "out.csv", "again.csv")
    np.testing.assert_array_equal(pd.read_csv("again.csv")["a"], [6.0, np.nan, 12.0, np.nan])


@pytest.mark.parametrize("out", ["out.parquet", "out.feather", "out.csv"])
def test_categories_may_be_others_in_each_group_of_rows(out: str) -> None:
    type = pa.dictionary(pa.int8(), pa.string())
    with pq.ParquetWriter("rows.parquet", pa.schema([("x", pa.float32()), ("c", type)])) as file:
        for labels in (["a", "b"], ["c", "a"]):
            encoded = pa.array(labels).dictionary_encode().cast(type)
            file.write_table(pa.table({"x": pa.array([1, 2], pa.float32()), "c": encoded}))
    assert scored(SAME, "rows.parquet", out, keep="c", batch=1) == 4
    read = {"parquet": pq.read_table, "feather": feather.read_table, "csv": csv.read_csv}[out.partition(".")[2]]
    assert read(out)["c"].to_pylist() == ["a", "b", "c", "a"]


@pytest.mark.parametrize(
    ("column", "out", "message"),
    [
        (pa.array([1, None]), "out.npz", "'k' has nulls, which a .npz does not hold"),
        (pa.array([1, 2], pa.duration("ms")), "out.csv", "'k' has durations"),
        (pa.array([{"a": 1}, {"a": 2}]), "out.csv", "such a file does not hold the results"),
        (pa.array([b"\xff", b"a"]), "out.csv", "such a file does not hold the results"),
    ],
)
def test_what_a_format_does_not_hold_is_an_error(column: Any, out: str, message: str) -> None:
    pq.write_table(pa.table({"x": pa.array([1, 2], pa.float32()), "k": column}), "rows.parquet")
    with pytest.raises(InvalidDataError, match=message):
        scored(SAME, "rows.parquet", out, keep="k")
    assert not Path(out).exists()


def test_arrays_that_are_not_asked_for_do_not_matter() -> None:
    np.savez("rows.npz", x=np.ones(5, np.float32), names=np.array(["a", "b"]), one=np.array(1), z=np.ones(3, complex))
    assert scored(SAME, "rows.npz", "out.npz") == 5
    with pytest.raises(InvalidDataError, match="different numbers of rows: names 2, x 5"):
        scored(SAME, "rows.npz", "out.csv", keep="names")
    with pytest.raises(InvalidDataError, match="the array 'one': a single number has no rows"):
        scored(SAME, "rows.npz", "out.csv", keep="one")


def test_numbers_of_another_byte_order() -> None:
    np.savez("rows.npz", x=np.arange(5, dtype=">f4"))
    scored(SAME, "rows.npz", "out.npz")
    assert np.array_equal(np.load("out.npz")["y"], np.arange(5))


def of_shape(*shape: int) -> Callable[[], None]:
    def write() -> None:
        with Path("rows.npy").open("wb") as file:
            np.lib.format.write_array_header_2_0(file, {"descr": "|i1", "fortran_order": False, "shape": shape})
            file.write(b"\0" * 400)

    return write


def spoilt() -> None:
    """Lengths of texts that lead far out of the file."""
    feather.write_feather(pa.table({"x": ["abcdefgh"] * 100}), "rows.feather", compression="uncompressed")
    content = bytearray(Path("rows.feather").read_bytes())
    start = content.index(np.arange(0, 808, 8, dtype=np.int32).tobytes())
    content[start + 40 : start + 44] = (2**30).to_bytes(4, "little")
    Path("rows.feather").write_bytes(content)


HARMFUL = {
    "fewer than no rows": of_shape(-1),
    "rows of less than nothing": of_shape(10, -1),
    "more bytes than there are": of_shape(2**62),
    "rows without end": of_shape(4096, 10**30),
    "rows too long": of_shape(4096, 10**12),
    "texts outside of the file": spoilt,
}


@pytest.mark.parametrize("name", HARMFUL)
def test_a_file_made_to_harm_is_one_error(name: str) -> None:
    HARMFUL[name]()
    data = next(path.name for path in Path().iterdir())
    graph = "g (string[N] x) => (string[N] y)" if data == "rows.feather" else "g (int8[N,M] x) => (int8[N,M] y)"
    with pytest.raises(OnwardError):
        scored(f"{graph} {{y = Identity(x)}}", data, "out.parquet")


@pytest.mark.parametrize("out", ["out.npz", "out.parquet"])
def test_batches_of_large_rows_have_fewer_of_them(out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onward.scoring.sources.BATCH", 2560)
    np.save("x.npy", np.arange(25 * 64, dtype=np.float32).reshape(25, 8, 8))
    graph = "g (float[N, 8, 8] x) => (float[N] y) {a = Constant<value_ints=[1, 2]>() y = ReduceMax<keepdims=0>(x, a)}"
    seen: list[int] = []
    assert scored(graph, "x.npy", out, told=lambda done, total: seen.append(done)) == 25
    assert seen == [10, 20, 25]
    seen.clear()
    assert scored(graph, "x.npy", out, mixed=True, told=lambda done, total: seen.append(done)) == 25
    assert seen == [25]
