"""Names for classes that are a known pattern: a bottleneck, squeeze and excitation, a layer of a transformer.

What a module computes is written as a word, a letter for each operation in the order of computation; what only moves
numbers about is left out. A pattern is an expression that fits the whole word. No name in a file has a say in it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from onward.backends.emit.expr import Attr, Binary, Call, Expr, Helper, Literal, Name, Ref, Weight, forced
from onward.backends.emit.statements import Assign, Scope
from onward.backends.emit.tree import TreeNode
from onward.backends.emit.weights import Module


class Step(NamedTuple):
    """An operation: its letter, and what frameworks call it where that is part of a name."""

    letter: str
    name: str = ""


LETTERS = (
    ("D", r"depthwise_?conv\w*"),
    ("K", r"(dynamic|int8)?conv\w*"),
    ("N", r"(sync)?batch_?norm\w*"),
    ("n", r"(layer|rms|group|instance)_?norm\w*"),
    ("L", r"(dynamic|int8|quantized)?linear|dense|gemm"),
    ("A", r"relu|relu6|leaky_?relu|prelu|elu|selu|celu|silu|swish|gelu|hard_?swish|mish|softplus|tanh"),
    ("G", r"sigmoid|hard_?sigmoid"),
    ("S", r"softmax|half_precision_softmax"),
    ("T", r"scaled_dot_product_attention|multiheadattention"),
    ("P", r"adaptive_?avg_?pool\w*|mean|reduce_mean|global\w*pool\w*"),
    ("@", r"matmul"),
    ("", r"reshape|view|flatten|transpose|permute|mt|squeeze|unsqueeze|expand|to|cast|contiguous|chunk|split|identity"),
    ("", r"dropout|expand_dims|unbind|unstack|fake_?quantize"),
)
"""What the functions and modules of frameworks are called, in small letters, and their letter; what is not here is x.

