"""Writes the pages of this folder that say what the package says of itself: `python docs/reference/pages.py`.

`cli.md` comes from the parsers of the command line, `python.md` from the signatures and docstrings of the public names,
`dataframes.md` from the rules for functions on data frames.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onward
from onward import cli, errors
from onward.report import dataframes

FOLDER = Path(__file__).parent
WIDEST = 100
"""Characters of a signature that is printed on one line."""

CLI = """\
# The command line: every option

Written by `make coverage` from the parsers themselves.
[The guide](../guide/command-line.md) says how the commands behave.
"""
PYTHON = """\
# Python: every public name

Written by `make coverage` from the signatures and docstrings themselves. `import onward` loads no framework: a function
imports the one that it needs.
"""


def commands(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from commands(child)


def escaped(text: str) -> str:
    """A help text for a cell of a table: code between backticks stays as it is."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else re.sub(r"([*|<\[])", r"\\\1", part) for part in parts)


def spelled(action: argparse.Action) -> str:
    """An option or argument as it is typed: `--to FORMAT`, `MODEL`, `[OTHER...]`."""
    value = action.metavar or action.dest.upper()
    if action.option_strings:
        return action.option_strings[-1] + ("" if action.nargs == 0 else f" {value}")
    return f"[{value}...]" if action.nargs == "*" else str(value)


def meaning(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    told = escaped(parser._get_formatter()._expand_help(action)) if action.help else ""
    if action.choices is not None:
        listed = ", ".join(f"`{choice}`" for choice in action.choices)
        told = f"{told}; one of {listed}" if told else f"one of {listed}"
    return told


def command(parser: argparse.ArgumentParser) -> list[str]:
    """A section: how the command is called, its options by group, its examples."""
    shown = [a for a in parser._actions if not isinstance(a, argparse._HelpAction | argparse._SubParsersAction)]
    needed = [spelled(a) for a in shown if not a.option_strings or a.required]
    children = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    tail = [str(a.metavar) + " ..." for a in children] or ["[options]"]
    lines = ["", f"## {parser.prog}", "", escaped(parser.description or ""), ""]
    lines += ["```", " ".join([parser.prog, *needed, *tail]), "```"]
    for group in parser._action_groups:
        rows = [f"| `{spelled(a)}` | {meaning(parser, a)} |" for a in group._group_actions if a in shown]
        if rows:
            standard = group.title in ("positional arguments", "options")
            lines += ["", *([] if standard else [f"{escaped(str(group.title)).capitalize()}:", ""])]
            lines += [f"| {'argument' if group.title == 'positional arguments' else 'option'} | meaning |", "|---|---|"]
            lines += rows
    if parser.epilog:
        lines += ["", "```", parser.epilog.strip(), "```"]
    return lines


def cli_page() -> str:
    return CLI + "\n".join(line for parser in commands(cli.parser()) for line in command(parser)) + "\n"


def default(value: Any) -> str:
    """A default as it is typed, or dots where it has no short form."""
    if inspect.isclass(value):
        return value.__name__
    return repr(value) if value is None or isinstance(value, bool | int | float | str | tuple) else "..."


def signature(name: str, called: Any) -> str:
    """The call of a function or class, each parameter with its type and default, on lines that can be read."""
    told, parts, star = inspect.signature(called), [], False
    for parameter in told.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
        star |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        typed = "" if parameter.annotation is parameter.empty else f": {parameter.annotation}"
        value = "" if parameter.default is parameter.empty else f" = {default(parameter.default)}"
        parts.append(f"{prefix}{parameter.name}{typed}{value}")
    result = "" if told.return_annotation in (told.empty, None, "None") else f" -> {told.return_annotation}"
    line = f"{name}({', '.join(parts)}){result}"
    if len(line) <= WIDEST:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){result}"])


def docstring(told: Any) -> str:
    """Its paragraphs; examples with a prompt become blocks of code."""
    paragraphs = re.split(r"\n\s*\n", inspect.getdoc(told) or "")
    fenced = (
        f"```pycon\n{inspect.cleandoc(text)}\n```" if text.lstrip().startswith(">>>") else text for text in paragraphs
    )
    return "\n\n".join(fenced)


def first_line(told: Any) -> str:
    return escaped((inspect.getdoc(told) or "").partition("\n")[0])


def entry(name: str, told: Any) -> list[str]:
    """A section of a function, or of a class with its public methods."""
    lines = ["", f"## {name}", ""]
    if inspect.isclass(told):
        lines += [docstring(told)]
        methods = [
            (n, m) for n, m in vars(told).items() if not n.startswith("_") and (callable(m) or isinstance(m, property))
        ]
        rows = [f"| `{n}{'' if isinstance(m, property) else '()'}` | {first_line(m)} |" for n, m in methods]
        return lines + (["", "| | |", "|---|---|", *rows] if rows else [])
    return [*lines, "```python", signature(f"onward.{name}", told), "```", "", docstring(told)]


def table(module: Any, names: list[str]) -> list[str]:
    return ["| name | meaning |", "|---|---|", *(f"| `{n}` | {first_line(getattr(module, n))} |" for n in names)]


def python_page() -> str:
    lines: list[str] = []
    for name in sorted(onward.__all__, key=lambda name: (name[0].isupper(), name)):
        told = getattr(onward, name)
        if not inspect.ismodule(told):
            lines += entry(name, told)
    lines += ["", "## training", "", "[The guide](../guide/training.md) says how to train.", ""]
    lines += table(onward.training, sorted(onward.training.__all__, key=lambda name: (name[0].isupper(), name)))
    lines += ["", "## plugins", "", "[The guide](../guide/custom-ops.md) says how to write one.", ""]
    lines += table(onward.plugins, sorted(onward.plugins.__all__, key=lambda name: (name[0].isupper(), name)))
    op = onward.plugins.CustomOp
    methods = [(n, m) for n, m in vars(op).items() if not n.startswith("_") and callable(m)]
    lines += ["", docstring(op), "", "| method | meaning |", "|---|---|"]
    lines += [f"| `op.{n}` | {first_line(m)} |" for n, m in methods]
    raised = [n for n, value in vars(errors).items() if inspect.isclass(value) and value.__module__ == errors.__name__]
    lines += [
        "",
        "## errors",
        "",
        "Every exception that Onward raises on purpose is an `OnwardError`.",
        "",
    ]
    return PYTHON + "\n".join(lines + table(errors, raised)) + "\n"


PAGES = {
    FOLDER / "cli.md": cli_page,
    FOLDER / "dataframes.md": dataframes.page,
    FOLDER / "python.md": python_page,
}

if __name__ == "__main__":
    for path, made in PAGES.items():
        path.write_text(made(), encoding="utf-8")
        print(f"wrote {path}")
