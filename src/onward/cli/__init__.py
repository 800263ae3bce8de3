"""The command line: `onward COMMAND …`, one file a command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from onward import __version__
from onward.errors import OnwardError, VerificationError


def parser() -> argparse.ArgumentParser:
    from onward.cli import convert, inspect

    top = argparse.ArgumentParser(
        prog="onward",
        description="Moves machine-learning models between frameworks through ONNX and checks that they stay the same.",
    )
    top.add_argument("--version", action="version", version=f"onward {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in (convert, inspect):
        command.add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command. Exit code 0: done; 1: the result is not the same model; 2: bad input or usage."""
    args = parser().parse_args(argv)
    try:
        args.run(args)
    except VerificationError as error:
        return _fail(error, 1)
    except OnwardError as error:
        return _fail(error, 2)
    except KeyboardInterrupt:
        print("onward: interrupted", file=sys.stderr)
        return 130
    return 0


def _fail(error: OnwardError, code: int) -> int:
    print(f"onward: {' '.join(str(error).split())}", file=sys.stderr)
    return code
