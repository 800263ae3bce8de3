"""The table of upgrade entries: which function brings which op to which version."""

from collections import defaultdict
from collections.abc import Callable

import onnx_ir as ir

from onward.graph.rewriter import Rewriter

Entry = Callable[[ir.Node, Rewriter], None]

ENTRIES: dict[tuple[str, str], list[tuple[int, Entry]]] = defaultdict(list)
"""By (domain, op): the entries in ascending order of the version that they lead to."""


def upgrade(*ops: str, since: int, domain: str = "") -> Callable[[Entry], Entry]:
    """Register the function that makes a node of an older version mean the same under version `since`.

    It is called with the node and a `Rewriter` placed in front of it, and either changes the node itself
    (its attributes, inputs or op type) or replaces it.
    """

    def file(entry: Entry) -> Entry:
        for op in ops:
            entries = ENTRIES[domain, op]
            if any(version == since for version, _ in entries):
                raise ValueError(f"upgrade entry for {op}-{since} is registered twice")
            entries.append((since, entry))
            entries.sort(key=lambda pair: pair[0])
        return entry

    return file
