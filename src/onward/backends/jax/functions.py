"""The functions of a generated JAX model: pure, of a nested dictionary of arrays."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field

from onward.backends.emit.classes import no_leaf
from onward.backends.emit.expr import Name, lift, render
from onward.backends.emit.functions.numbers import Words
from onward.backends.emit.functions.writer import FunctionWriter
from onward.backends.emit.package import plain
from onward.backends.jax.target import np_

RESERVED = frozenset({
    "jax", "jnp", "lax", "np", "math", "warnings", "Any", "Array", "Params", "Static", "Text", "Path", "partial",
    "apply", "load", "load_constants", "load_file", "p", "params", "constants",
})  # fmt: skip

WORDS = Words(
    positional={
        "lax.conv_general_dilated": ("", "", "stride", "padding"),
        "lax.conv_transpose": ("", "", "stride", "padding"),
        "jnp.pad": ("", "padding"),
        "jax.nn.leaky_relu": ("", "slope"),
        "jax.nn.elu": ("", "alpha"),
        "jax.nn.celu": ("", "alpha"),
        "lax.reduce_window": ("", "", "", "window", "stride", "padding"),
    },
    keywords={
        "window_strides": "stride",
        "feature_group_count": "groups",
        "rhs_dilation": "dilation",
        "window_dimensions": "window",
        "negative_slope": "slope",
    },
    usual={"stride": 1, "padding": 0, "dilation": 1, "groups": 1},
)
"""What numbers are called by which equal blocks differ."""

WIDTH = 92
"""Characters of a comment."""
TYPE = '''Params = dict[str, Any]
"""A tree of arrays: a dictionary by name, or a list where the names are numbers."""'''


STATIC = "static"
"""The kind of an argument whose numbers have to be known while `jax.jit` traces."""
STATIC_TYPE = '''Static = Array | float | tuple[Any, ...]
"""Numbers that decide sizes. Under `jax.jit`, they are a static argument: a number, or a tuple of numbers."""'''

TEXT = "text"
"""The kind of an argument that is strings, which `jax.jit` takes as it takes those numbers."""
TEXT_TYPE = '''Text = np.ndarray | str | tuple[Any, ...]
"""Strings. Under `jax.jit`, they are a static argument: a string, or a tuple of strings."""'''
TYPES = {"Static": STATIC_TYPE, "Text": TEXT_TYPE}
"""The types of arguments that only some models have."""


@dataclass
class JaxWriter(FunctionWriter):
    """Writes functions of JAX's arrays."""

    has_constants: bool = False
    """Whether there are tensors that are not trained."""
    draws: bool = False
    """Whether it is given a key to draw by; the last of its arguments are the keys that follow from that."""
    counts: tuple[str, ...] = ()
    """What results are counted, and filled up to a bound; the last of what it gives are the counts."""
    reserved: frozenset[str] = RESERVED
    words: Words = field(default_factory=lambda: WORDS)
    tree_type = "Params"

    def __post_init__(self) -> None:
        self.reserved |= {"key"} if self.draws else set()
        super().__post_init__()
        self.whole = self.own if self.has_constants else "params"

    def annotation(self, kind: str) -> str:
        named = {"tensor": "Array", "host": "int", STATIC: "Static", TEXT: "Text", "flag": "Iterator[Array]"}
        return named.get(kind, "Any")

    def header(self, arguments: list[str], returns: str) -> tuple[str, list[str]]:
        said = f"after the outputs: how many results there are of {', '.join(map(plain, self.counts))}"
        first = [f"# {line}" for line in textwrap.wrap(said, WIDTH)] if self.counts else []
        if self.draws:
            *arguments, keys = arguments
            arguments.append("key: Array")
            first.append(f"{keys.partition(':')[0]} = ops.keys_of(key)")
            self.helpers.add("keys_of")
        given = ["params: Params", *arguments, *(["constants: Params"] if self.has_constants else [])]
        if self.has_constants:
            self.helpers.add("merged")
            first.append("p = ops.merged(params, constants)")
        return f"def apply({', '.join(given)}) -> {returns}:", first

    def constants(self) -> str:
        """What stands before the functions."""
        tables = [
            f"{name} = {render(np_.array(lift(array), dtype=Name('object')), no_leaf)}"
            for name, array in self.tables.items()
        ]
        more = [text for name, text in TYPES.items() if any(f": {name}" in function for function in self.functions)]
        return "\n".join([*tables, *([""] if tables else []), TYPE, *more])
