"""`onward completion`: a script by which a shell completes commands, options and their values.

The script is made from the parsers and holds all that it needs: no process is started when a key is pressed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from onward.cli.parser import children

SHELLS = ("bash", "zsh", "fish")
EPILOG = """put one of these into the file that your shell starts with:
  eval "$(onward completion bash)"         ~/.bashrc
  eval "$(onward completion zsh)"          ~/.zshrc, after compinit
  onward completion fish | source          ~/.config/fish/config.fish"""

WORDS = """\
# Prints the words that may follow: the command so far is in $1, the word before in $2.
_onward_words() {{
    case "$1 $2" in
{values}
    *) case "$1" in
{options}
        esac ;;
    esac
}}

# Prints the command that the words given end in, such as "onward train prepare".
_onward_command() {{
    local place=onward word
    for word in "$@"; do
        case "$place $word" in
        {commands}) place="$place $word" ;;
        esac
    done
    printf '%s' "$place"
}}
"""
BASH = """
_onward() {
    local current=${COMP_WORDS[COMP_CWORD]} place words
    place=$(_onward_command "${COMP_WORDS[@]:1:COMP_CWORD-1}")
    words=$(_onward_words "$place" "${COMP_WORDS[COMP_CWORD-1]}")
    COMPREPLY=()
    case "$words $current" in
    *:files*) ;;
    --*" "[!-]*|--*" ") ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    esac
}
complete -o default -F _onward onward
"""
ZSH = """
_onward() {
    local place found
    place=$(_onward_command "${(@)words[2,CURRENT-1]}")
    found=$(_onward_words "$place" "${words[CURRENT-1]}")
    case "$found ${words[CURRENT]}" in
    *:files*) _files ;;
    --*" "[!-]*|--*" ") _files ;;
    *) compadd -- ${=found} ;;
    esac
}
compdef _onward onward
"""
FILES = ":files"
"""Stands for a value that is a path, or one that only the user knows."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "completion",
        help="print a script that completes commands and options in a shell",
        description="Print a script by which a shell completes commands, options and their values.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.add_argument("shell", choices=SHELLS, help="the shell that you use")
    command.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    from onward.cli import parser

    print(script(parser(), args.shell), end="")


def script(top: argparse.ArgumentParser, shell: str) -> str:
    """What the shell reads."""
    if shell == "fish":
        return "\n".join(["complete -c onward -f", *_fish(top)]) + "\n"
    return _words(top) + (BASH if shell == "bash" else ZSH)


def _all(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for child in children(parser).values():
        yield from _all(child)


def _words(top: argparse.ArgumentParser) -> str:
    """What may follow each word, as functions that every shell but fish understands."""
    values, options = [], []
    for one in _all(top):
        by_choices: dict[str, list[str]] = {}
        for action in one._actions:
            if action.option_strings and action.nargs != 0:
                by_choices.setdefault(_choices(action), []).extend(action.option_strings)
        for choices, names in by_choices.items():
            places = "|".join(f'"{one.prog} {name}"' for name in names)
            values.append(f"    {places}) echo '{choices}' ;;")
        first = [*children(one), *(choice for choice in _positional(one))]
        words = " ".join([*first, *(name for name in one._option_string_actions if name.startswith("--"))])
        options.append(f"        \"{one.prog}\") echo '{words}' ;;")
    commands = "|".join(f'"{one.prog}"' for one in _all(top) if one is not top)
    return WORDS.format(values="\n".join(values), options="\n".join(options), commands=commands)


def _positional(parser: argparse.ArgumentParser) -> list[str]:
    """The words that a command itself may be followed by."""
    given = [action for action in parser._actions if not action.option_strings]
    return [str(c) for a in given if not isinstance(a, argparse._SubParsersAction) for c in a.choices or ()]


def _choices(action: argparse.Action) -> str:
    return " ".join(map(str, action.choices)) if action.choices is not None else FILES


def _fish(top: argparse.ArgumentParser) -> Iterator[str]:
    for one in _all(top):
        when = _quoted(_seen(top, one))
        for name, child in children(one).items():
            yield f"complete -c onward -n {when} -a {name} -d {_quoted(child.description or '')}"
        if not children(one):
            words = _positional(one)
            yield f"complete -c onward -n {when} " + (f"-a {_quoted(' '.join(words))}" if words else "-F")
        for action in one._actions:
            for name in action.option_strings:
                kind = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                value = f" -x -a {_quoted(_choices(action))}" if action.choices is not None else " -rF"
                about = _quoted((action.help or "").replace("%%", "%"))
                yield f"complete -c onward -n {when} {kind}{'' if action.nargs == 0 else value} -d {about}"


def _seen(top: argparse.ArgumentParser, one: argparse.ArgumentParser) -> str:
    """The condition that a command was typed, and none below it."""
    typed = one.prog.split()[1:]
    wanted = [f"__fish_seen_subcommand_from {name}" for name in typed]
    others = set(children(one)) | (set(children(top)) - {*typed} if not typed else set())
    if len(typed) == 1:
        others |= {name for name, other in children(top).items() if typed[0] in children(other)}
    if others:
        wanted.append(f"not __fish_seen_subcommand_from {' '.join(sorted(others))}")
    return "; and ".join(wanted)


def _quoted(text: str) -> str:
    return "'" + " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'") + "'"
