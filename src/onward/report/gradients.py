"""The page of gradients, every op of the standard: `python -m onward.report.gradients docs/reference/gradients.md`."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

import onnx

from onward.report.coverage import versions
from onward.training.autodiff.coverage import WORDS, gradient_status, is_marked
from onward.writing import write_text


def ops() -> list[str]:
    """Ops of the default domain that take an input."""
    return sorted({s.name for s in onnx.defs.get_all_schemas() if not s.domain and s.inputs})


LANGUAGE = (
    *("Attention", "GroupQueryAttention", "MultiHeadAttention", "PackedAttention", "PackedMultiHeadAttention"),
    *("SparseAttention", "RotaryEmbedding", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"),
    *("SkipLayerNormalization", "EmbedLayerNormalization", "MatMulNBits", "MatMulBnb4", "GatherBlockQuantized"),
    *("BiasGelu", "FastGelu", "Gelu", "QuickGelu", "MoE", "QMoE"),
)
"""Ops of `com.microsoft` that language models are written with for ONNX Runtime."""


def page() -> str:
    """The page as Markdown."""
    found = {op: gradient_status(op) for op in ops()}
    marked = [op for op in found if is_marked(op)]
    lines = ["# Gradients: every op of the standard", ""]
    lines += [f"Written by `make coverage` from the rules themselves, for {versions()}. What a gradient meets:", ""]
    lines += [f"- **{word}**: {meaning}" for word, meaning in WORDS.items()]
    lines += [
        "",
        "A gradient can be differentiated again: rules are written in ops that have rules. Sizes need not be known,",
    ]
    lines += ["ranks in general must be: a rule that needs one refuses, and names the node.", ""]
    lines += ["| ops | all | " + " | ".join(WORDS) + " |", "|---" * (2 + len(WORDS)) + "|"]
    for title, names in (("marked as differentiable by ONNX", marked), ("all that take an input", list(found))):
        counts = Counter(found[op].status for op in names)
        lines.append(f"| {title} | {len(names)} | " + " | ".join(str(counts[word]) for word in WORDS) + " |")
    lines += ["", "| op | marked | gradient |", "|---|---|---|"]
    lines += [f"| `{op}` | {'yes' if op in marked else ''} | {status} |" for op, status in found.items()]
    lines += ["", "## Ops of language models for ONNX Runtime", "", "| op of `com.microsoft` | gradient |", "|---|---|"]
    lines += [f"| `{op}` | {gradient_status(f'com.microsoft::{op}')} |" for op in sorted(LANGUAGE)]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    write_text(parser.parse_args().file, page())


if __name__ == "__main__":
    main()
