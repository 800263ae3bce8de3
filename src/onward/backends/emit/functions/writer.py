"""Prints the module tree as functions of a tree of tensors: equal modules share a function.

`layer1.0` is `residual_block(p["layer1"][0], x)`. Numbers by which modules of one function differ are its keywords. A
module that stands alone and is a single line is written where it is called. What is a framework's own, such as types
and the words for numbers, is said by those who derive from `FunctionWriter`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from onward.backends.emit.classes import class_name, heights, is_tensor, places
from onward.backends.emit.expr import (
    Binary,
    Call,
    Expr,
    Helper,
    Name,
    Ref,
    Star,
    Var,
    Weight,
    lift,
    render,
)
from onward.backends.emit.expr import Sequence as Display
from onward.backends.emit.functions.canonical import canonical
from onward.backends.emit.functions.numbers import Number, Words, changed, rebuilt
from onward.backends.emit.functions.printed import Keyword, Printed, leaf, literal, type_of
from onward.backends.emit.modules.loops import handed_on, loops
from onward.backends.emit.modules.tracing import mates
from onward.backends.emit.parameters import unused
from onward.backends.emit.patterns import Patterns
from onward.backends.emit.printing.language import PYTHON, Language, wrap
from onward.backends.emit.printing.printer import FunctionPrinter, drop_unread
from onward.backends.emit.statements import Assign, Block, Compound, Scope, Statement, assigned
from onward.backends.emit.tree import Function, TreeNode
from onward.backends.emit.variants import Variant, variants_by_height

MOST_NUMBERS = 4
"""Blocks that differ by more numbers than these are better written apart."""
FEW = 8
"""Results of a function whose types are written one by one."""
OPS = "ops"
"""The module of helpers: a function of the model may have the name of one."""
OPEN = Name("?")
"""Stands for a number by which blocks may differ."""


@dataclass
class Part:
    """What a module does with one of its children, which other modules of its function lack."""

    name: str
    result: Var
    """What the child gives; in modules without it, what it would be given."""
    body: list[Statement]
    numbers: list[tuple[str, Number]]
    text: str


@dataclass
class Plan:
    """A function to be: of a module, with its calls written out."""

    node: TreeNode
    function: Function
    numbers: list[tuple[str, Number]]
    """Every number in it, with what it may be called."""
    text: str
    """What it does, whatever its variables are called and its numbers are."""
    part: Part | None = None


@dataclass(frozen=True)
class Called:
    """How a module is called: its function, and the numbers that this one is given."""

    name: str
    numbers: dict[str, Number]


@dataclass
class FunctionWriter:
    """Collects the functions of a model and the helpers they call."""

    root: TreeNode
    paths: Iterable[Scope]
    """Where the tensors of the tree are."""
    class_names: dict[Scope, str] = field(default_factory=dict)
    """Names that the original classes had, by module path."""
    functions: list[str] = field(default_factory=list)
    traced: list[list[str]] = field(default_factory=list)
    """The lines of each function, with what they come from."""
    helpers: set[str] = field(default_factory=set)
    tables: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    """Arrays of strings, which no weights file holds: constants of the module."""
    _called: dict[Scope, Called] = field(default_factory=dict)
    _inlined: dict[Scope, Function] = field(default_factory=dict)
    _keywords: dict[str, dict[str, Keyword]] = field(default_factory=dict)
    """The keywords of each function."""
    _names: dict[Scope, str] = field(default_factory=dict)
    """Of tables."""

    # What a framework decides

    language: Language = PYTHON
    helpers_at = OPS
    """What stands before the name of a helper."""
    in_loops = True
    """Whether runs of equal blocks are loops over the list of their tensors."""
    reserved: frozenset[str] = frozenset()
    """Names of the generated module that nothing else may have."""
    words: Words = field(default_factory=Words)
    tree_type = "Any"
    """The type of a tree of tensors."""
    own = "p"
    """What a function calls the tensors of its module."""
    whole = "p"
    """What the function of the whole model calls all tensors."""

    def annotation(self, kind: str) -> str:
        """The type of a variable."""
        raise NotImplementedError

    def header(self, arguments: list[str], returns: str) -> tuple[str, list[str]]:
        """The line that begins the function of the whole model, and the first lines in it."""
        raise NotImplementedError

    def text_of(self, made: Printed, printer: FunctionPrinter) -> list[str]:
        """The lines of a function: what it is called with, what it says about itself, what it does and gives."""
        given = self.language.returning([printer.text(result) for result in made.results])
        lines = [*made.lines, *made.traced(printer.returned(given, made.results))]
        arguments = [f"{name}: {self.annotation(kind)}" for name, kind in made.arguments]
        returns = self._returns(made.results)
        if not made.name:
            header, first = self.header(arguments, returns)
        else:
            options = ["*", *map(str, made.keywords)] if made.keywords else []
            takes = ", ".join([f"{self.own}: {self.tree_type}", *arguments, *options])
            header, first = f"def {made.name}({takes}) -> {returns}:", []
        body = [f'"""{made.about}"""', *first, *lines]
        return [*wrap(header), *("    " + line for line in body)]

    # What is the same for all

    def __post_init__(self) -> None:
        self.lists = _lists(self.paths)
        patterns = Patterns(self.root, slice(2, None))
        self._wishes = {node.path: patterns.name(node) or patterns.layer(node) for node in self.root.walk()}
        self._taken = {*self.reserved, *self.language.reserved, self.own, OPS}
        for node in self.root.walk():
            for attribute, array in node.arrays.items():
                wish = self.language.name("_".join((*node.path, attribute))).upper()
                name = self._names[(*node.path, attribute)] = unused([wish], self._taken)
                self._taken.add(name)
                self.tables[name] = array

    def write(self, title: str) -> str:
        """The text of all functions, parts before the whole."""
        levels: dict[int, list[TreeNode]] = defaultdict(list)
        heights(self.root, levels)
        variants = variants_by_height(self.root, levels, self._wishes, in_steps=True)
        written: set[Scope] = set()
        for height in sorted(levels):
            groups: dict[tuple[bool, str], list[Plan]] = defaultdict(list)
            for node in levels[height]:
                if node.forward is not None and node.path not in written:
                    plan = self._plan(node, node.forward)
                    groups[node is self.root, plan.text].append(plan)
            for variant in variants[height]:
                if variant.node.path not in written and self._join(variant, groups):
                    written.add(variant.node.path)
            for plans in groups.values():
                kept = [plan for plan in plans if plan.part or plan.node.path not in written]
                for alike in _parted(kept) if kept else ():
                    self._decide(alike, title)
        return "\n\n\n".join(self.functions)

    def _join(self, variant: Variant, groups: dict[tuple[bool, str], list[Plan]]) -> bool:
        """Put a module into the function of those that do without one of its children, if that is a known pattern."""
        node, forward = variant.node, variant.node.forward
        if any(isinstance(s, Assign) and len(s.targets) > 1 for s in variant.whole.block.body):
            return False
        unfolded = [statement for call in variant.calls for statement in self._unfolded(call)]
        body = changed(unfolded, lambda expr: self._call(expr, {}))
        if any(isinstance(s, Assign) and isinstance(s.value, Call) and isinstance(s.value._fn, Weight) for s in body):
            return False  # what it calls has no function yet
        (result,) = variant.calls[-1].targets
        assert result is not None
        part = Part(variant.part, result, body, *self._opened(node, Function(Block(None, body), [], [Ref(result)])))
        plan = self._plan(node, variant.rest)
        plans = groups.get((False, plan.text), [])
        others = [other for other in plans if other.node is not node]
        if not others or not self._wishes[others[0].node.path] or not all(_may_have(other, part) for other in others):
            node.forward = forward
            return False
        plan.part = part
        order = {node.path: i for i, node in enumerate(self.root.walk())}
        plans[:] = sorted([*others, plan], key=lambda p: order[p.node.path])
        return True

    def _plan(self, node: TreeNode, function: Function) -> Plan:
        body = [inner for statement in function.block.body for inner in self._unfolded(statement)]
        if not self.in_loops:
            made = replace(function, block=Block(None, changed(body, lambda expr: self._call(expr, {}))))
            node.forward = made
            drop_unread(made.block, made.results)
            return Plan(node, made, *self._opened(node, made))
        looped = loops(node, body, list(function.arguments), function.results, self._alike)
        for member, path in looped.members.items():
            if member.hint == self._called[path].name:
                member.hint += "_params"
        results = handed_on(looped.body, looped.results)
        body = changed(looped.body, lambda expr: self._call(expr, looped.members))
        made = replace(function, block=Block(None, body), arguments=looped.arguments, results=results)
        node.forward = replace(made, packed=looped.packed)
        drop_unread(made.block, made.results)
        return Plan(node, made, *self._opened(node, made))

    def _opened(self, node: TreeNode, function: Function) -> tuple[list[tuple[str, Number]], str]:
        """The numbers of a function, and what it does whatever they are."""
        numbers: list[tuple[str, Number]] = []

        def leave_open(word: str, value: Number, expr: Expr) -> Expr:
            numbers.append((word, value))
            return OPEN

        opened = self._with_numbers(function, leave_open)
        return numbers, canonical(opened, lambda path: self._access(node, path))

    def _unfolded(self, statement: Statement) -> Iterator[Statement]:
        """A statement; in place of the call of a module without a function, what that module does."""
        value = statement.value if isinstance(statement, Assign) else None
        if not isinstance(statement, Assign) or not isinstance(value, Call) or not isinstance(value._fn, Weight):
            yield statement
            return
        path = value._fn._path
        if path in self._inlined:
            yield from self._inlined[path].block.body
            return
        child = _node_at(self.root, path).forward
        assert child is not None
        foreign = {var: outside for outside, var in child.foreign.items()}
        given: list[Expr] = []
        for var in child.arguments:
            if var in child.packed:
                given.append(Display(tuple(map(Ref, child.packed[var]))))
            else:
                given.append(Weight(foreign[var]) if var in foreign else Ref(var))
        yield replace(statement, value=Call(value._fn, tuple(given), {}), reads=None)

    def _alike(self, one: Scope, other: Scope) -> bool:
        """Whether two members of a list are called by the same line."""
        return one[:-1] in self.lists and one in self._called and self._called[one] == self._called.get(other)

    def _call(self, expr: Expr, members: dict[Var, Scope]) -> Expr:
        """The call of a module as one of its function."""
        if not isinstance(expr, Call):
            return expr
        path = expr._fn._path if isinstance(expr._fn, Weight) else None
        if isinstance(expr._fn, Ref):
            path = members.get(expr._fn._var)
        if path is None or path not in self._called:
            return expr
        found = self._called[path]
        return Call(Name(found.name), (expr._fn, *expr._args), {k: lift(v) for k, v in found.numbers.items()})

    def _with_numbers(self, function: Function, change: Any) -> Function:
        def every(expr: Expr) -> Expr:
            return rebuilt(expr, change, self.words)

        body = changed(function.block.body, every)
        return replace(function, block=Block(None, body), results=[every(result) for result in function.results])

    def _decide(self, plans: list[Plan], title: str) -> None:
        """Write a function, or leave it to be written where it is called."""
        plan = plans[0]
        if plan.node is self.root or len(plans) > 1 or not _is_line(plan.function):
            self._function(plans, title)
        else:
            self._inlined[plan.node.path] = plan.function

    def _function(self, plans: list[Plan], title: str) -> None:
        first = next((plan for plan in plans if plan.part), plans[0])
        node, is_root = first.node, first.node is self.root
        name = "" if is_root else self._name(plans[0].node)
        columns = [tuple(value for _, value in row) for row in zip(*(plan.numbers for plan in plans), strict=True)]
        keywords: dict[tuple[Number, ...], Keyword] = {}
        taken = set(self._taken)
        for (word, _), column in zip(plans[0].numbers, columns, strict=True):
            if _varies(column) and column not in keywords:
                keywords[column] = self._keyword(word, column, taken)
        place = iter(columns)

        def change(word: str, value: Number, expr: Expr) -> Expr:
            column = next(place)
            return Name(keywords[column].name) if column in keywords else expr

        function = self._with_numbers(first.function, change)
        if first.part is not None:
            self._insert(first.part, function, plans, keywords, taken)
        function.block.body = changed(function.block.body, self._without_defaults)
        alike = mates([plan.function.block.body for plan in [first, *plans]])
        paths = [plan.node.path for plan in plans]
        self._print(node, function, name, list(keywords.values()), paths, title, alike)
        self._keywords[name] = {keyword.name: keyword for keyword in keywords.values()}
        for i, plan in enumerate(plans):
            self._called[plan.node.path] = Called(name, {k.name: column[i] for column, k in keywords.items()})

    def _insert(
        self,
        part: Part,
        function: Function,
        plans: list[Plan],
        keywords: dict[tuple[Number, ...], Keyword],
        taken: set[str],
    ) -> None:
        """Let a function do what the modules with a further child do, where there is that child."""
        owners = [plan.part for plan in plans if plan.part]
        rows = iter(list(zip(*(owner.numbers for owner in owners), strict=True)))

        def change(word: str, value: Number, expr: Expr) -> Expr:
            own = tuple(number for _, number in next(rows))
            for column, keyword in keywords.items():
                if keyword.name == word and repr(_of_owners(column, plans)) == repr(own):
                    return Name(keyword.name)
            if not _varies(own):
                return expr
            given = iter(own)
            column = tuple(next(given) if plan.part else own[0] for plan in plans)
            if column not in keywords:
                keywords[column] = replace(self._keyword(f"{part.name}_{word}", column, taken), default=own[0])
            return Name(keywords[column].name)

        body = changed(part.body, lambda expr: rebuilt(expr, change, self.words))
        part.result.fixed, part.result.role = True, part.name
        test = Binary("in", lift(part.name), Name(self.own))
        place = next(i for i, s in enumerate(function.block.body) if part.result in assigned(s))
        function.block.body.insert(place + 1, Compound([("if", test, Block(None, body))]))

    def _keyword(self, word: str, column: tuple[Number, ...], taken: set[str]) -> Keyword:
        name = unused([self.language.name(word)], taken)
        taken.add(name)
        usual = next((value for value in column if self.words.default(word, value)), None)
        types = sorted({type_of(value) for value in column})
        return Keyword(name, types[0] if len(types) == 1 else " | ".join(types), usual)

    def _without_defaults(self, expr: Expr) -> Expr:
        """A call of a function without the keywords that go without saying."""
        if not isinstance(expr, Call) or not isinstance(expr._fn, Name) or expr._fn._text not in self._keywords:
            return expr
        known = self._keywords[expr._fn._text]
        given = {k: v for k, v in expr._kwargs.items() if render(v, leaf) != literal(known[k].default)}
        return Call(expr._fn, expr._args, given)

    def _name(self, node: TreeNode) -> str:
        wish = self.class_names.get(node.path) or self._wishes[node.path] or class_name(node.path)
        name = unused([self.language.name(snake(wish))], self._taken)
        self._taken.add(name)
        return name

    def _print(
        self,
        node: TreeNode,
        function: Function,
        name: str,
        keywords: list[Keyword],
        paths: list[Scope],
        title: str,
        alike: dict[str, list[str]],
    ) -> None:
        is_root = node is self.root

        def outer(leaf: Expr) -> str:
            match leaf:
                case Weight():
                    if leaf._path in function.foreign:
                        return printer.name_of(function.foreign[leaf._path])
                    return self._access(node, leaf._path)
                case Helper():
                    self.helpers.add(leaf._name)
                    return f"{self.helpers_at}.{leaf._name}"
            raise TypeError(type(leaf).__name__)

        taken = {*self._taken, *(keyword.name for keyword in keywords)}
        printer = FunctionPrinter(outer, taken, use_hints=is_root, language=self.language)
        arguments = []
        for i, var in enumerate(function.arguments):
            wish = "x" if i == 0 and not is_root and var.kind == "tensor" else None
            arguments.append((printer.argument(var, wish, pinned=is_root), var.kind))
        about = f"{title}, converted from ONNX." if is_root else places(paths)
        made = Printed(name, about, arguments, keywords, function.results, [], alike)
        made.lines = made.traced(printer.function(function.block, function.results))
        self.traced.append(self.text_of(made, printer))
        self.functions.append("\n".join(self.traced[-1]))

    def _returns(self, results: list[Expr]) -> str:
        tensor = self.annotation("tensor")
        if not results or not all(map(is_tensor, results)) or any(isinstance(r, Star) for r in results):
            return "Any"
        if len(results) > FEW:
            return f"tuple[{tensor}, ...]"
        return tensor if len(results) == 1 else f"tuple[{', '.join([tensor] * len(results))}]"

    def _access(self, node: TreeNode, path: Scope) -> str:
        """How the function of a module gets at what stands at a path."""
        if path in self._names:
            return self._names[path]
        text = self.whole if node is self.root else self.own
        for i in range(len(node.path), len(path)):
            text += f"[{path[i]}]" if path[:i] in self.lists else f'["{path[i]}"]'
        return text


ACRONYMS = {"ReLU": "Relu", "GELU": "Gelu", "SiLU": "Silu", "ELU": "Elu", "MLP": "Mlp", "BN": "Bn", "SE": "Se"}


def snake(name: str) -> str:
    """`ConvBNReLU` → `conv_bn_relu`, `ViTLayer` → `vit_layer`."""
    for acronym, word in ACRONYMS.items():
        name = re.sub(rf"{acronym}(?=[A-Z0-9_]|$)", word, name)
    return re.sub(r"(?<=[A-Za-z0-9])(?=[A-Z][a-z])|(?<=[a-z0-9])(?=[A-Z][A-Z0-9]+(?![a-z]))", "_", name).lower()


def _lists(paths: Iterable[Scope]) -> set[Scope]:
    """Where the names in a tree are 0, 1, 2, …: these are lists."""
    names: dict[Scope, set[str]] = defaultdict(set)
    for path in paths:
        for i, part in enumerate(path):
            names[path[:i]].add(part)
    return {place for place, parts in names.items() if parts == {str(i) for i in range(len(parts))}}


def _parted(plans: list[Plan]) -> list[list[Plan]]:
    """The modules that are one function: those that are equal but for a few numbers, else those that are equal."""
    columns = set(zip(*([value for _, value in plan.numbers] for plan in plans), strict=True))
    if sum(map(_varies, columns)) <= MOST_NUMBERS:
        return [plans]
    equal: dict[Any, list[Plan]] = defaultdict(list)
    for plan in plans:
        equal[tuple(plan.numbers)].append(plan)
    return list(equal.values())


def _is_line(function: Function) -> bool:
    """Whether it only assigns what it gives."""
    body = function.block.body
    if len(body) != 1 or not isinstance(body[0], Assign):
        return False
    given = [result._var if isinstance(result, Ref) else None for result in function.results]
    return given == body[0].targets


def _may_have(plan: Plan, part: Part) -> bool:
    """Whether a module has the very part, or nothing of its name."""
    if plan.part is not None:
        return (plan.part.name, plan.part.text) == (part.name, part.text)
    return part.name not in plan.node.children and part.name not in plan.node.tensors


def _of_owners(column: tuple[Number, ...], plans: list[Plan]) -> tuple[Number, ...]:
    """What a number is in the modules that have a further child."""
    return tuple(value for value, plan in zip(column, plans, strict=True) if plan.part)


def _varies(column: tuple[Number, ...]) -> bool:
    """By what they say in the source: NaN is itself, and 0.0 is neither 0 nor -0.0."""
    return any(repr(value) != repr(column[0]) for value in column)


def _node_at(root: TreeNode, path: Scope) -> TreeNode:
    for part in path:
        root = root.children[part]
    return root
