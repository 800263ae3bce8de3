"""Prints the module tree as Python classes: equal modules share a class, what differs between them is an argument.

How a class declares its tensors, holds its children and is called is a framework's own: `ClassWriter` is the rest.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from keyword import iskeyword
from typing import Any, ClassVar

from onward.backends.emit.expr import ATOM, Call, Device, Expr, Helper, Literal, Ref, Sequence, Weight, render, walk
from onward.backends.emit.modules.tracing import Makers, marked, together
from onward.backends.emit.names import identifier, singular
from onward.backends.emit.parameters import Parameters, Pieces, Slot, is_width, unused
from onward.backends.emit.patterns import Patterns
from onward.backends.emit.printing.language import PYTHON, wrap
from onward.backends.emit.printing.printer import FunctionPrinter, drop_unread
from onward.backends.emit.statements import Scope, assigned, expressions
from onward.backends.emit.tree import Function, TreeNode
from onward.backends.emit.variants import Variant, variants_by_height
from onward.backends.emit.weights import Array, Tensor


@dataclass
class Plan:
    """A class to be: its `__init__` lines with slots left open, and its call."""

    node: TreeNode
    init: list[Pieces] = field(default_factory=list)
    members: list[str] = field(default_factory=list)
    """What each of these lines gives it: the name of an attribute, '' for a line that gives it all."""
    forward: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)
    """The same call with numbers that have no names: sizes have some in one layer, and none in the next."""
    part: str = ""
    """The child that comes as an argument, since other modules of the class do without it."""

    @property
    def key(self) -> Any:
        return _outline(self.init), tuple(self.unnamed)

    def add(self, attribute: str, line: Pieces) -> None:
        """A line of `__init__`, which gives the module an attribute."""
        for piece in line:
            if isinstance(piece, Slot):
                piece.owner = "" if attribute.isdigit() else attribute
        self.init.append(line)
        self.members.append(attribute)

    @property
    def unnamed(self) -> list[str]:
        return self.plain or self.forward

    def slots(self) -> list[Slot]:
        return [piece for line in self.init for piece in line if isinstance(piece, Slot)]


@dataclass
class ClassWriter:
    """Collects the classes of a model and the helpers they call."""

    root: TreeNode
    class_names: dict[Scope, str] = field(default_factory=dict)
    """Names that the original classes had, by module path."""
    classes: list[str] = field(default_factory=list)
    traced: list[list[str]] = field(default_factory=list)
    """The lines of each class, with what they come from."""
    helpers: set[str] = field(default_factory=set)
    _constructors: dict[Scope, Expr] = field(default_factory=dict)
    _parts: dict[Scope, str] = field(default_factory=dict)
    """Of modules that get a child as an argument: its name."""
    _parameters: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _defaults: dict[str, dict[str, Any]] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=lambda: {"Model"})

    @cached_property
    def patterns(self) -> Patterns:
        return Patterns(self.root, self.window)

    @cached_property
    def _makers(self) -> Makers:
        return Makers(self.root)

    @property
    def taken(self) -> set[str]:
        """Names that stand for something in the generated module."""
        return {*self.reserved, *self.helpers, *self._taken}

    # What a framework decides

    reserved: frozenset[str] = frozenset()
    """Names of the generated module that no variable may hide."""
    call = "__call__"
    """The method that computes."""
    decorators: ClassVar[tuple[str, ...]] = ()
    """What stands above every class."""
    init_call = "super().__init__()"
    """How an `__init__` begins."""
    suffix = "Module"
    """What is added to the name of a class that would be a reserved one."""
    init_arguments: tuple[str, ...] = ()
    """Parameters of every `__init__`."""
    positional: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """What the framework calls the positional arguments of its constructors; shared classes name theirs after these."""
    optional: dict[str, dict[str, int]] = field(default_factory=dict)
    """Arguments of its constructors that may be left out, with what they are then."""
    window = slice(2, None)
    """Which axes of the kernel of a convolution are those of its window."""
    optional_child = ""
    """The line that gives a module a child which is an argument, {} its name; '' where there are no such arguments."""
    child_type = ""
    """The type of such an argument."""
    no_device = ""
    """What a tensor is made on where a function has no tensor among its arguments."""

    def base(self, node: TreeNode) -> str:
        """The class that the class of a node derives from, if any."""
        return ""

    def declare(self, attribute: str, tensor: Tensor) -> Pieces:
        """The line that gives a module a tensor."""
        raise NotImplementedError

    def declare_strings(self, attribute: str, array: Array) -> Pieces:
        """The line that gives a module an array of strings."""
        raise NotImplementedError

    def child(self, attribute: str, child: TreeNode) -> Pieces:
        """The line that gives a module another one."""
        raise NotImplementedError

    def access(self, node: TreeNode, path: Scope) -> str:
        """How code in the class of `node` gets at what stands at `path` below it."""
        raise NotImplementedError

    def annotation(self, kind: str) -> str:
        """The type of a variable."""
        raise NotImplementedError

    def root_extras(self) -> list[str]:
        """Further lines of the whole model's class, after its `__init__`."""
        return []

    # What is the same for all

    def write(self, title: str) -> str:
        """The text of all classes, parts before the whole."""
        levels: dict[int, list[TreeNode]] = defaultdict(list)
        heights(self.root, levels)
        variants = self._variants(levels)
        written: set[Scope] = set()
        for height in sorted(levels):
            groups: dict[Any, list[Plan]] = defaultdict(list)
            for node in levels[height]:
                if self.is_class(node) and node.path not in written:
                    plan = self.plan(node)
                    groups[(node is self.root, plan.key)].append(plan)
            for variant in variants[height]:
                if variant.node.path not in written and self._join(variant, groups):
                    written.add(variant.node.path)
            for plans in groups.values():
                if kept := [plan for plan in plans if plan.part or plan.node.path not in written]:
                    self._class(kept, title)
        return "\n\n\n".join(self.classes)

    def _variants(self, levels: dict[int, list[TreeNode]]) -> dict[int, list[Variant]]:
        """What modules would be without one of their children, by the height that they would have then."""
        nodes = self.root.walk() if self.optional_child else ()
        names = {node.path: self.patterns.name(node) for node in nodes if self.is_class(node)}
        return variants_by_height(self.root, levels, names)

    def _join(self, variant: Variant, groups: dict[Any, list[Plan]]) -> bool:
        """Put a module into the class of those that do without one of its children, if that is a known pattern too."""
        rest = self.plan(variant.node, leave_out=variant.part)
        rest.plain = self._forward(variant.node, variant.rest, name_sizes=False)
        plans = groups.get((False, rest.key), [])
        if not plans or not self.patterns.name(plans[0].node) or {p.part for p in plans} - {"", variant.part}:
            return False
        if variant.part in self.reserved or is_width(variant.part):
            return False
        if any(variant.part.endswith(slot.word) for slot in rest.slots()):
            return False  # its name may be that of a number
        place = [*variant.node.tensors, *variant.node.arrays, *variant.node.children].index(variant.part)
        plan = replace(rest, part=variant.part, forward=self._forward(variant.node, variant.whole))
        plan.init.insert(place, [self.optional_child.format(variant.part)])
        plan.members.insert(place, variant.part)
        order = {node.path: i for i, node in enumerate(self.root.walk())}
        plans[:] = sorted([*plans, plan], key=lambda p: order[p.node.path])
        return True

    def is_class(self, node: TreeNode) -> bool:
        """Whether a node has a class of its own."""
        return node.leaf is None and not node.is_container

    def plan(self, node: TreeNode, leave_out: str = "") -> Plan:
        """The class of a module; `leave_out` is a child that it does without."""
        plan = Plan(node)
        for attribute, tensor in node.tensors.items():
            plan.add(attribute, self.declare(attribute, tensor))
        for attribute, array in node.arrays.items():
            plan.add(attribute, self.declare_strings(attribute, array))
        for attribute, child in node.children.items():
            if attribute != leave_out:
                plan.add(attribute, self.child(attribute, child))
        if node.forward is not None:
            plan.forward = self._forward(node, node.forward)
            if node is not self.root and _has_named_sizes(node.forward):
                plan.plain = self._forward(node, node.forward, name_sizes=False)
        return plan

    def _class(self, plans: list[Plan], title: str) -> None:
        first = next((plan for plan in plans if plan.part), plans[0])
        is_root = first.node is self.root
        name = "Model" if is_root else self._class_name(plans[0].node)
        parameters = Parameters([p.slots() for p in plans])
        lines = self._init_lines(first, parameters.texts(), plans)
        doc = f"{title}, converted from ONNX." if is_root else places([p.node.path for p in plans])
        options = [f"{first.part}: {self.child_type} | None = None"] if first.part else []
        signature = ", ".join(["self", *self.init_arguments, *(str(p) for _, p in parameters.ordered), *options])
        body = [f'"""{doc}"""', "", *wrap(f"def __init__({signature}) -> None:"), *("    " + line for line in lines)]
        if is_root:
            body += self.root_extras()
        if first.forward:
            body += ["", *together(first.forward, [plan.forward for plan in plans if plan is not first])]
        base = self.base(first.node)
        header = f"class {name}({base}):" if base else f"class {name}:"
        self.traced.append([*self.decorators, header, *("    " + b if b else "" for b in body)])
        self.classes.append("\n".join(self.traced[-1]))
        for i, plan in enumerate(plans):
            self._constructors[plan.node.path] = parameters.call(name, i)
            if plan.part:
                self._parts[plan.node.path] = plan.part
        self._parameters[name] = tuple(p.name for _, p in parameters.ordered)
        self._defaults[name] = {p.name: p.default for _, p in parameters.ordered if p.default is not None}

    def _init_lines(self, plan: Plan, texts: list[str], plans: list[Plan]) -> list[str]:
        """The lines of `__init__` of a class of several modules, as one of them has it."""
        lines = [] if plan.node.sequential else [self.init_call]
        remaining = iter(texts)
        for pieces, member in zip(plan.init, plan.members, strict=True):
            text = ""
            for piece in pieces:
                fresh = next(remaining) if isinstance(piece, Slot) else piece
                text += fresh.removeprefix(", ") if text.endswith("(") else fresh
            lines += self._traced(wrap(text), member, [other.node for other in plans])
        return lines

    def _traced(self, lines: list[str], member: str, nodes: list[TreeNode]) -> list[str]:
        """The lines that give modules a member, or all: a line for each of several, if there is one."""
        origins: list[str] = []
        inner: list[list[str]] = [[] for _ in lines[1:-1]]
        for node in nodes:
            held = node.children.get(member) if member else node
            path = (*node.path, member) if member else node.path
            origins += self._makers.of(path, held, {} if held is node else self._constructors)
            children = [] if held is None or path in self._constructors else list(held.children.values())
            if held is not None and len(children) == len(inner):
                for own, child in zip(inner, children, strict=True):
                    own += self._makers.of(child.path, child, self._constructors)
        if not any(inner):
            return marked(lines, origins)
        return [
            lines[0],
            *(line for own, one in zip(inner, lines[1:-1], strict=True) for line in marked([one], own)),
            lines[-1],
        ]

    def _class_name(self, node: TreeNode) -> str:
        wish = self.class_names.get(node.path) or self.patterns.name(node) or class_name(node.path)
        if wish in self.reserved or wish in self.helpers:
            wish += self.suffix
        name = unused([wish], self._taken)
        self._taken.add(name)
        return name

    def slotted(self, constructor: Expr, *before: str) -> Pieces:
        """A constructor call with its integer arguments as slots; what is nested deeper is text."""
        if not isinstance(constructor, Call):
            return [render(constructor, no_leaf)]
        function = render(constructor._fn, self._helper)
        names = self._parameters.get(function) or self.positional.get(function, ())
        defaults = self._defaults.get(function) or self.optional.get(function, {})
        items: list[Pieces] = [[text] for text in before]
        for i, argument in enumerate(constructor._args):
            items.append([_slot(names[i] if i < len(names) else "size", argument)])
        given = dict(constructor._kwargs)
        rest = [
            _optional(name, given.pop(name, Literal(default)), default)
            for name, default in defaults.items()
            if name not in names[: len(constructor._args)]
        ]
        required = [key for key in given if key in names]
        items += [[f"{key}=", _slot(key, given.pop(key))] for key in required]
        last = [piece for key, argument in given.items() for piece in (f", {key}=", _slot(key, argument))]
        pieces: Pieces = [f"{function}(", *joined(items), *rest, *last, ")"]
        slots = [piece for piece in pieces if isinstance(piece, Slot)]
        for slot in slots:
            slot.call = slots
        return pieces

    def _helper(self, leaf: Expr) -> tuple[str, int]:
        """The name of a helper that is a class."""
        if not isinstance(leaf, Helper):
            return no_leaf(leaf)
        self.helpers.add(leaf._name)
        return leaf._name, ATOM

    def _forward(self, node: TreeNode, function: Function, *, name_sizes: bool = True) -> list[str]:
        drop_unread(function.block, function.results)
        is_root = node is self.root
        device: list[str] = []

        def outer(leaf: Expr) -> str:
            match leaf:
                case Weight():
                    if leaf._path in function.foreign:
                        return printer.name_of(function.foreign[leaf._path])
                    return self.access(node, leaf._path)
                case Helper():
                    self.helpers.add(leaf._name)
                    return leaf._name
                case Device():
                    return device[0] if device else self.no_device
            raise TypeError(type(leaf).__name__)

        taken = self.reserved | helpers_in(function)
        printer = FunctionPrinter(outer, taken, use_hints=is_root, name_sizes=name_sizes)
        arguments = []
        for i, var in enumerate(function.arguments):
            name = printer.argument(
                var, "x" if i == 0 and not is_root and var.kind == "tensor" else None, pinned=is_root
            )
            if var.kind == "tensor" and not device:
                device.append(f"{name}.device")
            arguments.append(self.argument(name, var.kind, is_root))
        lines = printer.function(function.block, function.results)
        results = [printer.text(r) for r in function.results]
        returns = "Any"
        if len(function.results) == 1 and is_tensor(function.results[0]):
            returns = self.annotation("tensor")
        header = wrap(f"def {self.call}({', '.join(['self', *arguments])}) -> {returns}:")
        lines += printer.returned(PYTHON.returning(results), function.results)
        return [*header, *("    " + line for line in lines)]

    def argument(self, name: str, kind: str, is_root: bool) -> str:
        """A parameter of a call, with its type."""
        return f"{name}: {self.annotation(kind)}"


