"""Do converted models go through torch.export with a dynamic batch, and through torch.compile?

python benchmarks/export.py              the five networks and the pretrained models; writes docs/export.md
python benchmarks/export.py silero       only models with `silero` in their name; writes nothing
"""

import argparse
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import machine
import models
import torch
from rich.console import Console
from rich.progress import track
from zoo_fetch import entries, fetch

import onward
from onward.errors import OnwardError
from onward.verify.data import Inputs, input_sets
from onward.verify.runners.torch import to_framework

PAGE = Path(__file__).parent.parent / "docs" / "export.md"


@dataclass
class Case:
    name: str
    net: torch.nn.Module
    inputs: list[list[object]]
    """One or two sets of inputs, of different sizes where the model has dynamic ones."""
    dynamic: list[dict[int, object]]


def tensors(inputs: Inputs) -> list[object]:
    return [to_framework(value) for value in inputs.values()]


def zoo_case(name: str, path: Path) -> Case:
    model = onward.load(path)
    sets: list[list[object]] = []
    try:
        for feeds in input_sets(model):
            sets.append(tensors(feeds))
            if len(sets) == 2:
                break
    except OnwardError:
        pass
    return Case(name, onward.to_torch(model), sets, dynamic_axes(sets))


def dynamic_axes(sets: list[list[object]]) -> list[dict[int, object]]:
    """The axes on which the sets of inputs differ."""
    first, last = sets[0], sets[-1]
    return [
        {axis: torch.export.Dim.AUTO for axis, (m, n) in enumerate(zip(a.shape, b.shape, strict=True)) if m != n}
        if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
        else {}
        for a, b in zip(first, last, strict=True)
    ]


def network_case(name: str, folder: Path) -> Case:
    path = folder / f"{name}.onnx"
    models.export(name, path)
    sets = [list(models.example_inputs(name, batch).values()) for batch in (2, 5)]
    return Case(name, onward.to_torch(path), sets, dynamic_axes(sets))


def by_export(case: Case) -> None:
    dynamic = tuple(case.dynamic) if any(case.dynamic) else None
    program = torch.export.export(case.net, tuple(case.inputs[0]), dynamic_shapes=dynamic).module()
    agree(case, program)


def by_compile(case: Case, *, fullgraph: bool) -> None:
    torch._dynamo.reset()
    agree(case, torch.compile(case.net, fullgraph=fullgraph, dynamic=True, backend="aot_eager"))


def agree(case: Case, run: Callable[..., object]) -> None:
    with torch.no_grad():
        for inputs in case.inputs:
            torch.testing.assert_close(run(*inputs), case.net(*inputs), atol=1e-4, rtol=1e-4, equal_nan=True)


def attempt(action: Callable[[], None]) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            action()
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {lines[0][:110] if lines else ''}"
    return ""


def measure(case: Case) -> dict[str, str]:
    return {
        "torch.export": attempt(lambda: by_export(case)),
        "torch.compile": attempt(lambda: by_compile(case, fullgraph=False)),
        "without a break": attempt(lambda: by_compile(case, fullgraph=True)),
    }


def page(rows: dict[str, dict[str, str]]) -> str:
    columns = list(next(iter(rows.values())))
    counts = ", ".join(f"{c} {sum(not r[c] for r in rows.values())}" for c in columns)
    lines = [
        "# torch.export and torch.compile",
        "",
        f"{len(rows)} converted models: five networks with a dynamic batch, and the pretrained models. Of these",
        f"work: **{counts}**. Every dimension on which two sets of inputs differ is dynamic, and the results are",
        "compared with the plain module on both sets. *torch.compile* may fall back to Python where a graph breaks;",
        "*without a break* it may not, which rules out control flow that depends on data, and PyTorch's own",
        "recurrent modules.",
        "Made by `benchmarks/export.py`, with the compiler's `aot_eager` backend.",
        "",
        machine.describe("onward", "torch"),
        "",
        "| model | " + " | ".join(columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for name, row in rows.items():
        cells = [("yes" if not row[c] else row[c].replace("|", "/")) for c in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of model names; all models by default")
    args = parser.parse_args()
    console = Console()
    wanted = [n for n in models.NETWORKS if not args.names or any(a in n for a in args.names)]
    chosen = [e for e in entries() if not args.names or any(a in e.name for a in args.names)]
    fetch(chosen)
    rows: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        jobs: list[tuple[str, Callable[[], Case]]] = [
            *((n, lambda n=n: network_case(n, Path(folder))) for n in wanted),
            *((e.name, lambda e=e: zoo_case(e.name, e.path)) for e in chosen),
        ]
        for name, make in track(jobs, "exporting", console=Console(stderr=True)):
            rows[name] = measure(make())
    text = page(rows)
    console.print(text, highlight=False)
    if not args.names:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