K is a convolution with a window, C one without (1 × 1), D one that keeps channels apart; + is an addition of two values
that were computed, * a product of two.
"""

_KNOWN = [(letter, re.compile(names)) for letter, names in LETTERS]

ATTENTION = "(?:T|@S@)"
FEED_FORWARD = r"(?:M|LAL|LAL\*L|LLA\*L)"
PATTERNS = (
    ("SqueezeExcite", r"E"),
    ("InvertedResidual", r"CN?ADN?A?E?A?CN?A?(CN?)?\+?A?"),
    ("DepthwiseSeparableConv", r"DN?A?E?CN?A?\+?"),
    ("Bottleneck", r"(CN?)?CN?AKN?AE?CN?E?(CN?)?\+A?"),
    ("BasicBlock", r"(CN?)?KN?AKN?E?(CN?)?\+A"),
    ("ResidualBlock", r"(?=.*[CKD].*[CKD])[CKDNAE]+\+A?"),
    ("MLP", FEED_FORWARD),
    ("SelfAttention", rf"L{{1,3}}[+*x]*{ATTENTION}"),
    ("Attention", rf"[LC][LC+*nx]*{ATTENTION}[*x]?(D\+)?[LC]"),
    ("EncoderLayer", rf"n?(t|L{{1,3}}{ATTENTION}L)\+n{FEED_FORWARD}\+n?"),
    ("DecoderLayer", rf"n?t\+nt\+n{FEED_FORWARD}\+n?"),
)
"""Tried in this order. In words of larger modules, t is an attention, M two linear layers, E squeeze and excitation."""

LONGEST = 64
"""Steps of a pattern at most: a longer word is none."""

_SQUEEZE = re.compile(r"P[CL]A[CL]G\*")
_COMPILED = [(name, re.compile(pattern)) for name, pattern in PATTERNS]
_SHORT = {"Attention": "t", "MLP": "M"}
"""Patterns that are one letter in the words of modules around them."""

_NORMS = ("Layer", "RMS", "Group", "Instance")
_LAYERS = {"K": "Conv", "C": "Conv", "D": "DepthwiseConv", "N": "BatchNorm", "L": "Linear", "T": "Attention"}
"""What single layers are called."""

_ACTIVATIONS = {"relu": "ReLU", "relu6": "ReLU6", "silu": "SiLU", "gelu": "GELU", "elu": "ELU", "selu": "SELU"} | {
    "celu": "CELU", "leakyrelu": "LeakyReLU", "prelu": "PReLU", "hardswish": "Hardswish", "swish": "SiLU",
    "mish": "Mish", "softplus": "Softplus", "tanh": "Tanh",
}  # fmt: skip


@dataclass
class Patterns:
    """Finds the patterns in a tree of modules, from the leaves to the root."""

    root: TreeNode
    window: slice
    """Which axes of a kernel are those of its window."""
    _steps: dict[Scope, list[Step]] = field(default_factory=dict)

    def name(self, node: TreeNode) -> str:
        """What a class with this computation is called everywhere; '' for anything else."""
        steps = self._of(node)
        word = "".join(step.letter for step in steps)
        if re.fullmatch("[CKD]N?A?", word) and len(word) > 1:
            return "Conv" + ("BN" if "N" in word else "") + (steps[-1].name if word[-1] == "A" else "")
        return _pattern(word)

    def layer(self, node: TreeNode) -> str:
        """What a module that is a single layer is called; '' for anything else."""
        steps = self._of(node)
        return (steps[0].name or _LAYERS.get(steps[0].letter, "")) if len(steps) == 1 else ""

    def _of(self, node: TreeNode) -> list[Step]:
        """The steps of a module; known patterns in it are one step."""
        if node.path not in self._steps:
            self._steps[node.path] = _squeezed(self._computed(node))
        return self._steps[node.path]

    def _computed(self, node: TreeNode) -> list[Step]:
        if node.leaf is not None:
            return self._leaf(node.leaf)
        if node.sequential:
            return [step for child in node.children.values() for step in self._inside(child)]
        if node.forward is None:
            return [Step("x")]
        steps: list[Step] = []
        for statement in node.forward.block.body:
            steps += self._expression(statement.value) if isinstance(statement, Assign) else [Step("x")]
        return steps

    def _inside(self, node: TreeNode) -> list[Step]:
        steps = self._of(node)
        short = _SHORT.get(_pattern("".join(s.letter for s in steps)))
        return [Step(short)] if short else steps

    def _leaf(self, module: Module) -> list[Step]:
        constructor = module.constructor
        if not isinstance(constructor, Call):
            return [Step("x")]
        step = _step(_called(constructor._fn))
        kernel = module.tensors.get("weight") or module.tensors.get("kernel")
        if step.letter != "K" or kernel is None:
            return [step]
        groups = constructor._kwargs.get("groups")
        is_apart = isinstance(groups, Literal) and groups._value == kernel.shape[0]
        return [Step("D" if is_apart else self._convolution(kernel.shape))]

    def _convolution(self, shape: tuple[int, ...]) -> str:
        return "C" if all(n == 1 for n in shape[self.window]) else "K"

    def _expression(self, expr: Expr) -> list[Step]:
        """The steps of an expression, operands first."""
        expr = forced(expr)
        inner = [step for part in expr._children() for step in self._expression(part)]
        if isinstance(expr, Binary):
            operands = [forced(part) for part in (expr._left, expr._right)]
            if all(self._is_computed(part) for part in operands):
                return [*inner, Step({"+": "+", "*": "*", "@": "@"}.get(expr._op, "x"))]
            is_layer = expr._op == "@" and any(self._is_computed(part) for part in operands)
            return [*inner, Step("L")] if is_layer else inner
        if not isinstance(expr, Call):
            return inner
        if isinstance(expr._fn, Weight):
            node = self._node(expr._fn._path)
            return [*inner, *([Step("x")] if node is None else self._inside(node))]
        step = _gate(expr) or _step(_called(expr._fn))
        if step.letter == "K" and len(expr._args) > 1 and isinstance(kernel := forced(expr._args[1]), Weight):
            owner = self._node(kernel._path[:-1])
            tensor = owner.tensors.get(kernel._path[-1]) if owner is not None else None
            groups = expr._kwargs.get("feature_group_count")
            is_apart = isinstance(groups, Literal) and tensor is not None and groups._value == tensor.shape[0] > 1
            step = Step("K" if tensor is None else "D" if is_apart else self._convolution(tensor.shape))
        return [*inner, step] if step.letter else inner

    def _is_computed(self, expr: Expr) -> bool:
        """Whether a value comes from a computation: no number, no weight."""
        if isinstance(expr, Ref):
            return expr._var.kind == "tensor"
        return not isinstance(expr, Literal | Weight) and any(
            self._is_computed(forced(part)) for part in expr._children() if not isinstance(part, Name | Helper)
        )

    def _node(self, path: Scope) -> TreeNode | None:
        node: TreeNode | None = self.root
        for part in path:
            node = node.children.get(part) if node is not None else None
        return node


def _pattern(word: str) -> str:
    return "" if len(word) > LONGEST else next((name for name, pattern in _COMPILED if pattern.fullmatch(word)), "")


def _squeezed(steps: list[Step]) -> list[Step]:
    """With squeeze and excitation as one step."""
    word = "".join(step.letter for step in steps)
    out, start = [], 0
    for found in _SQUEEZE.finditer(word):
        out += [*steps[start : found.start()], Step("E")]
        start = found.end()
    return [*out, *steps[start:]]


def _gate(call: Call) -> Step | None:
    """A line that is cut at zero and one is a sigmoid by hand."""
    bounds = [forced(argument) for argument in (*call._args[1:], *call._kwargs.values())]
    is_cut = _called(call._fn) in ("clamp", "clip", "clip_by_value")
    is_unit = [bound._value for bound in bounds if isinstance(bound, Literal)] == [0, 1]
    return Step("G") if is_cut and is_unit else None


def _called(function: Expr) -> str:
    """The last word of what is called."""
    if isinstance(function, Attr):
        return function._name
    return function._text.rpartition(".")[2] if isinstance(function, Name) else getattr(function, "_name", "")


def _step(name: str) -> Step:
    small = name.lower()
    for letter, names in _KNOWN:
        if names.fullmatch(small):
            if letter == "n":
                return Step(letter, next(n for n in _NORMS if small.startswith(n.lower())) + "Norm")
            return Step(letter, _ACTIVATIONS.get(small.replace("_", ""), "") if letter == "A" else "")
    return Step("x")
