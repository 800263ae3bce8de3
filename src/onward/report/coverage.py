"""The coverage page, every op against every backend: `python -m onward.report.coverage docs/reference/coverage.md`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import onnx

from onward.backends.coverage import WORDS, OpStatus, covered, split, status
from onward.canon.lower import REFUSED
from onward.canon.upgrade.registry import ENTRIES
from onward.plugins.table import versions as plugged
from onward.writing import write_text

CONTRIB = "com.microsoft"
PROCESSORS = "CPUExecutionProvider"
TITLES = {"": "ai.onnx", "removed": "ai.onnx before opset 10"}


def ops() -> dict[str, list[str]]:
    """By domain, all ops that ONNX defines and those that ONNX Runtime adds; 'removed': what old opsets had."""
    from onnxruntime.capi import onnxruntime_pybind11_state as ort

    found: dict[str, set[str]] = {}
    for schema in onnx.defs.get_all_schemas():
        if not plugged(key(schema.domain, schema.name)):
            found.setdefault(schema.domain, set()).add(key(schema.domain, schema.name))
    found["removed"] = {name for domain, name in ENTRIES if not domain} - found[""]
    found[CONTRIB] = {key(CONTRIB, s.name) for s in ort.get_all_operator_schema() if s.domain == CONTRIB}
    return {domain: sorted(found[domain]) for domain in sorted(found, key=_order)}


def kernels() -> list[str]:
    """The ops that ONNX Runtime adds and computes on processors."""
    from onnxruntime.capi import onnxruntime_pybind11_state as ort

    found = ort.get_all_opkernel_def()
    return sorted({key(CONTRIB, k.op_name) for k in found if (k.domain, k.provider) == (CONTRIB, PROCESSORS)})


def key(domain: str, name: str) -> str:
    return f"{domain}::{name}" if domain else name


def _order(domain: str) -> tuple[int, str]:
    last = {"removed": 1, CONTRIB: 2}
    return last.get(domain, 0), domain


def versions() -> str:
    import onnxruntime

    return (
        f"ONNX {onnx.__version__} (opset {onnx.defs.onnx_opset_version()}) and ONNX Runtime {onnxruntime.__version__}"
    )


def page() -> str:
    """The page as Markdown."""
    table = ops()
    backends = covered()
    found = {(op, backend): status(op, backend) for names in table.values() for op in names for backend in backends}
    lines = ["# Coverage: every op and every backend", ""]
    lines += [f"Written by `make coverage` from the rules themselves, for {versions()}.", ""]
    lines += [f"- **{word}**: {meaning}" for word, meaning in WORDS.items()]
    for backend in backends:
        lines += ["", f"## Summary: {backend}", "", *_summary(table, found, backend)]
    lines += ["", "## Ops that ONNX Runtime adds and computes on processors", "", *_of_processors(backends)]
    for domain, names in table.items():
        lines += ["", f"## {TITLES.get(domain, domain)}", "", *_rows(["op", *backends])]
        lines += [_row([f"`{split(op)[1]}`", *(str(found[op, backend]) for backend in backends)]) for op in names]
    return "\n".join(lines) + "\n"


def _of_processors(backends: Sequence[str]) -> list[str]:
    """What becomes of each op of ONNX Runtime that a model may have and run on any machine."""
    lines = _rows(["backend", "ops with a kernel", "converted", "refused with a reason", "neither"])
    for backend in backends:
        found = [status(op, backend) for op in kernels()]
        refused = sum(one.op in REFUSED for one in found)
        converted = sum(one.status != "unsupported" for one in found)
        lines.append(_row([backend, len(found), converted, refused, len(found) - converted - refused]))
    reasons = [f"- `{split(op)[1]}`: {REFUSED[op]}." for op in kernels() if op in REFUSED]
    return [*lines, "", "Those that are refused, and why:", "", *reasons]


def _summary(table: dict[str, list[str]], found: dict[tuple[str, str], OpStatus], backend: str) -> list[str]:
    lines = _rows(["domain", "ops", *WORDS])
    for domain, names in table.items():
        counts = Counter(found[op, backend].status for op in names)
        lines.append(_row([TITLES.get(domain, domain), len(names), *(counts[word] for word in WORDS)]))
    return lines


def _rows(titles: Sequence[str]) -> list[str]:
    return [_row(titles), "|---" * len(titles) + "|"]


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    write_text(parser.parse_args().file, page())


if __name__ == "__main__":
    main()
