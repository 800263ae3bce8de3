"""What pages of a zoo are made from: what has changed, runs so far, names of files, advice, a summary, a table."""

import json
import re
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import zoo_samples as samples

from onward.cli import parser
from onward.report.zoo import history
from onward.report.zoo.changes import changes
from onward.report.zoo.names import page_names
from onward.report.zoo.outline import picture
from onward.report.zoo.site import write
from onward.report.zoo.summary import markdown
from onward.report.zoo.tables import columns
from onward.report.zoo.verdicts import MEANINGS, RANKS, advice
from onward.zoo.results import TARGETS, TRAIN, VERDICTS, Outline, Results, read


def test_every_verdict_has_its_words() -> None:
    assert MEANINGS.keys() == RANKS.keys() == history.LETTERS.keys() == set(VERDICTS)
    assert len(history.WORDS) == len(VERDICTS)


def test_what_is_better_and_worse() -> None:
    old = samples.small(a="different", b="same", c="timeout")
    found = changes(old, samples.small(c="out of memory"))
    assert [change.after.model for change in found.worse] == ["b/net.onnx"]
    assert [change.after.model for change in found.better] == ["a/net.onnx"]
    assert [change.after.verdict for change in found.other] == ["out of memory"]
    assert (found.compared, found.new, found.gone) == (12, 0, 0) and found.regressed
    assert not changes(old, old).regressed


def test_another_file_is_not_compared_and_peers_do_not_count() -> None:
    old, new = samples.small(), samples.small()
    cells = dict(new.cells)
    peer, other = ("b/net.onnx", "peer:onnx2torch"), ("lone", "torch")
    cells[peer] = replace(cells[peer], verdict="failed")
    cells[other] = replace(cells[other], verdict="failed", sha256="other")
    del cells["a/net.onnx", "jax"]
    found = changes(old, Results(new.models, cells))
    assert [change.after.target for change in found.worse] == ["peer:onnx2torch"]
    assert (found.compared, found.new, found.gone) == (10, 1, 1) and not found.regressed


def test_results_of_another_size_are_told() -> None:
    new = samples.small()
    cells = dict(new.cells)
    key = ("lone", "torch")
    cells[key] = replace(cells[key], transposes=3, size_bytes=5001)
    figures = changes(samples.small(), Results(new.models, cells)).figures
    assert [(one.name, one.old, one.new) for one in figures] == [("transposes", 2, 3)], "a byte of 5,000 is no change"


def test_runs_so_far_survive_their_file(tmp_path: Path) -> None:
    first = history.with_run([], samples.small("2026-11-01", b="same"))
    runs = history.with_run(first, samples.small())
    (tmp_path / "history.json").write_text(history.text(runs))
    read_back = history.read_history(tmp_path / "history.json")
    assert read_back == runs and len(runs) == 2
    assert [run.verdict("b/net.onnx", "torch") for run in runs] == ["same", "different"]
    assert runs[0].verdict("lone", "jax") is None and runs[0].verdict("lone", "mars") is None
    assert [run.share("torch") for run in runs] == [0.75, 0.5] and runs[0].share("mars") is None
    assert len(history.with_run(runs, samples.small("2026-11-30"))) == 2, "nothing has changed"
    for text in ("", "{", '{"when": 1}', '[1, {"when": "x"}]', "[" * 100_000):
        (tmp_path / "history.json").write_text(text)
        assert history.read_history(tmp_path / "history.json") == []


def test_old_runs_are_forgotten() -> None:
    runs: list[history.Run] = []
    for number in range(history.MOST_RUNS + 5):
        runs = history.with_run(runs, samples.small(b="same" if number % 2 else "failed"))
    assert len(runs) == history.MOST_RUNS


@pytest.mark.parametrize("name", ["../../etc/passwd", "", "index", "CON", "Ä/ö", "a" * 500, ".hidden", "x\0y", "a b"])
def test_names_of_pages_are_names_of_files(name: str) -> None:
    path = page_names([name], "models")[name]
    assert re.fullmatch(r"models/[A-Za-z0-9_][A-Za-z0-9._-]{0,110}\.html", path)
    assert path.lower() not in ("models/index.html", "models/con.html")


def test_no_two_names_share_a_page() -> None:
    names = ["a/b", "a-b", "A-b", "a b", "a-b-2"]
    found = page_names(names, "models")
    assert len({path.casefold() for path in found.values()}) == len(names)
    assert found == page_names(names[::-1], "models"), "in whatever order they come"


@pytest.mark.parametrize("target", [*TARGETS, TRAIN, "peer:onnx2torch"])
@pytest.mark.parametrize("verdict", VERDICTS)
def test_advice_is_a_sentence_and_a_command_that_exists(verdict: str, target: str) -> None:
    told = advice(samples.cell(samples.facts("odd name; $(rm)/net.onnx"), target, verdict))
    assert re.fullmatch(r"[A-Z].*[.:]", told.sentence)
    for line in filter(None, told.command.split(" && ")):
        words = shlex.split(line)
        assert words[0] == "onward"
        args = parser().parse_args(words[1:])
        assert getattr(args, "model", "") in ("odd name; $(rm)/net.onnx", "trainable.onnx")
    assert bool(told.command) == (not target.startswith("peer:"))


