"""Reads command lines: an option is written in full, and a word that is misspelt gets a suggestion."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from onward.advice.nearest import meant


class Parser(argparse.ArgumentParser):
    """As argparse has it, but `--inputs` is never taken for `--inputs-nhwc`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{**kwargs, "allow_abbrev": False})
        self._is_mixing = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Files may stand before and after options, in every order."""
        found, rest = super().parse_known_args(args, namespace)
        if not rest or self._is_mixing or children(self) or "--" in args:
            return found, rest
        self._is_mixing = True
        try:
            return super().parse_known_intermixed_args(args)
        finally:
            self._is_mixing = False

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            words = f"there is no {value!r}; there are {', '.join(known)}{meant(str(value), known)}"
            raise argparse.ArgumentError(action, words)

    def error(self, message: str) -> NoReturn:
        """One line on how it is called, and one that says what is wrong: all options would bury that."""
        needed = [action for action in self._actions if action.required]
        words = [" ".join([*action.option_strings[-1:], _value(action)]) for action in needed]
        usage = f"usage: {' '.join([self.prog, *words])} … ({self.prog} --help says more)"
        self.exit(2, f"{usage}\n{self.prog}: error: {message}\n")


def _value(action: argparse.Action) -> str:
    return str(action.metavar or action.dest.upper())


def _bare(option: str) -> str:
    return option.lstrip("-")


def children(parser: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The commands below a command."""
    found = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return next((action.choices for action in found), {})


def unfinished(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.ArgumentParser | None:
    """The command after which a line ends that goes on with the name of one below it."""
    for word in words:
        below = children(parser)
        if word not in below:
            return None
        parser = below[word]
    return parser if children(parser) else None


def check_options(parser: argparse.ArgumentParser, words: Sequence[str], above: Sequence[str] = ()) -> None:
    """Refuse an option that a command does not have, before anything is said of what is missing.

    `above` are the options of the commands above it.
    """
    below = children(parser)
    own = list(parser._option_string_actions)
    for place, word in enumerate(words):
        if word == "--":
            return
        if below and not word.startswith("-"):
            if word in below:
                check_options(below[word], words[place + 1 :], [*above, *own])
            return
        name = word.partition("=")[0]
        if name.startswith("--") and " " not in word and name not in own:
            where = f"; write it before {parser.prog.split()[-1]}" if name in above else meant(name, own, _bare)
            parser.error(f"there is no option {name}{where}")
