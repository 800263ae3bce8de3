"""Libraries of ops that a file needs beside ONNX Runtime."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import onnx_ir as ir

from onward.advice.extras import require
from onward.graph.names import EXTENSIONS

if TYPE_CHECKING:
    import onnxruntime


def register_libraries(
    options: onnxruntime.SessionOptions, model: ir.Model, libraries: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """Tell a session where the ops of a model are that ONNX Runtime lacks, in `libraries` of plugins among others."""
    found = {str(library) for library in libraries}
    if EXTENSIONS in model.opset_imports:
        require("onnxruntime_extensions", what=f"the ops of {EXTENSIONS}")
        import onnxruntime_extensions

        found.add(str(onnxruntime_extensions.get_library_path()))
    for library in sorted(found):
        options.register_custom_ops_library(library)
