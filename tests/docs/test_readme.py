"""What the README shows is what happens."""

import re
import shlex
from pathlib import Path

import pytest

from onward.backends.torch.convert import generate
from onward.cli import main
from onward.model import load

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL) for line in block.splitlines()]


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "build").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_generated_code_is_real() -> None:
    shown = [block for block in BLOCKS if block.startswith("class ")]
    assert len(shown) == 1 and shown[0] in generate(load(ROOT / "examples/digits/digits.onnx")).model


def test_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(COMMANDS) >= 4
    for command in COMMANDS:
        word, *arguments = shlex.split(command, comments=True)
        assert word == "onward" and main(arguments) == 0, capsys.readouterr().err
    made = ["digits/model.py", "digits/weights.safetensors", "report.html", "trainable.onnx", "training/train.py"]
    assert [name for name in made if not (folder / "build" / name).exists()] == []


def test_python_runs(folder: Path) -> None:
    shown = [block for block in BLOCKS if block.startswith("import onward")]
    assert len(shown) == 1
    made: dict[str, object] = {}
    exec(shown[0], made)
    assert (folder / "build/copy.onnx").stat().st_size > 100_000
    assert (folder / "build/net/model.py").exists()
    assert [name for name, p in made["head"].named_parameters() if p.requires_grad] == ["head.weight", "head.bias"]


def test_data_processing_runs(folder: Path) -> None:
    pytest.importorskip("pandas")
    (shown,) = (block for block in BLOCKS if block.startswith("import pandas"))
    exec(compile(shown, "README", "exec"), {})
    assert (folder / "build/features.onnx").exists()


def test_every_count_is_on_the_page_that_it_links() -> None:
    rows = re.findall(r"^\| \[.*?\]\((docs/measured/[\w-]+\.md)\) \| \*\*(\d+)\*\* \| (.*?) \|", TEXT, re.MULTILINE)
    written_by_hand = [row for row in rows if row[0] != "docs/measured/zoo.md"]
    assert len(written_by_hand) == 4
    for page, ours, others in written_by_hand:
        told = (ROOT / page).read_text().partition("\n| model | ")[0]
        for count in [ours, *re.findall(r"\w+ (\d+)", others)]:
            assert re.search(rf"\b{count}\b", told), f"{page} has no {count}"
