"""The statements of a generated function body, before they have names or text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from onward.backends.emit.expr import Expr, Var, variables

Scope = tuple[str, ...]
"""A module path such as ('layer1', '0', 'conv1'). A statement's is None where the file does not tell."""


@dataclass
class Block:
    """Statements that run one after the other."""

    parent: Block | None = None
    body: list[Statement] = field(default_factory=list)


@dataclass
class Assign:
    """`a, b = value`; a target that nobody reads is None."""

    targets: list[Var | None]
    value: Expr
    scope: Scope | None = None
    origin: str = ""
    reads: tuple[Var, ...] | None = field(default=None, repr=False, compare=False)
    """What `read` found, kept because it is asked for often."""
    rest: bool = False
    """Whether the last target is a list of all that is left: `a, *b = value`."""


@dataclass
class Do:
    """An expression for its effect, such as `outputs.append(y)`."""

    value: Expr
    scope: Scope | None = None
    origin: str = ""
    reads: tuple[Var, ...] | None = field(default=None, repr=False, compare=False)


@dataclass
class Keyword:
    """`break`, `pass` or `return`."""

    word: str
    scope: Scope | None = None
    origin: str = ""


@dataclass
class Compound:
    """`if`, `else`, `for` or `while` with their blocks, e.g. [('if', test, then), ('else', None, other)].

    A `for` binds `target` to each item of its expression.
    """

    clauses: list[tuple[str, Expr | None, Block]]
    target: Var | None = None
    scope: Scope | None = None
    origin: str = ""
    others: list[Var] = field(default_factory=list)
    """What else a `for` binds, where its items are tuples."""


@dataclass
class Group:
    """Statements that stay together in one function, such as a loop and the assignments that start its state."""

    body: list[Statement]
    scope: Scope | None = None
    origin: str = ""


@dataclass
class Define:
    """A function inside the function, such as the body of a loop that is handed to the framework.

    It sees the variables around it, and is used before any of them changes.
    """

    name: Var
    parameters: list[Var]
    body: Block
    results: list[Expr]
    scope: Scope | None = None
    origin: str = ""


Statement = Assign | Do | Keyword | Compound | Group | Define


def flat(body: list[Statement]) -> list[Statement]:
    """The statements with those of groups in their place, at every depth."""
    out: list[Statement] = []
    for statement in body:
        if isinstance(statement, Group):
            out += flat(statement.body)
            continue
        if isinstance(statement, Compound):
            for _, _, block in statement.clauses:
                block.body = flat(block.body)
        if isinstance(statement, Define):
            statement.body.body = flat(statement.body.body)
        out.append(statement)
    return out


def expressions(statement: Statement) -> Iterator[Expr]:
    """The expressions of a statement, those of nested blocks included."""
    match statement:
        case Assign() | Do():
            yield statement.value
        case Compound():
            for _, test, block in statement.clauses:
                if test is not None:
                    yield test
                for inner in block.body:
                    yield from expressions(inner)
        case Group():
            for inner in statement.body:
                yield from expressions(inner)
        case Define():
            for inner in statement.body.body:
                yield from expressions(inner)
            yield from statement.results


def assigned(statement: Statement) -> Iterator[Var]:
    """The variables a statement assigns, those of nested blocks included."""
    match statement:
        case Assign():
            yield from (t for t in statement.targets if t is not None)
        case Compound():
            if statement.target is not None:
                yield statement.target
            yield from statement.others
            for _, _, block in statement.clauses:
                for inner in block.body:
                    yield from assigned(inner)
        case Group():
            for inner in statement.body:
                yield from assigned(inner)
        case Define():
            yield statement.name
            yield from statement.parameters
            for inner in statement.body.body:
                yield from assigned(inner)


def read(statement: Statement) -> Iterable[Var]:
    """The variables a statement reads, once per mention."""
    if isinstance(statement, Assign | Do):
        if statement.reads is None:
            statement.reads = tuple(variables(statement.value))
        return statement.reads
    return [var for expr in expressions(statement) for var in variables(expr)]
