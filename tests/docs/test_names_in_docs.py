"""Every path and every module that a page names exists."""

from __future__ import annotations

import importlib
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BASES = [ROOT, ROOT / "src/onward"]
FAMILIES = {path.stem for path in (ROOT / "src/onward/backends/torch/rules").glob("*.py")} - {"__init__"}
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def paths(text: str) -> set[str]:
    """Paths between backticks that begin in the repository or in the package: `spec/<family>.py`."""
    words = {word for quoted in re.findall(r"`([^`\n]+)`", text) for word in quoted.split()}
    found = {word for word in words if re.fullmatch(r"[\w.<>*-]+(?:/[\w.<>*-]*)+", word)}
    tops = {child.name for base in BASES for child in base.iterdir() if child.is_dir()} - {"build"}
    return {word for word in found if word.split("/")[0] in tops}


def exists(path: str) -> bool:
    """`<family>` stands for a family of ops that the path has, `*` for anything."""
    named = {path.replace("<family>", family).rstrip("/") for family in FAMILIES}
    return any(next(base.glob(pattern), None) is not None for base in BASES for pattern in named)


@cache
def code(folder: str) -> str:
    return "\n".join(path.read_text() for path in (ROOT / folder).rglob("*.py"))


def resolves(name: str) -> bool:
    """A module, something in one, or a domain or key of metadata that the source spells out."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            spec = find_spec(".".join(parts[:count]))
        except ModuleNotFoundError:
            continue
        if spec is not None:
            value: object = importlib.import_module(".".join(parts[:count]))
            for attribute in parts[count:]:
                value = getattr(value, attribute, None)
            if value is not None:
                return True
            break
    return f'"{name}"' in code("src")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_exists(page: Path) -> None:
    text = page.read_text()
    assert sorted(path for path in paths(text) if not exists(path)) == []
    names = set(re.findall(r"(?<![\w./])onward(?:\.[A-Za-z_]\w*)+", text))
    assert sorted(name for name in names if not resolves(name)) == []


def test_a_wrong_name_is_found() -> None:
    assert resolves("onward.training.AdamW") and resolves("onward.nhwc") and exists("src/onward/spec/<family>.py")
    assert not resolves("onward.nowhere.at_all") and not resolves("onward.training.Nothing")
    assert paths("`benchmarks/missing.py`") == {"benchmarks/missing.py"} and not exists("benchmarks/missing.py")
    assert not exists("src/onward/graph/<family>.py")


@pytest.mark.parametrize("page", sorted((ROOT / "docs/develop").glob("*.md")), ids=lambda page: page.name)
def test_code_for_developers_is_real(page: Path) -> None:
    """Each paragraph of a block of Python stands somewhere in the source or in the tests."""
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", page.read_text(), re.DOTALL | re.MULTILINE)
    paragraphs = [paragraph for _, block in blocks for paragraph in block.split("\n\n")]
    real = margins_off(code("src") + code("tests"))
    assert [text for text in paragraphs if margins_off(text).strip("\n") not in real] == []


def margins_off(text: str) -> str:
    """Lines as they are, but for how far they are indented: a page shows a method without its class."""
    return re.sub(r"^ +", "", text, flags=re.MULTILINE)
