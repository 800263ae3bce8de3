"""What a command says of an ONNX file that it wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onward.model import Model


def told(model: Model, remarks: list[str], out: Path) -> None:
    """Its inputs and outputs, what it is without, and where it is."""
    from rich.console import Console
    from rich.markup import escape

    from onward.editing.diff import typed
    from onward.report.wording import counted, printable

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    graph = model.ir.graph
    for part, values in (("input", graph.inputs), ("output", graph.outputs)):
        for value in values:
            if not value.is_initializer():
                console.print(escape(printable(f"{part} {value.name}: {typed(value)}", 300)))
    for remark in remarks:
        console.print(f"[yellow]note:[/] {escape(printable(remark, 1000))}")
    console.print(f"[green]done:[/] {escape(str(out))} ({counted(len(graph), 'node')})")
