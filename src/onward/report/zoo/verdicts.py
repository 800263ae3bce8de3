"""What the verdicts of a zoo are called and mean on pages, and what a user does next about each."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from functools import cache

from onward.backends.backend import backends
from onward.report.html import escape
from onward.zoo.results import TARGETS, TRAIN, Cell, Verdict

PEER = "peer:"
"""What the targets that are other converters begin with."""
PEERS_MAKE = {"onnx2torch": "torch", "onnx2pytorch": "torch", "tf2onnx": "onnx", "onnx2tf": "tflite"}
"""What well-known converters make, as a target of Onward."""
MEANINGS: dict[Verdict, str] = {
    "same": "converted, run on the same data as the source, and within what the source's own noise allows",
    "not verified": "converted, but there was nothing to compare",
    "refused": "an error that says what is not supported, and nothing else",
    "timeout": "not done within the limit of time",
    "out of memory": "more memory than the limit allows",
    "failed": "an error that was not expected, or a result that does not run",
    "crash": "the process died",
    "different": "converted, and off by more than is allowed",
}
"""From best to worst: a wrong result is worse than none."""
ORDER: tuple[Verdict, ...] = tuple(MEANINGS)
RANKS: dict[Verdict, int] = {
    "same": 0,
    "not verified": 1,
    "refused": 2,
    "timeout": 3,
    "out of memory": 3,
    "failed": 4,
    "crash": 5,
    "different": 6,
}
"""A verdict of a higher rank is worse; between those of one rank there is no better or worse."""
TITLES = {
    "torch": "PyTorch",
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "tflite": "TF Lite",
    "jax": "JAX",
    "onnx": "ONNX",
    "matlab": "MATLAB",
    TRAIN: "training",
}


NAMED_BY_MESSAGES = re.compile(r"--cast (?:down|up|both)|--dim \w+=\d+|--select-tf-ops|--fallback onnxruntime")
"""Options of `onward convert` by which a refusal says that it can be done."""


MOST_SECONDS = 86_400.0


def is_peer(target: str) -> bool:
    return target.startswith(PEER)


def title(target: str) -> str:
    """`PyTorch` for `torch`, `onnx2torch` for `peer:onnx2torch`."""
    return TITLES.get(target, target.removeprefix(PEER))


def kind(verdict: str) -> str:
    """The class of a verdict in style sheets."""
    return verdict.replace(" ", "-")


def chip(verdict: str, words: str = "") -> str:
    """A verdict in its colour, with the sign that the style sheet gives it."""
    return f'<span class="verdict {kind(verdict)}">{escape(words or verdict)}</span>'


@dataclass(frozen=True)
class Advice:
    """What to do next, and the command for it."""

    sentence: str
    command: str = ""


def advice(cell: Cell) -> Advice:
    """About a cell of any target."""
    if is_peer(cell.target):
        return Advice("This is another converter, run beside Onward for comparison.")
    return _of_training(cell) if cell.target == TRAIN else _of_conversion(cell)


def _of_conversion(cell: Cell) -> Advice:
    convert = f"onward convert {shlex.quote(cell.model)} --to {shlex.quote(cell.target)}"
    match cell.verdict:
        case "same":
            return Advice("Nothing is left to do. This converts the model, and proves the result again:", convert)
        case "different":
            words = (
                "The report shows where on the way from the inputs the two part; the result is written all the same:"
            )
            return Advice(words, f"{convert} --keep --report report.html")
        case "not verified":
            return Advice("Give inputs that the model takes, and it is compared:", f"{convert} --inputs inputs.npz")
        case "refused" if option := NAMED_BY_MESSAGES.search(cell.message):
            return Advice("Take the option that the message names:", f"{convert} {option.group()}")
        case "refused" if "--trust" in cell.message:
            return Advice("Only if you trust whoever made the file, as it may execute anything:", f"{convert} --trust")
        case "refused" if cell.first_node and cell.target in _keep_parts():
            words = "Keep what is refused as ONNX inside the result, run by ONNX Runtime:"
            return Advice(words, f"{convert} --fallback onnxruntime")
        case "refused":
            words = "Nothing was written. Try again once the model does without what is refused, or Onward supports it:"
            return Advice(words, convert)
        case "timeout":
            limit = cell.limit_seconds or 0.0
            seconds = 3 * limit if 0 < limit < MOST_SECONDS else MOST_SECONDS
            return Advice("Give each step more time:", f"{convert} --timeout {seconds:.0f}")
        case "out of memory":
            words = "Compare on a single set of inputs, on a machine with more memory:"
            return Advice(words, f"{convert} --quick")
    return Advice(
        "This should not happen. Repeat it, see where it comes from, and report it:",
        f"onward --traceback {convert.removeprefix('onward ')}",
    )


def _of_training(cell: Cell) -> Advice:
    prepare = f"onward train prepare {shlex.quote(cell.model)} --out trainable.onnx"
    match cell.verdict:
        case "same":
            return Advice("Nothing is left to do. This makes the model trainable:", prepare)
        case "different":
            words = "Compare the training step by step; the report names the tensor that differs first:"
            return Advice(words, f"{prepare} && onward train verify trainable.onnx --html report.html")
        case "refused":
            return Advice(
                "See which ops have gradients, and train the part behind what is refused:",
                f"onward train inspect {shlex.quote(cell.model)}",
            )
        case "timeout" | "out of memory":
            return Advice(
                "Take fewer samples in a step, on a machine with more time and memory:", f"{prepare} --accumulate 4"
            )
        case "not verified":
            return Advice(
                "Train it on data of your own:",
                f"{prepare} && onward train run trainable.onnx --data train.npz --out tuned.onnx",
            )
    return Advice(
        "This should not happen. Repeat it, see where it comes from, and report it:",
        f"onward --traceback {prepare.removeprefix('onward ')}",
    )


@cache
def _keep_parts() -> frozenset[str]:
    """Targets in which a part of a model may stay ONNX."""
    found = {form.name for one in backends() for form in one.formats() if "fallback" in form.takes}
    return frozenset(found & set(TARGETS))
