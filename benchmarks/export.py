"""Do converted models go through torch.export with a dynamic batch, and through torch.compile?

python benchmarks/export.py              networks and pretrained models; writes docs/measured/torch-export.md
python benchmarks/export.py silero       only models with `silero` in their name; writes nothing
python benchmarks/export.py --keep FILE  notes each result in FILE, and takes what is noted there from it
"""

import argparse
import json
import logging
import re
import signal
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
from zoo_files import entries, files

import onward
from onward.backends.torch.values import to_framework
from onward.errors import OnwardError
from onward.verification.data.sets import Inputs, input_sets

PAGE = Path(__file__).parent.parent / "docs/measured/torch-export.md"
LIMIT = 100
"""Seconds of processor time for one attempt with a pretrained model."""

REASONS = {
    r"^TimeoutError": f"not in {LIMIT} s",
    r"data-dependent expression|[Dd]ata-dependent branching": "a branch or a length depends on the data",
    r"Guard failed: .* == \d+$": "a recurrent layer is exported for one length",
    r"pack_padded_sequence|zeros\(\): argument 'size' .* FakeTensor": "`pack_padded_sequence` is not traced",
    r"Guard failed: .* != 1$": "sizes at which an inner axis is 1 are ruled out",
}
"""What PyTorch says, and what it means."""


@dataclass
class Case:
    name: str
    net: torch.nn.Module
    inputs: list[list[object]]
    """One or two sets of inputs, of different sizes where the model has dynamic ones."""
    dynamic: list[dict[int, object]]
    compiler: str = "aot_eager"
    limit: float = LIMIT


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
    return Case(name, onward.to_torch(model, check=False), sets, dynamic_axes(sets))


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
    return Case(name, onward.to_torch(path, check=False), sets, dynamic_axes(sets), "inductor", 6 * LIMIT)


def by_export(case: Case) -> None:
    dynamic = tuple(case.dynamic) if any(case.dynamic) else None
    program = torch.export.export(case.net, tuple(case.inputs[0]), dynamic_shapes=dynamic).module()
    agree(case, program)


def by_compile(case: Case, *, fullgraph: bool) -> None:
    torch._dynamo.reset()
    agree(case, torch.compile(case.net, fullgraph=fullgraph, dynamic=True, backend=case.compiler))


def agree(case: Case, run: Callable[..., object]) -> None:
    with torch.no_grad():
        for inputs in case.inputs:
            torch.testing.assert_close(run(*inputs), case.net(*inputs), atol=1e-4, rtol=1e-4, equal_nan=True)


def attempt(case: Case, action: Callable[[], None]) -> str:
    """What went wrong, or nothing."""

    def give_up(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, case.limit)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            action()
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def measure(case: Case) -> dict[str, str]:
    exported = attempt(case, lambda: by_export(case))
    whole = attempt(case, lambda: by_compile(case, fullgraph=True))
    broken = whole and attempt(case, lambda: by_compile(case, fullgraph=False))
    return {"torch.export": exported, "torch.compile": broken, "without a break": whole}


def page(rows: dict[str, dict[str, str]]) -> str:
    columns = list(next(iter(rows.values())))
    counts = ", ".join(f"{c} {sum(not r[c] for r in rows.values())}" for c in columns)
    lines = [
        "# torch.export and torch.compile",
        "",
        f"{len(rows)} converted models: five networks with a dynamic batch, and the [pretrained models](zoo.md).",
        f"Of these work: **{counts}**.",
        "",
        "Every dimension on which two sets of inputs differ is dynamic, and the results are compared with the plain",
        "module on both sets. *torch.compile* may go back to Python where the graph breaks; *without a break* it may",
        "not, and `torch._dynamo.config.allow_rnn` is on, without which PyTorch's compiler stops at every `nn.LSTM`",
        "and `nn.GRU`.",
        "",
        "The five networks are compiled by PyTorch's own backend, `inductor`, the others by `aot_eager`, which",
        "traces and differentiates in the same way and leaves out only the making of machine code. Made by",
        "`benchmarks/export.py`.",
        "",
        machine.describe("onward", "torch"),
        "",
        "| model | " + " | ".join(columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    lines += [f"| {name} | " + " | ".join(cell(row[c]) for c in columns) + " |" for name, row in rows.items()]
    return "\n".join(lines) + "\n"


def cell(problem: str) -> str:
    meaning = next((words for sign, words in REASONS.items() if re.search(sign, problem)), problem[:110])
    return meaning.replace("|", "/") or "yes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of model names; all models by default")
    parser.add_argument("--keep", type=Path, help="a file of results to go on with")
    args = parser.parse_args()
    logging.disable(logging.CRITICAL)  # the compiler's own accounts of why it stops
    torch._dynamo.config.allow_rnn = True
    wanted = [n for n in models.NETWORKS if not args.names or any(a in n for a in args.names)]
    chosen = files(entries(args.names))
    known = json.loads(args.keep.read_text()) if args.keep and args.keep.exists() else {}
    rows: dict[str, dict[str, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        jobs: list[tuple[str, Callable[[], Case]]] = [
            *((n, lambda n=n: network_case(n, Path(folder))) for n in wanted),
            *((n, lambda n=n, p=p: zoo_case(n, p)) for n, p in chosen),
        ]
        for name, make in track(jobs, "exporting", console=Console(stderr=True)):
            rows[name] = known[name] = known.get(name) or measure(make())
            if args.keep:
                args.keep.write_text(json.dumps(known, indent=1))
    text = page(rows)
    Console().print(text, highlight=False)
    if not args.names:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
