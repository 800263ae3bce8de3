"""`onward zoo report`, as it is typed."""

import json
from pathlib import Path

import pytest
import zoo_samples as samples

from onward.cli import main
from onward.zoo.results import Results, record


def stored(folder: Path, results: Results) -> str:
    folder.mkdir()
    kept = [*results.models.values(), *results.cells.values()]
    (folder / "results.jsonl").write_text("".join(json.dumps(record(each)) + "\n" for each in kept))
    return str(folder)


def test_pages_history_and_what_is_worse(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = stored(tmp_path / "old", samples.small(b="same")), stored(tmp_path / "new", samples.small())
    out, summary = tmp_path / "site", tmp_path / "summary.md"
    assert main(["zoo", "report", old, "--out", str(out)]) == 0
    (out / "mine.txt").write_text("stays")
    capsys.readouterr()
    code = main(["zoo", "report", new, "--out", str(out), "--against", str(out), "--markdown", str(summary)])
    printed = capsys.readouterr().out
    assert code == 1
    assert "b/net.onnx · torch: same → different: off at conv_3" in printed and "better: 0" in printed
    assert len(json.loads((out / "history.json").read_text())) == 2
    assert "Since last time" in (out / "index.html").read_text()
    assert (out / "mine.txt").read_text() == "stays"
    assert summary.read_text().startswith("# Real models on every target")
    assert main(["zoo", "report", old, "--out", str(out), "--against", new, "--title", "x"]) == 0, "it is better"


def test_what_has_no_results_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "results.jsonl").write_text("no results\n")
    assert main(["zoo", "report", str(tmp_path), "--out", str(tmp_path / "site")]) == 2
    assert "there are no results in it; `onward zoo run` writes them" in capsys.readouterr().err
    assert not (tmp_path / "site").exists()
    assert main(["zoo", "report", str(tmp_path / "none"), "--out", str(tmp_path / "site")]) == 2
