"""`onward convert`: a model in one framework becomes a model in another."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from onward.cli.targets import TARGETS, Target
from onward.cli.trust import add_trust
from onward.errors import ConversionError, OnwardError, RunFailure, UnsupportedError, VerificationError
from onward.gate.budget import SECONDS, announce, within
from onward.writing import make_folder, new_files, new_folder, refusals, write_text

if TYPE_CHECKING:
    from rich.console import Console

    from onward.backends.emit.package import Source
    from onward.cli.sources import Original
    from onward.model import Model
    from onward.runners.calls import Inputs, Run
    from onward.verification.check import Verdict
    from onward.verification.results import Report

STEPS = ("reading", "generating source", "verifying", "writing")
EXTRAS = {"keras": "tensorflow"}
"""What brings a package, where the extra is not called as it."""
LONGEST = 1e7
"""Seconds that a step may be given: four months."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "convert",
        help="convert a model: ONNX to a framework's source code and weights, or TensorFlow and Keras to ONNX",
        description="Convert a model, check the result against the original, and write it.",
        epilog="example: onward convert model.onnx --to torch --out resnet/",
    )
    command.add_argument(
        "model", help="the model: a file or folder of any framework, told by what is in it, or package.module:callable"
    )
    command.add_argument(
        "--to", required=True, choices=[*TARGETS, "onnx"], help="the framework, or the format, to convert to"
    )
    command.add_argument(
        "--out",
        metavar="PATH",
        help="the folder, or for onnx, keras and tflite the file, to write (default: named after the model, in the"
        " current folder)",
    )
    command.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SPEC",
        help='an input of a model that does not say: "x:float32[batch,3,224,224]" (may be repeated); of a TensorFlow '
        "graph, the name of a tensor will do",
    )
    command.add_argument(
        "--output", action="append", metavar="NAME", help="of a TensorFlow graph: an output (may be repeated)"
    )
    command.add_argument(
        "--sample",
        metavar="DATA",
        help="scikit-learn: rows such as the model is given, in a .csv, .parquet, .npy or .npz file",
    )
    command.add_argument(
        "--checkpoint", metavar="PATH", help="of a TensorFlow graph that is not frozen: the values of its variables"
    )
    command.add_argument("--signature", metavar="NAME", help="of a SavedModel: which of its functions to convert")
    command.add_argument("--opset", type=int, help="the version of ONNX to write, 13 to 26 (default: 21)")
    command.add_argument(
        "--allow-custom-ops", action="store_true", help="write TensorFlow ops without a rule as custom ops"
    )
    command.add_argument(
        "--trainable",
        action="append",
        metavar="PATTERN",
        help="only weights whose name matches are trained, such as 'head.*' (may be given more than once)",
    )
    command.add_argument(
        "--quantize", choices=["float16", "dynamic", "int8"], help="tflite: smaller numbers; int8 needs --calibrate"
    )
    command.add_argument("--calibrate", metavar="DATA", help="tflite: inputs (.npz, a folder, …) to calibrate int8 by")
    command.add_argument(
        "--select-tf-ops", action="store_true", help="tflite: allow TensorFlow's ops, which need the larger runtime"
    )
    command.add_argument(
        "--cast",
        choices=["none", "up", "down", "both"],
        default="none",
        help="TensorFlow: compute in wider or narrower numbers what has no kernel in its own dtype (default: refuse)",
    )
    command.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="the size of a dynamic dimension, which is fixed then (may be repeated); TensorFlow Lite may ask for it",
    )
    for side in ("input", "output"):
        command.add_argument(
            f"--{side}s-nhwc",
            action="append",
            metavar="NAME",
            help=f"TensorFlow: an {side} to hand over channels last (may be repeated)",
        )
    add_trust(command)
    command.add_argument("--no-verify", action="store_true", help="do not run the result beside the original")
    command.add_argument(
        "--verify-on", metavar="RUNNER", help="what runs the original: onnxruntime, or reference where it cannot"
    )
    command.add_argument(
        "--report", metavar="FILE", help="what verification found, and casts: a page, or JSON where it ends in .json"
    )
    command.add_argument(
        "--timeout",
        type=seconds,
        default=SECONDS,
        metavar="SECONDS",
        help=f"that reading, generating source and verifying may take, each (default: {SECONDS:g})",
    )
    command.add_argument("--keep", action="store_true", help="write the result even if it differs from the original")
    command.add_argument("--seed", type=int, default=0, help="for the inputs that verification makes up")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from rich.console import Console

    from onward.cli.fixed_sizes import with_sizes
    from onward.cli.sources import read
    from onward.cli.verify import dims

    console = Console(stderr=True)
    args.out = args.out or named_after(args.model, args.to)
    target, out = TARGETS.get(args.to), Path(args.out)
    check_output(out, target is None or target.is_file)
    check_options(args)
    if target is not None:
        require(target.package)
    with step(console, 1, args.timeout):
        original = read(args)
        if args.dim:
            original = replace(original, model=with_sizes(original.model, dims(args.dim)))
    model = original.model
    if original.run is not None:
        with step(console, 3):
            words = judged(model, original.run, f"{args.model} ({original.kind})", args, original.inputs)
        leg = "" if target is None else f"{original.kind} to ONNX, "
        console.print(f"{leg}{words}", highlight=False, soft_wrap=True)
    if target is None:
        with step(console, 4):
            with refusals(out):
                make_folder(out.parent)
            model.save(out)
        from onward.cli.trainable import trainable_lines, weights_of_file

        tell(console, trainable_lines(weights_of_file(model)))
        console.print(f"[green]done:[/] {described(out)}", highlight=False, soft_wrap=True)
        return
    with step(console, 2, args.timeout):
        source = target.generate(model, args)
    if target.runner is not None:
        if not args.no_verify:
            with step(console, 3):
                words = checked(original, source, target.runner(model, source), args)
            console.print(words, highlight=False, soft_wrap=True)
        with step(console, 4):
            target.write(model, source, out, args)
    else:
        written_first(console, target, original, source, args)
    if args.to != "tflite":
        from onward.cli.trainable import trainable_lines, weights_of_source

        tell(console, trainable_lines(weights_of_source(source)))
    for phrase in source.casts:
        console.print(f"[yellow]cast:[/] {escape(phrase)}", highlight=False, soft_wrap=True)
    for kind, orders in (("input", source.input_orders), ("output", source.output_orders)):
        for name, order in orders.items():
            console.print(
                f"{kind} {escape(name)}: its axes are {escape(str(list(order)))} of those it had", highlight=False
            )
    console.print(f"[green]done:[/] {described(out)}", highlight=False, soft_wrap=True)


