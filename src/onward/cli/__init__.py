"""The command line: `onward COMMAND …`, one file a command."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from functools import partial

from onward.advice.extras import missing_packages
from onward.advice.options import typed
from onward.cli.imports import load_lean
from onward.cli.parser import Parser, check_options, unfinished
from onward.cli.streams import REFUSALS, checked_streams, plain_warnings, silence, unheard, until_unread
from onward.cli.supervise import supervised
from onward.cli.version import Version
from onward.errors import OnwardError, VerificationError
from onward.gate import trusting

LONGEST = 1000
"""Characters of an error message: a name in a file may be longer."""
INTERRUPTED = 130
"""The exit code that shells give to a command which was stopped by Ctrl-C."""
COMMANDS = (
    "convert",
    "inspect",
    "view",
    "verify",
    "run",
    "diff",
    "extract",
    "merge",
    "layout",
    "partition",
    "train",
    "plugins",
    "zoo",
    "scoreboard",
    "site",
    "completion",
)
PLACES = {name: f"graphs.{name}" for name in ("diff", "extract", "merge")}
"""Where a command is that has no file of its name beside this one."""


def parser(only: str = "") -> argparse.ArgumentParser:
    """For all commands, or for a line that begins with `only`, if that is one of them: the others take time."""
    top = Parser(
        prog="onward",
        description="Moves machine-learning models between frameworks through ONNX and checks that they stay the same.",
    )
    top.add_argument("--version", action=Version, help="show the versions of Onward and of the frameworks, and exit")
    top.add_argument("--traceback", action="store_true", help="on an error, show where in Onward it was raised")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in [only] if only in COMMANDS else COMMANDS:
        importlib.import_module(f"onward.cli.{PLACES.get(name, name)}").add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Exit code 0: done; 1: the result is not the same model; 2: bad input or usage; 3: not verified.

    That of the process itself, which is run without arguments here, is watched by another process.
    """
    if argv is not None:
        return _main(argv)
    with checked_streams():
        return supervised(partial(_alone, sys.argv[1:]))


def _alone(words: Sequence[str]) -> int:
    """A command that has the process to itself."""
    load_lean()
    if "--traceback" in words:
        return _main(words)
    with unheard():
        return _main(words)


def _main(words: Sequence[str]) -> int:
    code = 0
    with checked_streams():
        try:
            with until_unread(), plain_warnings():
                code = _run(words)
        except KeyboardInterrupt:
            print("onward: interrupted", file=sys.stderr)
            return INTERRUPTED
        except OSError as error:
            if error.errno not in REFUSALS or error.filename is not None:
                raise
            silence(sys.stdout)
            return _fail(OnwardError(f"what is printed cannot be written: {error.strerror}"), 2)
    return code


def _run(words: Sequence[str]) -> int:
    top = parser(*words[:1])
    if group := unfinished(top, words):
        group.print_help(sys.stderr)
        return 2
    check_options(top, words)
    args = top.parse_args(words)
    try:
        with typed(), trusting(getattr(args, "trust", False)), missing_packages():
            if named := getattr(args, "plugin", None):
                from onward.plugins.find import load

                load(*named)
            return int(args.run(args) or 0)
    except OnwardError as error:
        if args.traceback:
            raise
        return _fail(error, 1 if isinstance(error, VerificationError) else 2)


def _fail(error: OnwardError, code: int) -> int:
    """Print one line, whatever names from the file the message quotes."""
    line = "".join(ch if ch.isprintable() else "\ufffd" for ch in " ".join(str(error).split()))
    print(f"onward: {line[:LONGEST]}", file=sys.stderr)
    return code
