"""From statements to the lines of a function: what is inlined, what variables are called, how long lines break."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable

from onward.backends.emit.expr import Expr, Ref, Sequence, Var, children, forced, variables
from onward.backends.emit.modules.tracing import Line, marked, origins_of
from onward.backends.emit.printing.language import INLINE_WIDTH, PYTHON, Language
from onward.backends.emit.statements import (
    Assign,
    Block,
    Compound,
    Define,
    Do,
    Group,
    Keyword,
    Statement,
    assigned,
    flat,
    read,
)

INLINE_DEPTH = 4
SHORT_NAMES = ("x", "y", "z", "u", "v", "w")


def count_reads(statements: Iterable[Statement], returned: Iterable[Expr]) -> Counter[Var]:
    reads: Counter[Var] = Counter()
    for statement in statements:
        reads.update(read(statement))
    for expr in returned:
        reads.update(variables(expr))
    return reads


def drop_unread(block: Block, returned: list[Expr]) -> None:
    """Delete assignments nobody reads, last first, so that whole unread chains go."""
    reads = count_reads(block.body, returned)

    def sweep(body: list[Statement]) -> list[Statement]:
        kept: list[Statement] = []
        for statement in reversed(body):
            if isinstance(statement, Assign) and all(t is None or not reads[t] for t in statement.targets):
                for var in variables(statement.value):
                    reads[var] -= 1
                continue
            if isinstance(statement, Compound):
                for i, (word, test, inner) in enumerate(statement.clauses):
                    inner.body = sweep(inner.body)
                    statement.clauses[i] = (word, test, inner)
                if all(word != "while" and not inner.body for word, _, inner in statement.clauses):
                    for var in read(statement):
                        reads[var] -= 1
                    continue
            if isinstance(statement, Group):
                statement.body = sweep(statement.body)
            if isinstance(statement, Define):
                if not reads[statement.name]:
                    for var in read(statement):
                        reads[var] -= 1
                    continue
                statement.body.body = sweep(statement.body.body)
            kept.append(statement)
        kept.reverse()
        return kept

    block.body = sweep(block.body)


def depth(expr: Expr, inlined: dict[Var, Expr]) -> int:
    """How many calls and operators are nested, counting what is inlined."""
    expr = forced(expr)
    if isinstance(expr, Ref):
        return depth(inlined[expr._var], inlined) if expr._var in inlined else 0
    return 1 + max((depth(c, inlined) for c in children(expr)), default=-1)


class FunctionPrinter:
    """Prints one function. `outer` resolves everything that is not a local variable (weights, helpers)."""

    def __init__(
        self,
        outer: Callable[[Expr], str],
        taken: Iterable[str] = (),
        *,
        use_hints: bool = True,
        name_sizes: bool = True,
        language: Language = PYTHON,
    ) -> None:
        self._outer = outer
        self._language = language
        self._name_sizes = name_sizes
        """Whether numbers take the names that the file has for them."""
        self._use_hints = use_hints
        """Whether tensors take the names of the file's outputs; inside a module that is used many times they do not."""
        self._names: dict[Var, str] = {}
        self._inlined: dict[Var, Expr] = {}
        self._origins: dict[Var, str] = {}
        """What each variable that may be inlined comes from."""
        self._taken: set[str] = set(taken)
        self._in_use: Counter[str] = Counter()
        self._remaining: Counter[Var] = Counter()
        self._pinned: set[str] = set()
        self._released: set[Var] = set()
        self._closures: dict[Var, list[str]] = {}
        """The names that a function within reads of the outside, which stay as long as it is used."""
        self._nesting = 0

    def resolve(self, leaf: Expr) -> tuple[str, int] | Expr:
        if isinstance(leaf, Ref):
            var = leaf._var
            return self._inlined[var] if var in self._inlined else (self._names[var], 14)
        return self._outer(leaf), 14

    def text(self, expr: Expr) -> str:
        return self._language.render(expr, self.resolve)

    def argument(self, var: Var, name: str | None = None, *, pinned: bool = False) -> str:
        """Name a parameter of the function; a pinned name is never given to another variable."""
        text = self._unique(name) if name else self._choose(var)
        self._names[var] = text
        self._in_use[text] += 1
        if pinned:
            self._pinned.add(text)
        return text

    def is_free(self, name: str) -> bool:
        """Whether nothing that the function reads is called so."""
        return name not in self._taken and name not in self._pinned and not self._in_use[name]

    def name_of(self, var: Var) -> str:
        return self._names[var]

    def function(self, block: Block, returned: list[Expr]) -> list[str]:
        """The lines of the body, without the return statement, which `text` can print afterwards."""
        block.body = flat(block.body)
        self._remaining = count_reads(block.body, returned)
        self._returned = {v for e in returned for v in variables(e)}
        lines = self._block(block, returned)
        return lines

    def _block(self, block: Block, returned: list[Expr] | None = None) -> list[str]:
        singles = self._inlinable(block, returned or [])
        lines: list[str] = []
        for place, statement in enumerate(block.body):
            if isinstance(statement, Assign) and len(statement.targets) == 1 and statement.targets[0] in singles:
                target = statement.targets[0]
                assert target is not None
                self._inlined[target] = statement.value
                self._origins[target] = statement.origin
                consumer, reader = singles[target]
                if self._fits(consumer, target) and not self._changes(statement.value, block, place + 1, reader):
                    continue
                del self._inlined[target]
            lines += marked(self._statement(statement), [statement.origin, *self.inside(*_direct(statement))])
        return lines

    def returned(self, lines: list[str], results: Iterable[Expr]) -> list[str]:
        """Lines that give these results, with what is inlined in them."""
        return marked(lines, self.inside(*results))

    def inside(self, *exprs: Expr) -> list[str]:
        """The origins of what is inlined in expressions."""
        found, pending = list[str](), [var for expr in exprs for var in variables(expr)]
        while pending:
            var = pending.pop()
            if var in self._inlined:
                found.append(self._origins[var])
                pending += variables(self._inlined[var])
        return found

    def _changes(self, expr: Expr, block: Block, start: int, end: int) -> bool:
        """Whether any statement of a block from `start` to `end` assigns a variable that the expression reads."""
        fixed, queue = set(), list(variables(expr))
        while queue:
            var = queue.pop()
            if var in self._inlined:
                queue += variables(self._inlined[var])
            elif var.fixed:
                fixed.add(var)
        return bool(fixed) and any(not fixed.isdisjoint(assigned(s)) for s in block.body[start:end])

    def _inlinable(self, block: Block, returned: list[Expr]) -> dict[Var | None, tuple[Expr, int]]:
        """Variables read exactly once, by a later expression of this very block → that expression and its place."""
        consumer: dict[Var | None, tuple[Expr, int]] = {}
        for place, statement in enumerate(block.body):
            direct = [statement.value] if isinstance(statement, Assign | Do) else []
            if isinstance(statement, Compound) and statement.clauses[0][0] != "while":
                test = statement.clauses[0][1]
                direct = [] if test is None else [test]
            for expr in direct:
                for var in variables(expr):
                    consumer[var] = expr, place
        for expr in returned:
            for var in variables(expr):
                consumer[var] = expr, len(block.body)
        reads = self._remaining
        return {v: e for v, e in consumer.items() if v is not None and reads[v] == 1 and not v.fixed}

    def _fits(self, consumer: Expr, target: Var) -> bool:
        value = self._inlined[target]
        if isinstance(consumer, Ref):
            return True
        if not self._language.takes(consumer, target):
            return False
        if target.kind == "host" and depth(value, self._inlined) <= 3:
            return True
        if depth(consumer, self._inlined) > INLINE_DEPTH:
            return False
        width = sum(len(part) for part in self._rough(consumer))
        return width <= INLINE_WIDTH

    def _rough(self, expr: Expr) -> Iterable[str]:
        def resolve(leaf: Expr) -> tuple[str, int] | Expr:
            if isinstance(leaf, Ref):
                var = leaf._var
                return self._inlined[var] if var in self._inlined else (self._names.get(var, "xx"), 14)
            return self._outer(leaf), 14

        yield self._language.render(expr, resolve)

    def _statement(self, statement: Statement) -> list[str]:
        match statement:
            case Assign():
                text = self.text(statement.value)
                self._consume(statement.value)
                several, unread = len(statement.targets) > 1, self._language.unread
                left = [unread if several and self._is_unread(t) else self._name(t) for t in statement.targets]
                is_display = isinstance(statement.value, Sequence)
                return self._language.assignment(left, text, rest=statement.rest, is_display=is_display)
            case Do():
                text = self.text(statement.value)
                self._consume(statement.value)
                return self._language.effect(text)
            case Keyword():
                return self._language.keyword(statement.word)
            case Compound():
                return self._compound(statement)
            case Define():
                return self._define(statement)
            case Group():
                raise TypeError("groups are flattened before they are printed")

    def _compound(self, statement: Compound) -> list[str]:
        lines: list[str] = []
        bodies: list[list[str]] = []
        target = statement.target
        if target is not None and not self._remaining[target] and self._language.unused_item:
            self._names[target] = self._language.unused_item
        for var in assigned(statement):
            if var.fixed and var not in self._names:
                self._name(var)
        inside = {v for s in statement.clauses for b in s[2].body for v in assigned(b)}
        outer_reads = Counter(v for v in read(statement) if v not in inside)
        # What a loop body reads of the outside must keep its name until the loop ends.
        held = [self._names[v] for v in outer_reads if v in self._names and v not in self._inlined]
        for name in held:
            self._in_use[name] += 1
        self._nesting += 1
        for word, test, block in statement.clauses:
            names = list(map(self._name, [target, *statement.others])) if word == "for" else []
            header = self._language.header(word, names, "" if test is None else self.text(test))
            body = self._block(block) or self._language.nothing
            bodies.append(body)
            lines += [header, *("    " + line for line in body)]
        self._nesting -= 1
        for name in held:
            self._in_use[name] -= 1
        if not self._nesting:
            for var in inside:
                if var.fixed and not self._remaining[var]:
                    self._release(var)
        lines += self._language.ending
        if shorter := self._language.shorter(lines, bodies):
            origins = [statement.origin, *(origin for line in lines for origin in origins_of(line))]
            return [Line(line, origins) for line in shorter]
        return lines

    def _define(self, statement: Define) -> list[str]:
        """A function within; what it reads of the outside keeps its name until the function is used."""
        name = self._name(statement.name)
        held = self._closures[statement.name] = [self._names[v] for v in set(read(statement)) if v in self._names]
        for outer in held:
            self._in_use[outer] += 1
        self._nesting += 1
        parameters = [self.argument(var) for var in statement.parameters]
        lines = self._block(statement.body, statement.results)
        results = [self.text(result) for result in statement.results]
        for result in statement.results:
            self._consume(result)
        self._nesting -= 1
        for var in assigned(statement):
            if var is not statement.name:
                self._release(var)
        body = [*lines, *self.returned(self._language.returning(results), statement.results)]
        return self._language.function(name, parameters, body)

    def _consume(self, expr: Expr) -> None:
        for var in variables(expr):
            if var in self._inlined:
                self._consume(self._inlined[var])
                continue
            self._remaining[var] -= 1
            if not self._remaining[var] and (not var.fixed or not self._nesting):
                self._release(var)

    def _release(self, var: Var) -> None:
        """Nobody reads the variable any more: its name is free."""
        if var in self._names and var not in self._released:
            self._released.add(var)
            self._in_use[self._names[var]] -= 1
            for name in self._closures.pop(var, ()):
                self._in_use[name] -= 1

    def _is_unread(self, var: Var | None) -> bool:
        return var is None or not (var.fixed or self._remaining[var])

    def _name(self, var: Var | None) -> str:
        if var is None:
            return "_"
        if var in self._names:
            return self._names[var]
        name = self._choose(var)
        self._names[var] = name
        self._in_use[name] += 1
        return name

    def _choose(self, var: Var) -> str:
        if var.role and not self._use_hints:
            return self._unique(var.role)
        if var.hint and (self._use_hints or var.kind != "tensor") and (self._name_sizes or var.kind != "host"):
            return self._unique(self._language.name(var.hint))
        if var.kind == "tensor":
            pool: Iterable[str] = itertools.chain(
                SHORT_NAMES, (f"{n}{i}" for i in itertools.count(1) for n in SHORT_NAMES)
            )
            for name in pool:
                if name not in self._taken and name not in self._pinned and not self._in_use[name]:
                    return name
        return self._unique("items" if var.kind == "object" else "n")

    def _unique(self, wish: str) -> str:
        name, n = wish, 1
        while self._in_use[name] or name in self._taken or name in self._pinned:
            n += 1
            name = f"{wish}{'_' if wish[-1].isdigit() else ''}{n}"
        return name


def _direct(statement: Statement) -> list[Expr]:
    """The expressions in the lines of a statement itself."""
    match statement:
        case Assign() | Do():
            return [statement.value]
        case Compound():
            return [test for _, test, _ in statement.clauses if test is not None]
    return []
