"""Libraries of ops that a file needs beside ONNX Runtime."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

import onnx_ir as ir

from onward.advice.extras import require
from onward.errors import RunFailure
from onward.graph.names import EXTENSIONS
from onward.graph.walk import all_nodes

if TYPE_CHECKING:
    import onnxruntime


BY_PATTERN = "StringRegexReplace"
CLASH = (
    "TensorFlow is loaded in this process, beside which onnxruntime-extensions leaves texts as they are:"
    " run this model in a process without TensorFlow"
)
"""Seen with onnxruntime-extensions 0.15.2 and TensorFlow 2.21: both bring RE2, and one gets the other's functions."""


def register_libraries(
    options: onnxruntime.SessionOptions, model: ir.Model, libraries: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """Tell a session where the ops of a model are that ONNX Runtime lacks, in `libraries` of plugins among others."""
    found = {str(library) for library in libraries}
    if EXTENSIONS in model.opset_imports:
        if "tensorflow" in sys.modules and any(node.op_type == BY_PATTERN for node in all_nodes(model.graph)):
            raise RunFailure(CLASH)
        require("onnxruntime_extensions", what=f"the ops of {EXTENSIONS}")
        import onnxruntime_extensions

        found.add(str(onnxruntime_extensions.get_library_path()))
    for library in sorted(found):
        register_library(options, library)


def register_library(options: onnxruntime.SessionOptions, path: str) -> None:
    """Let a session have the kernels of a library, whose code runs."""
    try:
        options.register_custom_ops_library(path)
    except Exception as error:
        said = " ".join(str(error).split())
        raise RunFailure(f"{path} is no library of custom ops for ONNX Runtime on this machine: {said}") from error