def tell(console: Console, lines: Iterable[str]) -> None:
    for line in lines:
        console.print(escape(line), highlight=False, soft_wrap=True)


def written_first(
    console: Console, target: Target, original: Original, source: Source, args: argparse.Namespace
) -> None:
    """What is written is run beside the original, and takes its place only then."""
    from onward.formats import open_artifact

    model, out = original.model, Path(args.out)
    with ExitStack() as writing:
        with step(console, 4), refusals(out):
            staged = writing.enter_context(staged_for(target, out))
            target.write(model, source, staged, args)
        if not args.no_verify:
            with step(console, 3):
                words = checked(original, source, open_artifact(staged).run, args)
            console.print(words, highlight=False, soft_wrap=True)
        with step(console, 4):
            writing.close()


@contextmanager
def staged_for(target: Target, out: Path) -> Iterator[Path]:
    """Where to write what takes its place at the end."""
    names = target.names(out)
    with new_files(out.parent, names) if target.is_file else new_folder(out, names) as folder:
        yield folder / out.name if target.is_file else folder


def described(out: Path) -> str:
    if out.is_file():
        return f"{out} ({out.stat().st_size:,} bytes)"
    return f"{out}/ ({', '.join(sorted(p.name for p in out.iterdir()))})"


def named_after(model: str, to: str) -> str:
    """Where to write a model if nobody says: what is there already is never written over."""
    path = Path(model)
    name = model.rpartition(":")[2] if not path.exists() and ":" in model else path.resolve().stem
    out = Path(f"{name}.{to}" if to in ("onnx", "keras", "tflite") else name)
    if out.exists():
        raise OnwardError(f"{out} is there already; give --out")
    return str(out)


def check_output(out: Path, is_file: bool = False) -> None:
    """Fail before the work is done, not after."""
    if is_file and out.is_dir():
        raise OnwardError(f"{out} is a folder; --out names a file")
    for place in (*([] if is_file else [out]), *out.parents):
        if place.exists() and not place.is_dir():
            raise OnwardError(f"{place} is a file; --out names a {'file in a folder' if is_file else 'folder'}")


