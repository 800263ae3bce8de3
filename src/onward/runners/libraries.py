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


BESIDE_TENSORFLOW = {
    "StringRegexReplace": "leaves texts as they are",
    "StringRegexSplitWithOffsets": "does not split texts",
    "SentencepieceTokenizer": "ends the process",
    "SentencepieceDecoder": "ends the process",
}
"""What ops of onnxruntime-extensions do in a process that has TensorFlow. Seen with onnxruntime-extensions 0.15.2 and
TensorFlow 2.21: both bring RE2 and SentencePiece, and one gets the other's functions."""


def register_libraries(
    options: onnxruntime.SessionOptions, model: ir.Model, libraries: Iterable[str | os.PathLike[str]] = ()
) -> None:
    """Tell a session where the ops of a model are that ONNX Runtime lacks, in `libraries` of plugins among others."""
    found = {str(library) for library in libraries}
    if EXTENSIONS in model.opset_imports:
        _check_beside_tensorflow(model)
        require("onnxruntime_extensions", what=f"the ops of {EXTENSIONS}")
        import onnxruntime_extensions

        found.add(str(onnxruntime_extensions.get_library_path()))
    for library in sorted(found):
        register_library(options, library)


def _check_beside_tensorflow(model: ir.Model) -> None:
    nodes = all_nodes(model.graph) if "tensorflow" in sys.modules else ()
    for node in nodes:
        if node.domain == EXTENSIONS and node.op_type in BESIDE_TENSORFLOW:
            raise RunFailure(
                f"TensorFlow is loaded in this process, beside which {node.op_type} of onnxruntime-extensions"
                f" {BESIDE_TENSORFLOW[node.op_type]}: run this model in a process without TensorFlow (`onward verify"
                " --isolate` does)"
            )


def register_library(options: onnxruntime.SessionOptions, path: str) -> None:
    """Let a session have the kernels of a library, whose code runs."""
    try:
        options.register_custom_ops_library(path)
    except Exception as error:
        said = " ".join(str(error).split())
        raise RunFailure(f"{path} is no library of custom ops for ONNX Runtime on this machine: {said}") from error
