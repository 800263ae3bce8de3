"""Named sequences of passes, with the reasons for their order."""

from __future__ import annotations

import onnx_ir as ir

from onward.passes.fuse_linear import fuse_linear


def idioms(model: ir.Model) -> None:
    """Recognise, in place, what frameworks have a name for and exporters wrote as many nodes.

    Runs before constants are folded: a folded weight has lost the name it had in the original model.
    """
    fuse_linear(model)