def check_options(args: argparse.Namespace) -> None:
    if args.to == "onnx" and args.dim:
        raise OnwardError("--dim is for conversions to a framework")
    if args.to != "tflite" and (args.quantize or args.calibrate or args.select_tf_ops):
        raise OnwardError("--quantize, --calibrate and --select-tf-ops are for --to tflite")
    if args.to in ("torch", "onnx") and (args.inputs_nhwc or args.outputs_nhwc):
        raise OnwardError("--inputs-nhwc and --outputs-nhwc are for TensorFlow; `onward layout` changes ONNX files")
    if args.to in ("torch", "keras") and args.cast != "none":
        raise OnwardError("--cast is for --to tensorflow, savedmodel and tflite")
    if args.quantize == "int8" and args.calibrate is None:
        raise OnwardError("--quantize int8 needs calibration data: give --calibrate data.npz")
    target = TARGETS.get(args.to)
    if target is not None and target.check is not None:
        target.check(Path(args.out))


def require(package: str) -> None:
    """Fail with a word on how to install a framework where it is missing; TensorFlow is told to keep its remarks."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if importlib.util.find_spec(package) is None:
        title = {"torch": "PyTorch", "tensorflow": "TensorFlow", "keras": "Keras"}[package]
        raise OnwardError(f"{title} is not installed: pip install 'onward[{EXTRAS.get(package, package)}]'")


def seconds(text: str) -> float:
    """A time that is given on the command line."""
    number = float(text)
    if not 0 < number < LONGEST:
        raise ValueError
    return number


def titled(number: int) -> str:
    return f"step {number} of {len(STEPS)}: {STEPS[number - 1]}"


@contextmanager
def step(console: object, number: int, timeout: float | None = None) -> Iterator[None]:
    """Show which step is running; a failure says which step it was."""
    from rich.console import Console

    assert isinstance(console, Console)
    title = titled(number)
    announce(doing=title)
    try:
        with console.status(title), nullcontext() if timeout is None else within(timeout, "it", title):
            yield
    except OnwardError as error:
        raise type(error)(f"{title}: {error}") from error
    except Exception as error:
        problem = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise ConversionError(f"{title}: {problem} (a defect of Onward; `onward --traceback …` shows where)") from error


def checked(original: Original, source: Source, run: Run, args: argparse.Namespace) -> str:
    """How original, on the framework that it comes from, and result compare, in a sentence.

    What is kept for the next call only ONNX shows: there, the original is the ONNX model.
    """
    from onward.cli.in_bytes import beyond
    from onward.cli.trainable import trainable_lines, weights_of_source
    from onward.frontends.states import states_of
    from onward.runners import find
    from onward.verification.check import Verdict, compared, reordered, source_side, verdict

    run = reordered(run, source.input_orders, source.output_orders)
    if args.verify_on:
        find(args.verify_on)
    whole = None if args.verify_on or states_of(original.model) else original.run
    name = f"{args.model} ({original.kind})"
    given = original.model if whole is None else source_side(original.model, whole, name)
    try:
        with within(args.timeout, "the check", titled(3)):
            report = compared(given, run, on=args.verify_on, seed=args.seed, data=args.calibrate or original.inputs)
    except (UnsupportedError, RunFailure) as error:
        return told(Verdict("not verified", str(error)), args.keep)
    report.notes += [f"cast: {phrase}" for phrase in source.casts]
    report.notes += trainable_lines(weights_of_source(source))
    if args.report:
        write_report(report, Path(args.report))
    too_far = beyond(report, original.model) if source.in_bytes else ""
    leg = "" if whole is None else f"{original.kind} to {args.to}, "
    return leg + told(verdict(report, args.quantize or source.excuse, too_far), args.keep)


def write_report(report: Report, path: Path) -> None:
    from onward.cli.verify import write_page

    if path.suffix == ".json":
        write_text(path, json.dumps(report.to_json(), indent=2))
    else:
        write_page(report, path)


def judged(model: Model, run: Run, name: str, args: argparse.Namespace, inputs: Inputs | None = None) -> str:
    """How the ONNX model, and the framework that it comes from, compare, in a sentence."""
    from onward.frontends.states import without_states
    from onward.verification.check import compared_with_source
    from onward.verification.check import judged as judge

    def compare() -> Report:
        with within(args.timeout, "the check", titled(3)):
            return compared_with_source(without_states(model), run, name, seed=args.seed, data=inputs)

    return told(judge(compare), args.keep)


def told(verdict: Verdict, keep: bool) -> str:
    """A verdict as it is printed; raises where original and result differ, unless it is to be kept all the same."""
    if verdict.status == "different" and not keep:
        raise VerificationError(f"{verdict.words}; nothing was written (--keep writes it all the same)")
    if verdict.status == "different":
        return f"[red]{escape(verdict.words)}[/], kept as asked"
    colour = "green" if verdict.status == "verified" else "yellow"
    return escape(str(verdict)).replace(verdict.status, f"[{colour}]{verdict.status}[/]", 1)
