"""The sizes of an exported program, which are texts that PyTorch evaluates: those of a strict grammar only."""

from __future__ import annotations

import ast
import re

SYMBOL = re.compile(r"[a-z]+\d+")
LONGEST = 20_000
"""Characters of a text."""
LARGEST = 2**64
HIGHEST = 64
"""The largest exponent, or shift."""

CONSTANTS = {"true", "false", "True", "False", "oo", "int_oo", "zoo", "nan", "pi"}
FUNCTIONS = {
    *("Add", "Mul", "Max", "Min", "Abs", "Mod", "Rational", "Integer", "floor", "ceiling", "sqrt"),
    *("Eq", "Ne", "Lt", "Le", "Gt", "Ge", "Equality", "Unequality", "GreaterThan", "LessThan", "StrictGreaterThan"),
    *("StrictLessThan", "And", "Or", "Not", "Piecewise", "ExprCondPair", "Tuple"),
    *("FloorDiv", "ModularIndexing", "Where", "PythonMod", "CleanDiv", "CeilToInt", "FloorToInt", "CeilDiv"),
    *("FloatTrueDiv", "IntTrueDiv", "IsNonOverlappingAndDenseIndicator", "TruncToFloat", "TruncToInt", "RoundToInt"),
    *("RoundDecimal", "ToFloat", "Identity"),
}
"""Of sympy and of PyTorch, as they are in the texts that PyTorch writes."""
POWERS = {"Pow", "LShift", "RShift", "PowByNatural", "FloatPow"}
"""Those whose second argument makes numbers large."""
OPERATORS = (
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr),
    *(ast.USub, ast.UAdd, ast.Invert, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE),
)
ASSUMPTIONS = {"integer", "positive", "nonnegative", "negative", "real", "finite", "precision", "evaluate"}


class NotASize(Exception):
    """The text is more than a computation with sizes."""


def checked(text: object) -> str:
    """The text of a size as it is safe to evaluate: written anew from what was understood of it."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise NotASize
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        _check(tree, powers=2)
        return ast.unparse(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotASize from error


def _check(tree: ast.expr, powers: int) -> None:
    """`powers` is how many may still be inside each other."""
    match tree:
        case ast.Constant(value=bool() | int() | float() as number) if abs(number) <= LARGEST:
            return
        case ast.Name(id=name) if name in CONSTANTS or SYMBOL.fullmatch(name):
            return
        case ast.UnaryOp(op=op, operand=operand) if isinstance(op, OPERATORS):
            return _check(operand, powers)
        case ast.BinOp(left=base, op=ast.Pow(), right=exponent):
            return _check_power(base, exponent, powers)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, OPERATORS):
            _check(left, powers)
            return _check(right, powers)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, OPERATORS):
            _check(left, powers)
            return _check(right, powers)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            return _check_call(name, args, keywords, powers)
    raise NotASize


def _check_call(name: str, args: list[ast.expr], keywords: list[ast.keyword], powers: int) -> None:
    for one in keywords:
        if one.arg not in ASSUMPTIONS or not isinstance(one.value, ast.Constant):
            raise NotASize
        _check(one.value, powers)
    match name, args:
        case "Symbol" | "Float", [ast.Constant(value=str() as text)]:
            if not (SYMBOL.fullmatch(text) if name == "Symbol" else re.fullmatch(r"[-+.\de]{1,40}", text)):
                raise NotASize
        case _, [base, exponent] if name in POWERS:
            _check_power(base, exponent, powers)
        case _ if name in FUNCTIONS:
            for arg in args:
                _check(arg, powers)
        case _:
            raise NotASize


def _check_power(base: ast.expr, exponent: ast.expr, powers: int) -> None:
    """The exponent is a number, as a number or as `Integer(2)`, `Rational(1, 2)`."""
    if powers == 0:
        raise NotASize
    _check(base, powers - 1)
    _check(exponent, 0)
    numbers = [part for part in ast.walk(exponent) if isinstance(part, ast.Constant)]
    if any(isinstance(part, ast.BinOp) for part in ast.walk(exponent)) or not all(
        isinstance(part.value, int | float) and abs(part.value) <= HIGHEST for part in numbers
    ):
        raise NotASize