def test_advice_takes_the_option_that_a_message_names() -> None:
    message = "no Div in int64; --cast down computes it in int32; --select-tf-ops takes TensorFlow's kernels"
    told = advice(samples.cell(samples.facts("net.onnx"), "tflite", "refused", message=message))
    assert told.command == "onward convert net.onnx --to tflite --cast down"
    assert parser().parse_args(told.command.split()[1:]).cast == "down"
    told = advice(samples.cell(samples.facts("net.onnx"), "tflite", "refused", message="such as --dim b=1; $(rm)"))
    assert told.command == "onward convert net.onnx --to tflite --dim b=1"
    told = advice(replace(samples.cell(samples.facts("net.onnx"), "torch", "refused"), first_node="Odd 'node'"))
    assert told.command == "onward convert net.onnx --to torch --fallback onnxruntime"
    told = advice(samples.cell(samples.facts("net.onnx"), "torch", "refused"))
    assert told.command == "onward convert net.onnx --to torch", "no node that could be kept as ONNX is named"
    message = "it is a pickle, which could execute anything when it is opened; --trust opens it"
    told = advice(samples.cell(samples.facts("net.joblib"), "torch", "refused", message=message))
    assert told.sentence.startswith("Only if you trust") and told.command.endswith(" --trust")


def test_a_hostile_outline_is_drawn_as_far_as_it_goes() -> None:
    boxes = (("<b>", "x" * 100), ("y",))
    svg = picture(Outline(boxes, ((0, 2), (2, 0), (5, 9), (-1, 1), (1, 1))), "<i>")
    assert svg.count("<rect") == 3 and svg.count("<path") == 1
    assert "<b>" not in svg and "<i>" not in svg
    assert picture(Outline(), "nothing") == ""


def test_the_summary_counts_and_gives_reasons() -> None:
    text = markdown(samples.small(), "My models")
    assert text.startswith("# My models\n")
    assert "| PyTorch | 4 | **2** | 1 | 0 | 0 | 0 | 0 | 0 | 1 | 50.0 % |" in text
    assert "| `b/net.onnx` | different | off at conv\\_3; at `conv_3 (Conv)`; error 0.5 of 3.0e-05 |" in text
    assert "## training: what is not the same\n\nNothing.\n" in text
    assert "onnx2torch: what" not in text, "peers are counted only"
    assert "| onnx2torch | PyTorch | 2 | **1** | **1** | 0 | 1 |" in text
    assert "| h5 | 1 of 1 |" in text
    lines = [line for line in text.splitlines() if "evil" in line]
    assert lines and all("<b" not in re.sub(r"`[^`]*`|\\.", "", line) for line in lines)
    assert all(re.sub(r"\\\|", "", line).count("|") == 4 for line in lines), "a bar in a message ends no cell"


def test_the_summary_says_once_what_is_said_on_every_target() -> None:
    net, other = samples.facts("lost.onnx"), samples.facts("net.onnx")
    cells = [samples.cell(net, target, "failed", message="it is not in the wheel") for target in ("torch", "jax")]
    cells += [samples.cell(other, target, "refused", message=f"not on {target}") for target in ("torch", "jax")]
    text = markdown(samples.results([net, other], cells))
    assert text.count("it is not in the wheel") == 1 and text.count("| `net.onnx` | refused | not on") == 2


def test_what_was_found_out_stands_beside_the_reason() -> None:
    net = samples.facts("net.onnx")
    found = samples.results([net], [samples.cell(net, "jax", "different", message="off", explained="by *rounding*")])
    assert "; *looked into*: by \\*rounding\\* |" in markdown(found)


def test_the_table_has_a_row_for_each_result(tmp_path: Path) -> None:
    found = columns(samples.small())
    assert {len(values) for values in found.values()} == {12}
    row = found["model"].index("lone")
    assert (found["target"][row], found["speed"][row], found["format"][row]) == ("torch", 30.0, "h5")
    assert (found["nodes"][row], found["source_nodes"][row]) == (7, 84)
    assert "source" not in found


def test_what_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = samples.small()
    assert write(tmp_path, new)
    import pyarrow.parquet as pq

    table = pq.read_table(tmp_path / "results.parquet").to_pydict()
    assert table == columns(new)
    again = read(tmp_path)
    assert again.models == new.models
    assert again.cells == {key: replace(cell, source="") for key, cell in new.cells.items()}
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert not write(other, new) and not (other / "results.parquet").exists()
    assert json.loads((other / "history.json").read_text()) == []
