"""Expressions in strings: query and eval."""

from __future__ import annotations

import ast
import inspect
import operator
import re
from typing import Any

from onward.frontends.dataframe.pandas.dispatch import OWN, Call, rule
from onward.frontends.dataframe.pandas.proxies import Frame, Scalar, Series
from onward.hub.wording import quote

_LOCAL = "__local_"
_COLUMN = "__column_"


@rule("DataFrame.query")
def query(call: Call, frame: Frame, expr: str, *, inplace: bool = False, engine: Any = None, parser: Any = None) -> Any:
    made = frame[Evaluation(call, frame, expr).value()]
    if not inplace:
        return made
    frame.real, frame.columns_by_name, frame.rows = made.real, made.columns_by_name, made.rows
    return None


@rule("DataFrame.eval")
def evaluate(call: Call, frame: Frame, expr: str, *, inplace: bool = False, engine: Any = None) -> Any:
    lines = [line.strip() for line in expr.splitlines() if line.strip()]
    target = frame if inplace else frame.copied()
    for line in lines:
        assignment = re.fullmatch(r"\s*(`[^`]+`|\w+)\s*=(?!=)(.*)", line)
        if assignment is None:
            return Evaluation(call, target, line).value()
        target[assignment[1].strip("`")] = Evaluation(call, target, assignment[2]).value()
    return None if inplace else target


class Evaluation:
    """An expression over the columns of a frame; `@name` is a variable of the function that asks."""

    def __init__(self, call: Call, frame: Frame, text: str) -> None:
        self.call = call
        self.frame = frame
        self.names: dict[str, str] = {}
        self.tree = ast.parse(self._plain(text.strip()), mode="eval").body
        self.variables = _variables()

    def _plain(self, text: str) -> str:
        """Names in backticks and variables as identifiers; `&` and `|` bind as `and` and `or` do in pandas."""

        def column(match: re.Match[str]) -> str:
            name = f"{_COLUMN}{len(self.names)}"
            self.names[name] = match[1]
            return name

        parts = re.split(r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")", text)
        for i in range(0, len(parts), 2):
            parts[i] = re.sub(r"`([^`]+)`", column, parts[i])
            parts[i] = re.sub(r"@(\w+)", rf"{_LOCAL}\1", parts[i])
            parts[i] = re.sub(r"&&?", " and ", parts[i])
            parts[i] = re.sub(r"\|\|?", " or ", parts[i])
            parts[i] = re.sub(r"~", " not ", parts[i])
        return "".join(parts)

    def value(self) -> Any:
        return self.visit(self.tree)

    def visit(self, node: ast.AST) -> Any:
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.call.refuse(f"{quote(ast.unparse(node))} in an expression cannot be converted")
        return method(node)

    def _constant(self, node: ast.Constant) -> Any:
        return node.value

    def _list(self, node: ast.List) -> list[Any]:
        return [self.visit(item) for item in node.elts]

    _tuple = _list

    def _name(self, node: ast.Name) -> Any:
        if node.id.startswith(_LOCAL):
            name = node.id.removeprefix(_LOCAL)
            if name not in self.variables:
                raise self.call.refuse(f"there is no variable {quote(name)}")
            return self.variables[name]
        name = self.names.get(node.id, node.id)
        if name in self.frame:
            return self.frame.series(name)
        raise self.call.refuse(f"the frame has no column {quote(name)}")

    def _attribute(self, node: ast.Attribute) -> Any:
        return getattr(self.visit(node.value), node.attr)

    def _call(self, node: ast.Call) -> Any:
        named = {keyword.arg or "": self.visit(keyword.value) for keyword in node.keywords}
        arguments = [self.visit(argument) for argument in node.args]
        if isinstance(node.func, ast.Name) and node.func.id not in self.frame and not node.func.id.startswith(_LOCAL):
            import numpy as np

            if node.func.id not in _FUNCTIONS:
                raise self.call.refuse(f"{node.func.id} is no function of an expression")
            return getattr(np, node.func.id)(*arguments)
        return self.visit(node.func)(*arguments, **named)

    def _subscript(self, node: ast.Subscript) -> Any:
        return self.visit(node.value)[self.visit(node.slice)]

    def _unaryop(self, node: ast.UnaryOp) -> Any:
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return operator.invert(value) if isinstance(value, Series | Scalar) else not value
        return -value if isinstance(node.op, ast.USub) else +value

    def _boolop(self, node: ast.BoolOp) -> Any:
        values = [self.visit(value) for value in node.values]
        result = values[0]
        for value in values[1:]:
            result = result & value if isinstance(node.op, ast.And) else result | value
        return result

    def _binop(self, node: ast.BinOp) -> Any:
        functions: dict[type, Any] = {
            ast.Add: operator.add,
            ast.Sub: operator.sub,
            ast.Mult: operator.mul,
            ast.Div: operator.truediv,
            ast.FloorDiv: operator.floordiv,
            ast.Mod: operator.mod,
            ast.Pow: operator.pow,
        }
        if type(node.op) not in functions:
            raise self.call.refuse(f"{quote(ast.unparse(node))} in an expression cannot be converted")
        return functions[type(node.op)](self.visit(node.left), self.visit(node.right))

    def _compare(self, node: ast.Compare) -> Any:
        left, result = self.visit(node.left), None
        for test, item in zip(node.ops, node.comparators, strict=True):
            right = self.visit(item)
            found = self._compared(test, left, right)
            result = found if result is None else result & found
            left = right
        return result

    def _compared(self, test: ast.cmpop, left: Any, right: Any) -> Any:
        if isinstance(test, ast.In | ast.NotIn):
            found = left.isin(right)
            return found if isinstance(test, ast.In) else ~found
        functions: dict[type, Any] = {
            ast.Eq: operator.eq,
            ast.NotEq: operator.ne,
            ast.Lt: operator.lt,
            ast.LtE: operator.le,
            ast.Gt: operator.gt,
            ast.GtE: operator.ge,
        }
        if isinstance(right, list) and isinstance(test, ast.Eq | ast.NotEq):
            return self._compared(ast.In() if isinstance(test, ast.Eq) else ast.NotIn(), left, right)
        return functions[type(test)](left, right)


_FUNCTIONS = ("sin", "cos", "exp", "log", "expm1", "log1p", "sqrt", "abs", "log10", "floor", "ceil")


def _variables() -> dict[str, Any]:
    """The variables that the user's code sees where it asks."""
    frame = inspect.currentframe()
    while frame is not None:
        path = frame.f_code.co_filename
        if not path.startswith(str(OWN)) and "/pandas/" not in path and "contextlib" not in path:
            return {**frame.f_globals, **frame.f_locals}
        frame = frame.f_back
    return {}
