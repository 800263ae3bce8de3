"""`onward.score` on models of tensors: the results of `onnxruntime`, row by row, whatever the file is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onnx.parser import parse_model
from pyarrow import csv, feather

import onward
from onward.errors import InvalidDataError, OnwardError, RunFailure, UnsupportedError

RNG = np.random.default_rng(3)
ROWS = 1000
HEAD = '<ir_version: 10, opset_import: ["": 20]>'


def saved(folder: Path, graph: str, name: str = "model.onnx") -> Path:
    onnx.save(parse_model(HEAD + graph), folder / name)
    return folder / name


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    """The sum of each row of two numbers, and twice the row."""
    return saved(
        tmp_path,
        "g (float[N,2] x) => (float[N] s, float[N,2] y)"
        "{ one = Constant<value_ints=[1]>() s = ReduceSum<keepdims=0>(x, one) y = Add(x, x) }",
    )


def table(**more: Any) -> pa.Table:
    a, b = RNG.standard_normal((2, ROWS)).astype(np.float32)
    return pa.table({"id": [f"{i:04}" for i in range(ROWS)], "a": a, "b": b, **more})


WRITERS = {
    ".parquet": lambda rows, path: pq.write_table(rows, path, row_group_size=130),
    ".csv": csv.write_csv,
    ".feather": lambda rows, path: feather.write_feather(rows, path, chunksize=77),
}
READERS = {
    ".parquet": pq.read_table,
    ".feather": feather.read_table,
    ".csv": lambda path: csv.read_csv(path, convert_options=csv.ConvertOptions(column_types={"id": pa.string()})),
}


@pytest.mark.parametrize("given", sorted(WRITERS))
@pytest.mark.parametrize("made", sorted(READERS))
def test_every_row_is_scored_once_in_order(sums: Path, tmp_path: Path, given: str, made: str) -> None:
    rows, data, out = table(), tmp_path / f"rows{given}", tmp_path / f"out{made}"
    WRITERS[given](rows, data)
    assert onward.score(sums, data, out, column={"x": "a,b"}, keep=["id"], batch=64) == ROWS
    found = READERS[made](out)
    assert found.schema.names == ["id", "s", "y_0", "y_1"]
    assert found["id"].to_pylist() == rows["id"].to_pylist()
    a, b = (rows[name].to_numpy() for name in "ab")
    np.testing.assert_allclose(found["s"].to_numpy(), a + b, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["y_1"].to_numpy(), 2 * b, rtol=1e-6)


def test_a_folder_of_parquet_files_is_one_table(sums: Path, tmp_path: Path) -> None:
    rows = table()
    (tmp_path / "parts").mkdir()
    for number in range(4):
        pq.write_table(rows.slice(250 * number, 250), tmp_path / f"parts/{number}.parquet")
    out = tmp_path / "out.parquet"
    assert onward.score(sums, tmp_path / "parts", out, column={"x": "a,b"}, keep="id", outputs="s", batch=333) == ROWS
    assert pq.read_table(out)["id"].to_pylist() == rows["id"].to_pylist()


def test_arrays_keep_their_shapes(tmp_path: Path) -> None:
    model = saved(tmp_path, "g (float[N,2,3] x, int64[N] k) => (float[N,2,3] y, int64[N] z) {y = Neg(x) z = Add(k, k)}")
    x = RNG.standard_normal((ROWS, 2, 3)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", x=x, k=np.arange(ROWS), other=np.zeros(ROWS))
    assert onward.score(model, tmp_path / "rows.npz", tmp_path / "out.npz", batch=99) == ROWS
    found = np.load(tmp_path / "out.npz")
    assert np.array_equal(found["y"], -x) and np.array_equal(found["z"], 2 * np.arange(ROWS))
    np.save(tmp_path / "x.npy", x)
    neg = saved(tmp_path, "g (float[N,2,3] x) => (float[N,2,3] y) {y = Neg(x)}")
    onward.score(neg, tmp_path / "x.npy", tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet").num_columns == 6


def test_list_columns_feed_tensors(tmp_path: Path) -> None:
    model = saved(tmp_path, "g (float[N,2,2] x) => (float[N,2,2] y) {y = Neg(x)}")
    flat = RNG.standard_normal((50, 4))
    pq.write_table(pa.table({"x": flat.tolist()}), tmp_path / "rows.parquet")
    onward.score(model, tmp_path / "rows.parquet", tmp_path / "out.npz", batch=8)
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["y"], -flat.reshape(-1, 2, 2), rtol=1e-6)


@pytest.mark.parametrize("rows", [1, 7, 8, 23])
def test_a_fixed_batch_is_filled_up_and_cut(tmp_path: Path, rows: int) -> None:
    model = saved(tmp_path, "g (float[8,2] x) => (float[8,2] y) {y = Neg(x)}")
    x = RNG.standard_normal((rows, 2)).astype(np.float32)
    np.savez(tmp_path / "rows.npz", x=x)
    assert onward.score(model, tmp_path / "rows.npz", tmp_path / "out.npz", batch=16) == rows
    assert np.array_equal(np.load(tmp_path / "out.npz")["y"], -x)


def test_no_rows_give_the_columns(sums: Path, tmp_path: Path) -> None:
    pq.write_table(table().slice(0, 0), tmp_path / "rows.parquet")
    assert onward.score(sums, tmp_path / "rows.parquet", tmp_path / "out.parquet", column={"x": "a,b"}) == 0
    assert pq.read_table(tmp_path / "out.parquet").schema.names == ["s", "y_0", "y_1"]


MEAN = "g (float[N,2] x) => (float[N,2] y) {zero = Constant<value_ints=[0]>() m = ReduceMean(x, zero) y = Sub(x, m)}"


def test_rows_that_depend_on_one_another_are_refused(tmp_path: Path) -> None:
    model, data, out = saved(tmp_path, MEAN), tmp_path / "rows.parquet", tmp_path / "out.parquet"
    pq.write_table(table(), data)
    with pytest.raises(UnsupportedError, match=r"depends on the rows that are scored with it.*mixed=True"):
        onward.score(model, data, out, column={"x": "a,b"})
    assert not out.exists()
    assert onward.score(model, data, out, column={"x": "a,b"}, mixed=True) == ROWS


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[N,2] x) => (float[1,2] y) {zero = Constant<value_ints=[0]>() y = ReduceSum(x, zero)}",
        "g (float[N,2] x) => (float y) {y = ReduceSum<keepdims=0>(x)}",
        "g (float[4,2] x) => (float[2,4] y) {y = Transpose(x)}",
    ],
)
def test_outputs_that_are_no_rows_are_refused(tmp_path: Path, graph: str) -> None:
    pq.write_table(table(), tmp_path / "rows.parquet")
    with pytest.raises(UnsupportedError, match="not one result for each row"):
        onward.score(saved(tmp_path, graph), tmp_path / "rows.parquet", tmp_path / "out.parquet", column={"x": "a,b"})


def test_the_row_that_fails_is_named(tmp_path: Path) -> None:
    model = saved(tmp_path, "g (int64[N] k) => (int64[N] y) {t = Constant<value_ints=[1, 2, 3]>() y = Gather(t, k)}")
    keys = np.zeros(ROWS, np.int64)
    keys[777] = 9
    np.savez(tmp_path / "rows.npz", k=keys)
    with pytest.raises(RunFailure, match=r"^row 778: ONNX Runtime could not run the model.*out of.*bounds"):
        onward.score(model, tmp_path / "rows.npz", tmp_path / "out.npz", batch=100)
    assert not (tmp_path / "out.npz").exists()


def wrong(**columns: Any) -> pa.Table:
    return pa.table({"a": [1.0, 2.0, 3.0], **columns})


@pytest.mark.parametrize(
    ("rows", "column", "message"),
    [
        (wrong(bb=[1.0, 2.0, 3.0]), {"x": "a,b"}, r"no column 'b', which the model takes.*it has 'a', 'bb'"),
        (wrong(ammount=[1.0, 2.0, 3.0]), {"x": "a,amount"}, r"did you mean ammount\?"),
        (wrong(b=["1", "2", "3"]), {"x": "a,b"}, r"row 1: column 'b' holds string, and the model takes float"),
        (wrong(b=[1.0, 1e300, 2.0]), {"x": "a,b"}, r"row 2: column 'b' has 1e\+300, which float32 does not hold"),
        (wrong(b=[1.0, 2.0, 3.0]), {}, r"no column 'x'.*column=\{'x': 'a,b,c'\} feeds an input"),
        (wrong(b=[1.0, 2.0, 3.0]), {"x": "a"}, r"takes rows of 2, and the columns give 1"),
        (wrong(b=[1.0, 2.0, 3.0]), {"z": "a,b"}, r"the model has no input 'z'"),
    ],
)
def test_what_is_wrong_with_columns(
    sums: Path, tmp_path: Path, rows: pa.Table, column: dict[str, str], message: str
) -> None:
    pq.write_table(rows, tmp_path / "rows.parquet")
    with pytest.raises(InvalidDataError, match=message):
        onward.score(sums, tmp_path / "rows.parquet", tmp_path / "out.parquet", column=column)
    assert not (tmp_path / "out.parquet").exists()


def test_texts_of_a_csv_file_that_are_no_numbers_are_named(sums: Path, tmp_path: Path) -> None:
    lines = [f"{i},{i + 1}" for i in range(300)]
    lines[250] = "250,two"
    (tmp_path / "rows.csv").write_text("a,b\n" + "\n".join(lines))
    with pytest.raises(InvalidDataError, match=r"^row 251: column 'b' has to hold float: .*'two'"):
        onward.score(sums, tmp_path / "rows.csv", tmp_path / "out.csv", column={"x": "a,b"}, batch=64)


def test_a_result_is_not_written_over(sums: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    pq.write_table(table(), data)
    out.write_text("mine")
    with pytest.raises(OnwardError, match=r"exists already: force=True writes over it"):
        onward.score(sums, data, out, column={"x": "a,b"})
    broken = table().set_column(1, "a", pa.array([*[1.0] * 900, *[None] * 50, *[1e39] * 50]))
    pq.write_table(broken, data)
    with pytest.raises(InvalidDataError, match=r"^row 951"):
        onward.score(sums, data, out, column={"x": "a,b"}, batch=50, force=True)
    assert out.read_text() == "mine" and sorted(path.name for path in tmp_path.iterdir()) == [
        "model.onnx",
        "out.parquet",
        "rows.parquet",
    ]
    pq.write_table(table(), data)
    assert onward.score(sums, data, out, column={"x": "a,b"}, force=True) == ROWS


def test_columns_that_are_kept_have_names_of_their_own(sums: Path, tmp_path: Path) -> None:
    pq.write_table(table(s=np.zeros(ROWS)), tmp_path / "rows.parquet")
    with pytest.raises(InvalidDataError, match="'s' is a column to keep and one that the model gives"):
        onward.score(sums, tmp_path / "rows.parquet", tmp_path / "out.parquet", column={"x": "a,b"}, keep="s")


def test_data_that_cannot_be_read(sums: Path, tmp_path: Path) -> None:
    for name, words in {
        "rows.parquet": "cannot be read",
        "rows.npz": "damaged",
        "rows.txt": "rows are read from",
    }.items():
        (tmp_path / name).write_bytes(b"PK\x03\x04 nothing of the kind")
        with pytest.raises(InvalidDataError, match=words):
            onward.score(sums, tmp_path / name, tmp_path / "out.parquet")
    with pytest.raises(InvalidDataError, match="different numbers of rows"):
        np.savez(tmp_path / "two.npz", x=np.zeros((3, 2)), b=np.zeros(4))
        onward.score(sums, tmp_path / "two.npz", tmp_path / "out.parquet", keep="b")
