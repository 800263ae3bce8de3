"""What a backend has no rule for stays ONNX inside the result, and another runtime runs it."""

from __future__ import annotations

from onward.advice.options import option
from onward.errors import OnwardError
from onward.graph.origin import origin
from onward.model import Model
from onward.report.wording import counted

KNOWN = ("onnxruntime",)
MOST_NAMES = 3
"""Nodes of a part that are named."""


def with_parts(model: Model, backend: str, fallback: str) -> tuple[Model, list[str]]:
    """The model with parts that stay ONNX, where the backend refuses any of it, and a line about each."""
    from onward.partitioning.fallback import with_fallback

    if fallback not in KNOWN:
        raise OnwardError(f"{option('fallback', fallback)}: the fallback is {' or '.join(KNOWN)}")
    made, parts = with_fallback(model, backend)
    lines = []
    for place, part in enumerate(parts):
        names = [str(origin(node)) for node in part.nodes]
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        what = f"{', '.join(names[:MOST_NAMES])}{more}"
        lines.append(f"part{place} runs on ONNX Runtime: {counted(len(names), 'node')}: {what}")
    return made, lines