def _outline(lines: list[Pieces]) -> tuple[tuple[str | None, ...], ...]:
    """Lines of `__init__` with their numbers left out."""
    return tuple(tuple(p if isinstance(p, str) else None for p in line) for line in lines)


def class_name(path: Scope) -> str:
    """`('layer1', '0')` → Layer1Block, `('blocks', '0')` → Block."""
    words = [p for p in path if not p.isdigit()]
    base = identifier(words[-1] if words else "block")
    member = singular(base) if path and path[-1].isdigit() else base
    camel = "".join(w[:1].upper() + w[1:] for w in member.split("_") if w) or "Part"
    if path and path[-1].isdigit() and member == base:
        return camel + "Block"
    return camel + "Part" if iskeyword(camel) else camel


def joined(items: list[Pieces]) -> Pieces:
    out: Pieces = []
    for i, item in enumerate(items):
        out += [", "] if i else []
        out += item
    return out


def plain_text(pieces: Pieces) -> str:
    return "".join(p if isinstance(p, str) else p.prefix + repr(p.value) for p in pieces)


def no_leaf(leaf: Expr) -> tuple[str, int]:
    raise TypeError(f"{type(leaf).__name__} in a constructor")


def heights(node: TreeNode, levels: dict[int, list[TreeNode]]) -> int:
    """Sort modules by how many there are below one another in them."""
    height = 1 + max((heights(c, levels) for c in node.children.values()), default=0)
    levels[height].append(node)
    return height


