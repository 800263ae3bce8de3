"""Which lines of generated source come from which node of the user's file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from onward.backends.emit.expr import Weight, walk
from onward.backends.emit.statements import Compound, Define, Group, Scope, Statement, expressions
from onward.backends.emit.tree import TreeNode


class Line(str):
    """A line of source that knows what it comes from; it is equal to its text, and stays so when it is indented."""

    origins: tuple[str, ...]

    def __new__(cls, text: str, origins: Iterable[str] = ()) -> Line:
        made = super().__new__(cls, text)
        made.origins = tuple(dict.fromkeys(filter(None, origins)))
        return made

    def __radd__(self, before: str) -> Line:
        return Line(before + str(self), self.origins)


def origins_of(line: str) -> tuple[str, ...]:
    return line.origins if isinstance(line, Line) else ()


def marked(lines: Iterable[str], origins: Iterable[str]) -> list[str]:
    """The lines, of which those that do not know yet what they come from come from these."""
    known = tuple(origins)
    return [line if isinstance(line, Line) else Line(line, known) for line in lines]


def together(lines: Sequence[str], others: Iterable[Sequence[str]]) -> list[str]:
    """Lines that stand for others as well: for those that are as many, and so are the same statements."""
    found = [list(origins_of(line)) for line in lines]
    for other in others:
        if len(other) == len(lines):
            for origins, line in zip(found, other, strict=True):
                origins += origins_of(line)
    return [Line(line, origins) for line, origins in zip(lines, found, strict=True)]


def located(pieces: Iterable[Sequence[str]], text: str) -> dict[str, list[int]]:
    """By origin: the lines of a text, counted from 1, of which the pieces are parts."""
    found: dict[str, list[int]] = {}
    for piece in pieces:
        start = text.find("\n".join(piece))
        if start < 0:
            continue
        first = text.count("\n", 0, start) + 1
        for number, line in enumerate(piece, first):
            for origin in origins_of(line):
                found.setdefault(origin, []).append(number)
    return {origin: sorted(set(lines)) for origin, lines in found.items()}


def mates(bodies: Sequence[Sequence[Statement]]) -> dict[str, list[str]]:
    """For each origin in the first of several bodies that are equal but for it: those that have its place in all."""
    first, *others = (list(map(_origin, _every(body))) for body in bodies)
    found: dict[str, list[str]] = {origin: [origin] for origin in first}
    for other in others:
        if len(other) == len(first):
            for origin, mate in zip(first, other, strict=True):
                found[origin].append(mate)
    return found


def _origin(statement: Statement) -> str:
    return statement.origin


def _every(body: Iterable[Statement]) -> Iterator[Statement]:
    """The statements, and those inside them."""
    for statement in body:
        yield statement
        match statement:
            case Compound():
                for _, _, block in statement.clauses:
                    yield from _every(block.body)
            case Define():
                yield from _every(statement.body.body)
            case Group():
                yield from _every(statement.body)


class Makers:
    """What the members of a module stand for: a line that makes a convolution comes from the nodes that it computes."""

    def __init__(self, root: TreeNode) -> None:
        self._users: dict[Scope, dict[str, None]] = {}
        for node in root.walk():
            if node.forward is not None:
                for statement in node.forward.block.body:
                    self._note(statement)

    def _note(self, statement: Statement) -> None:
        if statement.origin:
            for expr in expressions(statement):
                for leaf in walk(expr):
                    if isinstance(leaf, Weight):
                        self._users.setdefault(leaf._path, {})[statement.origin] = None

    def of(self, path: Scope, node: TreeNode | None, classes: Mapping[Scope, object]) -> list[str]:
        """The origins of what stands at a path: a tensor, or a module, without those that have a class of their own."""
        found = list(self._users.get(path, ()))
        if node is None or path in classes:
            return found if node is None else []
        if node.forward is not None:
            found += [statement.origin for statement in node.forward.block.body]
        for name in node.tensors:
            found += self._users.get((*path, name), ())
        for child in node.children.values():
            found += self.of(child.path, child, classes)
        return list(dict.fromkeys(found))
