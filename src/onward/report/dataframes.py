"""The page of what converts of pandas and Polars, made from the rules themselves."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from typing import Any

TITLE = """\
# What converts of pandas and Polars

Written by `make coverage` from the rules themselves. What is not listed is refused by name, with the line of the
function. A method may refuse some of its arguments, or values that ONNX has no form for; it says so. Functions of
narwhals become calls of pandas or of Polars, whichever the frame is of.
[Data processing](../guide/data-processing.md) is the guide.
"""
SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "**",
    "and": "&",
    "or": "|",
    "xor": "^",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "neg": "-x",
    "pos": "+x",
    "abs": "abs(x)",
    "invert": "~x",
    "getitem": "x[…]",
    "setitem": "x[…] =",
    "matmul": "@",
}
"""How methods between underscores are written."""
PANDAS = {
    "Series": "columns",
    "Series.str": "texts: `.str`",
    "Series.dt": "times: `.dt`",
    "Series.cat": "categories: `.cat`",
    "DataFrame": "frames",
    "GroupBy": "groups",
    "Window": "windows: `rolling`, `expanding`, `ewm`",
    "pandas": "functions of pandas",
    "numpy": "functions of numpy",
}
"""By the beginning of the names of rules: what they are about."""
POLARS = {
    "": "expressions",
    "binary": "operators",
    "bool": "booleans",
    "agg": "aggregates",
    "str": "texts: `.str`",
    "dt": "times: `.dt`",
    "rolling": "windows: `rolling_…`",
    "list": "lists: `.list`",
    "ewm": "weighted: `ewm_…`",
    "struct": "structures: `.struct`",
}
INNER = {"column", "reference", "literal", "alias", "as_struct"}
"""Kinds of expressions that are no methods."""


def page() -> str:
    return TITLE + "".join([*_section("pandas", PANDAS, _pandas()), *_section("Polars", POLARS, _polars())])


def _section(library: str, titles: Mapping[str, str], found: Mapping[str, list[str]]) -> Iterable[str]:
    total = sum(len(names) for names in found.values())
    yield f"\n## {library}\n\n{total} methods, functions and operators.\n\n| of | what converts |\n|---|---|\n"
    for key, title in titles.items():
        if found.get(key):
            listed = ", ".join(f"`{_escaped(name)}`" for name in sorted(found[key], key=_order))
            yield f"| {title} | {listed} |\n"


def _order(name: str) -> tuple[bool, str]:
    """Names first, then operators."""
    return not name[:1].isalpha() or "(" in name or "[" in name, name


def _escaped(name: str) -> str:
    return name.replace("|", "\\|")


def _pandas() -> dict[str, list[str]]:
    from onward.frontends.dataframe.pandas.dispatch import RULES
    from onward.registry import import_files

    import_files("onward.frontends.dataframe.pandas.rules")
    found: dict[str, list[str]] = {}
    for name in RULES:
        function = RULES.get(name)
        owner, _, method = name.rpartition(".")
        if owner in PANDAS and function is not None and not only_refuses(function):
            found.setdefault(owner, []).append(_spelled(method))
    return found


def _polars() -> dict[str, list[str]]:
    import onward.frontends.dataframe.polars.rules  # noqa: F401
    from onward.frontends.dataframe.polars.scope import RULES

    found: dict[str, list[str]] = {}
    for name, function in RULES.items():
        owner, _, method = name.rpartition(".")
        if name not in INNER and not only_refuses(function):
            found.setdefault(owner, []).append(_snake(method))
    return found


def _spelled(method: str) -> str:
    inner = method.strip("_")
    if not (method.startswith("__") and method.endswith("__")):
        return method
    if inner in SYMBOLS:
        return SYMBOLS[inner]
    reverse = inner.removeprefix("r")
    return f"{SYMBOLS[reverse]} (from the right)" if reverse in SYMBOLS else inner


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def only_refuses(function: Callable[..., Any]) -> bool:
    """Whether all that a rule does is to say why it cannot be converted."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return False
    made = tree.body[0]
    if not isinstance(made, ast.FunctionDef):
        return False
    steps = [step for step in made.body if not (isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant))]
    return len(steps) == 1 and isinstance(steps[0], ast.Raise)
