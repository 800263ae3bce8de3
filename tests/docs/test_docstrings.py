"""Every public function has an example in its docstring, and the examples are true."""

import doctest
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import onward

ROOT = Path(__file__).parents[2]
FUNCTIONS = [name for name in onward.__all__ if inspect.isfunction(getattr(onward, name))]
FRAMEWORKS = ("keras", "lightgbm", "sklearn", "tensorflow", "torch", "xgboost")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_example(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = inspect.getdoc(getattr(onward, name)) or ""
    for framework in FRAMEWORKS:
        if re.search(rf"\b(import|from)\b.*\b{framework}\b", text) and importlib.util.find_spec(framework) is None:
            pytest.skip(f"{framework} is not installed")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert example.examples, f"onward.{name} has no example"
    report: list[str] = []
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=report.append).failed == 0, "".join(
        report
    )


def test_nothing_else_is_shown() -> None:
    assert [name for name in dir(onward) if not name.startswith("_")] == sorted(onward.__all__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_options_are_spelled_out(name: str) -> None:
    kinds = {p.kind for p in inspect.signature(getattr(onward, name)).parameters.values()}
    assert name == "from_torch" or inspect.Parameter.VAR_KEYWORD not in kinds
