"""Tests lie where the code that they test lies."""

from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]
SOURCE = TESTS.parent / "src/onward"

OF_NO_PART = {
    "differential": "random graphs, through every part",
    "docs": "the pages and what they show",
    "examples": "the examples",
    "ops": "the rules of a family of ops, of every backend",
    "package": "the package as a whole",
}
"""Folders of tests that no folder of the source has, and what is tested there."""

SHARED_NAMES = {"__init__.py", "conftest.py"}


def test_no_test_lies_outside_a_folder() -> None:
    assert not [path.name for path in TESTS.glob("test_*.py")]


def test_folders_are_those_of_the_source() -> None:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    others = {str(folder) for folder in folders if not (SOURCE / folder / "__init__.py").exists()}
    assert others == OF_NO_PART.keys()


def test_file_names_are_used_once() -> None:
    """They are imported by these names alone, as are the benchmarks that tests use; the toy backend is a package."""
    found = [path for folder in (TESTS, TESTS.parent / "benchmarks") for path in folder.rglob("*.py")]
    names = Counter(path.name for path in found if TESTS / "backends/toy" not in path.parents)
    assert {name for name, count in names.items() if count > 1} <= SHARED_NAMES


def test_slow_tests_exist() -> None:
    """So that the list is no longer than what is slow."""
    for line in (TESTS / "slow.txt").read_text().split():
        file, _, function = line.partition("::")
        assert f"def {function}(" in (TESTS / file).read_text(), line
