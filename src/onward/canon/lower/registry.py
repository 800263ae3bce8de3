"""The table of lowerings: which function writes an op in terms of simpler ones."""

from collections.abc import Callable

import onnx_ir as ir

from onward.graph.rewriter import Rewriter
from onward.registry import Registry

Lowering = Callable[[ir.Node, Rewriter], None]

LOWERINGS: Registry[Lowering] = Registry("lowering")

DIALECT = 25
"""The opset that lowerings write; what changed after it is then applied to the new nodes as well."""

lowering = LOWERINGS.register
"""`@lowering("com.microsoft::BiasGelu")`: the function is called with the node and a `Rewriter` placed in front of it,
and replaces the node."""