def _has_named_sizes(function: Function) -> bool:
    made = (var for statement in function.block.body for var in assigned(statement))
    return any(var.kind == "host" and var.hint not in ("", "n") for var in (*function.arguments, *made))


def helpers_in(function: Function) -> set[str]:
    """Names of helpers used in the function, so that no variable hides one."""
    return {
        leaf._name
        for statement in function.block.body
        for expr in expressions(statement)
        for leaf in walk(expr)
        if isinstance(leaf, Helper)
    }


def _slot(word: str, argument: Expr) -> str | Slot:
    value = _numbers(argument)
    return render(argument, no_leaf) if value is None else Slot(re.sub(r"\W", "", word), value)


def _optional(word: str, argument: Expr, default: int | tuple[int, ...]) -> str | Slot:
    value = _numbers(argument)
    if value is None:
        return f", {word}={render(argument, no_leaf)}"
    return Slot(word, value, prefix=f", {word}=", default=default)


def _numbers(argument: Expr) -> int | tuple[int, ...] | None:
    """An integer, or a tuple of some; None for anything else."""
    if isinstance(argument, Literal):
        return argument._value if type(argument._value) is int else None
    if isinstance(argument, Sequence) and argument._brackets == "()" and argument._items:
        items = [i._value for i in argument._items if isinstance(i, Literal) and type(i._value) is int]
        return tuple(items) if len(items) == len(argument._items) else None
    return None


def places(paths: list[Scope]) -> str:
    """Where instances of a class stand, for its docstring."""
    names = [".".join(p) for p in paths]
    if len(names) <= 2:
        return " and ".join(names) + "."
    return f"{names[0]}, {names[1]}, … {names[-1]}: {len(names)} in all."


def is_tensor(expr: Expr) -> bool:
    return not isinstance(expr, Ref) or expr._var.kind == "tensor"
