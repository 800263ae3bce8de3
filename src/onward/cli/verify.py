"""`onward verify`: are two models the same, and if not, where do they part?"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from onward.cli.plugins import add_plugins
from onward.cli.source import add_library
from onward.cli.steps import Steps
from onward.cli.streams import output, until_unread
from onward.cli.trust import add_trust
from onward.errors import OnwardError

if TYPE_CHECKING:
    pass

EPILOG = """examples:
  onward verify model.onnx resnet/                              the original and a package converted from it
  onward verify model.onnx --on onnxruntime,torch,openvino      one model on several runtimes
  onward verify old.onnx new.onnx --bisect                      the first node at which two files part
  onward verify features.py:features features.onnx --sample test.parquet --trust    a function on data frames
  onward verify model.onnx --inputs data/ --html report.html    your own data, and a page to look at

exit codes: 0 the same, 1 different, 2 could not be run"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "verify",
        help="prove that models are the same, or find the node where they part",
        description="Run models on the same data and compare what comes out, by a tolerance that follows the noise of "
        "the first one.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument(
        "model", help="the source: an .onnx file, a file or folder of a framework, or features.py:features"
    )
    command.add_argument(
        "others", nargs="*", default=[], metavar="other", help="what to compare with it: files, folders"
    )
    command.add_argument(
        "--on",
        metavar="RUNNERS",
        help="run the source on the first of these, and on each of the others too: onnxruntime, reference, torch, "
        "openvino, or with a mode, such as torch:compile (onward verify --list shows them)",
    )
    command.add_argument("--list", action=List, help="list the runners, and exit")
    data = command.add_argument_group("data (by default made up to fit the graph)")
    data.add_argument(
        "--inputs",
        metavar="PATH",
        help="read inputs from a .npz, .npy or image file, or a folder of these or of test data sets",
    )
    data.add_argument(
        "--sample",
        metavar="DATA",
        help="compare a function on data frames, features.py:features, or a file of scikit-learn with its ONNX model "
        "on these rows, in a .csv, .feather or .parquet file",
    )
    add_library(data)
    data.add_argument(
        "--dim",
        action="append",
        default=[],
        metavar="NAME=SIZE",
        help="fix the size of a dynamic dimension (repeatable)",
    )
    data.add_argument("--quick", action="store_true", help="compare on a single set of inputs")
    data.add_argument("--seed", type=int, default=0, help="choose the random data")
    data.add_argument(
        "--hard", action="store_true", help="test edge values too: NaN, infinities, denormals, an empty batch"
    )
    judge = command.add_argument_group("verdict (by default from the dtype and the source's own noise)")
    judge.add_argument("--atol", type=float, help="absolute tolerance")
    judge.add_argument("--rtol", type=float, help="relative tolerance")
    find = command.add_argument_group("finding the difference")
    find.add_argument("--bisect", action="store_true", help="name the first node that differs")
    find.add_argument("--all-nodes", action="store_true", help="compare every value inside the graph")
    find.add_argument("--reduce", metavar="FOLDER", help="write the smallest model that still differs, with its inputs")
    safe = command.add_argument_group("running safely")
    safe.add_argument(
        "--isolate", action="store_true", help="run each runner in its own process, so that a crash is a result"
    )
    safe.add_argument("--timeout", type=float, metavar="SECONDS", help="limit the time of each run; implies --isolate")
    safe.add_argument("--memory", metavar="SIZE", help="limit the memory of a runner, such as 4GB; implies --isolate")
    add_trust(command)
    add_plugins(command)
    show = command.add_argument_group("report")
    show.add_argument("--json", action="store_true", help="print one JSON object")
    show.add_argument("--html", metavar="FILE", help="write a page with plots and the graph; opens without a network")
    show.add_argument("--verbose", action="store_true", help="print more figures of each output")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from rich.console import Console

    from onward.verification.verify import verify

    runners = [name.strip() for name in args.on.split(",")] if args.on else ["onnxruntime"]
    if "" in runners:
        raise OnwardError(f"--on {args.on}: write it as names with commas between, such as --on onnxruntime,torch")
    check_runners(runners)
    check_others(args.others)
    against = [*runners[1:], *(Path(other) if Path(other).exists() else other for other in args.others)]
    if not against:
        if args.on:
            raise OnwardError("there is nothing to compare with: give --on a second runner, or name another file")
        if args.sample:
            raise OnwardError("there is nothing to compare with: name the ONNX model of the function")
        against = ["torch"]
    with Steps(Console(stderr=True)) as begin:
        report = verify(
            args.model,
            against,
            source=runners[0],
            inputs=args.inputs,
            dims=dims(args.dim),
            seed=args.seed,
            hard=args.hard,
            quick=args.quick,
            atol=args.atol,
            rtol=args.rtol,
            bisect=args.bisect,
            all_nodes=args.all_nodes or bool(args.html),
            reduce_to=args.reduce,
            isolate=args.isolate,
            timeout=args.timeout,
            memory=nbytes(args.memory) if args.memory else None,
            sample=args.sample,
            library=args.library,
            progress=begin,
        )
    if args.html:
        from onward.report.verify_page import write_page

        write_page(report, Path(args.html))
    with until_unread():
        if args.json:
            print(json.dumps(report.to_json(), indent=2))
        else:
            from onward.report.verify_text import show

            show(report, output(), verbose=args.verbose)
    return {"same": 0, "different": 1, "failed": 2}[report.status]


def check_runners(names: list[str]) -> None:
    """Refuse what is neither a runner nor a file before anything is run."""
    from onward.runners import RUNNERS, is_known, near_runner

    for name in names:
        if not is_known(name) and not Path(name).exists():
            there = f"there are {', '.join(RUNNERS)}{near_runner(name)}"
            raise OnwardError(f"--on: there is no runner {name!r}; {there}")


def check_others(names: list[str]) -> None:
    """Refuse what is not there before anything is run."""
    from onward.gate.files import absent
    from onward.runners import is_known

    for name in names:
        if not is_known(name) and not Path(name).exists():
            raise OnwardError(absent(Path(name)))


class List(argparse.Action):
    """Prints the runners and exits, as `--help` does."""

    def __init__(self, option_strings: list[str], dest: str, help: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help=help)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from rich.table import Table

        from onward import runners

        runners.load_all()
        table = Table("runner", "installed", "what it is", "modes")
        for name in runners.RUNNERS:
            runner = runners.RUNNERS.get(name)
            assert runner is not None
            modes = "\n".join(f"{name}:{mode}  {about}" for mode, about in runner.modes.items())
            table.add_row(name, "yes" if runner.installed else f"no ({runner.package})", runner.about, modes)
        output().print(table)
        parser.exit()


def dims(pairs: list[str], option: str = "dim") -> dict[str, int]:
    """`batch=4` as {"batch": 4}."""
    found: dict[str, int] = {}
    for pair in pairs:
        name, _, size = pair.rpartition("=")
        if not name or not (size.isascii() and size.isdecimal()):
            raise OnwardError(f"--{option} {pair}: write it as NAME=SIZE, such as --{option} batch=4")
        found[name] = int(size)
    return found


def nbytes(size: str) -> int:
    """`4GB` or `500MB` in bytes."""
    units = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "B": 1}
    text = size.strip().upper()
    for unit, factor in units.items():
        if text.endswith(unit):
            try:
                return int(float(text.removesuffix(unit)) * factor)
            except (ValueError, OverflowError):
                break
    raise OnwardError(f"--memory {size}: write it as a number and a unit, such as 4GB or 500MB")
