"""Numbers in the code of a function: equal blocks may differ by them, and then they are arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from onward.backends.emit.expr import (
    Attr,
    Binary,
    Call,
    Conditional,
    Expr,
    Index,
    Literal,
    Name,
    Sequence,
    SliceExpr,
    Star,
    Unary,
    forced,
)
from onward.backends.emit.statements import Assign, Block, Compound, Define, Do, Group, Keyword, Statement

Number = int | float | tuple["Number", ...]
"""A number of the source, or a tuple of some, at any depth."""
Change = Callable[[str, Number, Expr], Expr]
"""Gets a number, what it may be called and its expression; gives what is to stand there."""

_OPERANDS = {"*": "factor", "/": "divisor", "//": "divisor", "**": "exponent", "+": "offset", "-": "offset"}
_METHODS = {"reshape": "size", "transpose": "axis", "swapaxes": "axis", "clip": "bound", "astype": "dtype"}


@dataclass(frozen=True)
class Words:
    """What the numbers in a framework's calls are called where they are arguments."""

    positional: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of positional arguments, by function."""
    keywords: Mapping[str, str] = field(default_factory=dict)
    """Of keywords that have a shorter name."""
    usual: Mapping[str, int] = field(default_factory=dict)
    """What goes without saying, for a number and for each of several."""

    def of_call(self, function: Expr, place: int) -> str:
        text = called(function)
        named = self.positional.get(text, ())
        return (named[place] if place < len(named) else "") or _METHODS.get(text.rpartition(".")[2], "number")

    def default(self, word: str, value: Number) -> bool:
        """Whether a number is what it is where nobody says otherwise."""
        if isinstance(value, tuple):
            return all(self.default(word, part) for part in value)
        return word in self.usual and self.usual[word] == value


def called(function: Expr) -> str:
    """`lax.dot` for that function, `reshape` for a method."""
    match function:
        case Name():
            return function._text
        case Attr(_obj=Name() | Attr()) if base := called(function._obj):
            return f"{base}.{function._name}"
    return getattr(function, "_name", "")


def number_of(expr: Expr) -> Number | None:
    """The number that an expression is, or the tuple of numbers; None for anything else."""
    if isinstance(expr, Literal):
        return expr._value if type(expr._value) in (int, float) else None
    if isinstance(expr, Sequence) and expr._brackets == "()" and expr._items:
        parts = [part for item in expr._items if (part := number_of(forced(item))) is not None]
        return tuple(parts) if len(parts) == len(expr._items) else None
    return None


def rebuilt(expr: Expr, change: Change, words: Words, word: str = "number") -> Expr:
    """The same expression with its numbers changed, which are met in the order of the source."""
    expr = forced(expr)
    if (value := number_of(expr)) is not None:
        return change(word, value, expr)

    def part(inner: Expr, named: str = word) -> Expr:
        return rebuilt(inner, change, words, named)

    match expr:
        case Attr():
            return Attr(part(expr._obj), expr._name)
        case Call():
            function = part(expr._fn)
            given = tuple(part(x, words.of_call(expr._fn, i)) for i, x in enumerate(expr._args))
            return Call(function, given, {k: part(x, words.keywords.get(k, k)) for k, x in expr._kwargs.items()})
        case Index():
            return type(expr)(part(expr._obj), tuple(part(item, "index") for item in expr._items))
        case SliceExpr():
            first, last, step = expr._parts
            return SliceExpr(
                (
                    None if first is None else part(first, "start"),
                    None if last is None else part(last, "stop"),
                    None if step is None else part(step, "step"),
                )
            )
        case Binary():
            named = _OPERANDS.get(expr._op, "number")
            return Binary(expr._op, part(expr._left, named), part(expr._right, named))
        case Unary():
            return Unary(expr._op, part(expr._operand))
        case Conditional():
            test = part(expr._test)
            return Conditional(test, part(expr._yes), part(expr._no))
        case Sequence():
            return Sequence(tuple(map(part, expr._items)), expr._brackets)
        case Star():
            return Star(part(expr._operand))
    return expr


def changed(body: list[Statement], change: Callable[[Expr], Expr]) -> list[Statement]:
    """The same statements with other expressions."""
    return [_changed(statement, change) for statement in body]


def _changed(statement: Statement, change: Callable[[Expr], Expr]) -> Statement:
    match statement:
        case Assign() | Do():
            return replace(statement, value=change(statement.value), reads=None)
        case Compound():
            clauses = []
            for word, test, block in statement.clauses:
                tested = None if test is None else change(test)
                clauses.append((word, tested, Block(block.parent, changed(block.body, change))))
            return replace(statement, clauses=clauses)
        case Group():
            return replace(statement, body=changed(statement.body, change))
        case Define():
            body = Block(statement.body.parent, changed(statement.body.body, change))
            return replace(statement, body=body, results=[change(result) for result in statement.results])
        case Keyword():
            return statement
