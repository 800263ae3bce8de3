"""What a function does, as text in which its variables are numbered: functions with one text are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from onward.backends.emit.expr import ATOM, Expr, Helper, Ref, Var, Weight, render
from onward.backends.emit.statements import Assign, Block, Compound, Define, Do, Group, Keyword, Scope, Statement
from onward.backends.emit.tree import Function


def canonical(function: Function, access: Callable[[Scope], str]) -> str:
    """What a function does; `access` says what stands at a path of the tree of tensors."""
    return "\n".join(_Canonical(function, access).lines())


class _Canonical:
    def __init__(self, function: Function, access: Callable[[Scope], str]) -> None:
        self.function = function
        self.access = access
        self.numbers: dict[Var, int] = {}
        self.count = 0

    def lines(self) -> Iterator[str]:
        yield ", ".join(map(self.name, self.function.arguments))
        yield from self.block(self.function.block)
        yield "return " + ", ".join(map(self.text, self.function.results))

    def name(self, var: Var | None) -> str:
        if var is None:
            return "_"
        if var not in self.numbers:
            self.numbers[var] = self.count = self.count + 1
        return f"{var.kind}{self.numbers[var]}"

    def text(self, expr: Expr) -> str:
        return render(expr, self.leaf)

    def leaf(self, leaf: Expr) -> tuple[str, int]:
        match leaf:
            case Ref():
                return self.name(leaf._var), ATOM
            case Weight():
                outside = self.function.foreign.get(leaf._path)
                return self.access(leaf._path) if outside is None else self.name(outside), ATOM
            case Helper():
                return f"ops.{leaf._name}", ATOM
        return type(leaf).__name__, ATOM

    def block(self, block: Block) -> Iterator[str]:
        for statement in block.body:
            yield from self.statement(statement)

    def statement(self, statement: Statement) -> Iterator[str]:
        match statement:
            case Assign(targets=[Var() as same], value=Ref(_var=var)) if not same.fixed:
                self.name(var)
                self.numbers[same] = self.numbers[var]  # another name of it
            case Assign():
                value = self.text(statement.value)
                star = "*" if statement.rest else ""
                yield f"{star}{', '.join(map(self.name, statement.targets))} = {value}"
            case Do():
                yield self.text(statement.value)
            case Keyword():
                yield statement.word
            case Compound():
                for word, test, inner in statement.clauses:
                    targets = ", ".join(map(self.name, [statement.target, *statement.others]))
                    yield f"{word} {targets} in {'' if test is None else self.text(test)}:"
                    yield from (f" {line}" for line in self.block(inner))
            case Group():
                yield from self.block(Block(None, statement.body))
            case Define():
                yield f"def {self.name(statement.name)}({', '.join(map(self.name, statement.parameters))}):"
                yield from (f" {line}" for line in self.block(statement.body))
                yield " return " + ", ".join(map(self.text, statement.results))
