"""What a command prints to stderr."""

import re

DONE = re.compile(r".+: (\d+ ms|\d+\.\d (s|min))")
"""A step that was done, and the time that it took."""


def problem(errors: str) -> str:
    """The line that says what is wrong; before it are steps that were done, and nothing else."""
    *steps, said = errors.splitlines()
    assert said.startswith("onward: ") and all(map(DONE.fullmatch, steps)), errors
    return said
