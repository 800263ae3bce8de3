"""Scripts by which shells complete a command line."""

import subprocess
from pathlib import Path

import pytest

from conftest import Run

BASH = """
source ./script
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
_onward
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def script(run: Run, tmp_path: Path) -> Path:
    (tmp_path / "script").write_text(run("completion", "bash")[1])
    return tmp_path


@pytest.mark.parametrize(
    ("words", "offered", "not_offered"),
    [
        (["onward", "ve"], {"verify"}, {"convert"}),
        (["onward", ""], {"convert", "inspect", "train", "--version"}, {"prepare"}),
        (["onward", "convert", "m.onnx", "--to", ""], {"torch", "tflite", "onnx"}, {"--out"}),
        (["onward", "convert", "--qu"], {"--quick", "--quantize"}, {"--out"}),
        (["onward", "train", ""], {"prepare", "run"}, {"convert"}),
        (["onward", "train", "inspect", "--j"], {"--json"}, {"--weights"}),
        (["onward", "inspect", "--w"], {"--weights"}, set()),
        (["onward", "completion", ""], {"bash", "zsh", "fish"}, set()),
        (["onward", "convert", ""], set(), {"--to", "torch"}),
        (["onward", "convert", "m.onnx", "--out", "train"], set(), {"--to", "prepare"}),
    ],
)
def test_bash(script: Path, words: list[str], offered: set[str], not_offered: set[str]) -> None:
    """Where nothing is offered, bash itself offers files."""
    line = " ".join(f"'{word}'" for word in words)
    done = subprocess.run(
        ["bash", "-c", BASH.format(words=line)], cwd=script, capture_output=True, text=True, check=True
    )
    found = set(done.stdout.split())
    assert offered <= found and not found & not_offered and not done.stderr


def test_other_shells(run: Run) -> None:
    code, printed, errors = run("completion", "zsh")
    assert code == 0 and not errors and "compdef _onward onward" in printed and '"onward convert --to"' in printed
    code, printed, errors = run("completion", "fish")
    assert code == 0 and "-l quantize -x -a 'float16 dynamic int8 int4'" in printed
    assert all(line.startswith("complete -c onward") for line in printed.splitlines())
    assert "'__fish_seen_subcommand_from inspect; and not __fish_seen_subcommand_from train' -l weights" in printed


def test_an_unknown_shell(run: Run) -> None:
    code, _, errors = run("completion", "fsh")
    assert code == 2 and "did you mean fish?" in errors
