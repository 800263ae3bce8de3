"""Records of a zoo survive a file, and a file that was cut off or written by others is read as far as it goes."""

import json
from pathlib import Path

import pytest

from onward.engine.store import Store
from onward.errors import OnwardError
from onward.zoo.results import Cell, ModelFacts, Outline, Slot, read, record

FACTS = ModelFacts(
    "a/net.onnx",
    "12ab",
    "onnx",
    inputs=(Slot("x", "tensor(float)", (1, "n", None)), Slot("y", "tensor(int64)")),
    ops={"Conv": 2, "com.microsoft::X": 1},
    nodes=3,
    graph=Outline((("Conv ×2",), ("X",)), ((0, 1),)),
)
CELL = Cell("a/net.onnx", "12ab", "torch", "onward 1", "same", error=1e-7, allowance=1e-5, seconds=1.5)


def lines(*records: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in records)


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text(lines(record(FACTS), record(CELL)))
    found = read(tmp_path)
    assert found.models == {"a/net.onnx": FACTS}
    assert found.cells == {("a/net.onnx", "torch"): CELL}
    assert found.of("a/net.onnx") == {"torch": CELL}


def test_later_lines_win_and_what_is_no_record_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    later = {**record(CELL), "verdict": "different", "new_field": 1}
    odd = [{"kind": "other"}, {"kind": "cell"}, {**record(CELL), "target": "jax", "verdict": "fine"}, [1]]
    file.write_text(lines(record(CELL), later, *odd) + json.dumps(record(CELL))[:40])
    found = read(file)
    assert list(found.cells) == [("a/net.onnx", "torch")]
    assert found.cells["a/net.onnx", "torch"].verdict == "different"


def test_targets_have_an_order(tmp_path: Path) -> None:
    file = tmp_path / "kept.jsonl"
    targets = ["peer:onnx2torch", "train", "jax", "torch"]
    file.write_text(lines(*({**record(CELL), "target": target} for target in targets)))
    assert read(file).targets == ("torch", "jax", "train", "peer:onnx2torch")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(OnwardError, match=r"none\.jsonl"):
        read(tmp_path / "none.jsonl")


def test_a_record_of_other_types_is_none_and_any_text_is_one(tmp_path: Path) -> None:
    """Lines end where JSON's do: a text may hold what Python takes for the end of a line, or half a character."""
    odd = [
        {**record(CELL), "seconds": "soon"},
        {**record(CELL), "model": ["a"]},
        {**record(CELL), "kind": []},
        {**record(FACTS), "ops": {"Conv": "2"}},
        {**record(FACTS), "inputs": [{"name": 1, "type": "x"}]},
    ]
    said = "a\u2028b\x85c\udc80"
    with Store(tmp_path / "results.jsonl", lambda kept: kept["model"]) as store:
        store.add({**record(CELL), "message": said})
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write(lines(*odd) + "[" * 100_000 + "\n")
    found = read(tmp_path)
    assert found.models == {} and found.cells["a/net.onnx", "torch"].message == said
    assert len(found.cells) == 1
