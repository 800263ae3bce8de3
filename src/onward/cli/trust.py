"""`--trust`, for every command that opens files of frameworks."""

from __future__ import annotations

import argparse

HELP = "allow code in a file, or beside it, to run: pickles, Lambda layers, packages that Onward did not write here"


def add_trust(command: argparse.ArgumentParser) -> None:
    command.add_argument("--trust", action="store_true", help=f"{HELP} (default: refuse such files)")
