"""The text of a module of StableHLO, which is stored as such or as bytecode; nothing of it is run.

MLIR was seen to crash on damaged bytecode, so that another process reads it, and on texts of very many levels.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from onward.errors import InvalidModelError
from onward.gate.apart import apart

MAGIC = b"ML\xefR"
"""How bytecode of MLIR begins."""
DEEPEST = 1000
"""Levels of brackets; MLIR takes some 10,000."""
BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|//[^\n]*|->|>=|[\[({<]+|[\])}>]+', re.DOTALL)


def text_of(path: Path) -> str:
    """The text of a module, with where each operation comes from."""
    state = path.stat()
    return _text(path, (state.st_ino, state.st_size, state.st_mtime_ns))


@lru_cache(1)
def _text(path: Path, state: tuple[int, int, int]) -> str:
    """`state` is what tells the file from what it was before."""
    content = path.read_bytes()
    if content.startswith(MAGIC):
        text = apart(path, __name__, "unpacked", "the artifact of StableHLO", "MLIR")
    else:
        text = content.decode("utf-8", "replace")
    if _depth(text) > DEEPEST:
        raise InvalidModelError(f"{path}: this module of StableHLO has more than {DEEPEST:,} levels of brackets")
    return text


def unpacked(path: str) -> str:
    """In the process that looks: the text of bytecode."""
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo

    context = ir.Context()
    mhlo.register_mhlo_dialect(context)
    for dialect in (chlo, sdy, stablehlo):
        dialect.register_dialect(context)
    try:
        module = stablehlo.deserialize_portable_artifact(context, Path(path).read_bytes())
    except ValueError as error:
        raise SystemExit("MLIR does not read it, or it is newer than this version of JAX") from error
    return str(module.operation.get_asm(enable_debug_info=True))


def _depth(text: str) -> int:
    """The most levels of brackets, outside of strings and comments."""
    deepest = depth = 0
    for found in BRACKETS.finditer(text):
        word = found[0]
        if word[0] in "[({<":
            depth += len(word)
            deepest = max(deepest, depth)
        elif word[0] in "])}>":
            depth = max(0, depth - len(word))
    return deepest
