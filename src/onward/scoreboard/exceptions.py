"""Cases of ONNX's suite that do not pass as they are written, each with its reason.

An unexpected pass is an error too: the tables say what is true today. Those of one backend are in its description.
"""

from __future__ import annotations

from onward.backends.backend import backend, names

RANDOM = "the expected output is one random draw; its statistics are tested instead"

DRAWS = dict.fromkeys(
    (
        "test_bernoulli",
        "test_bernoulli_double",
        "test_bernoulli_double_expanded",
        "test_bernoulli_expanded",
        "test_bernoulli_seed",
        "test_bernoulli_seed_expanded",
    ),
    RANDOM,
)


def exceptions(runner: str, unknown_shapes: bool = False) -> dict[str, str]:
    """By name, the cases that a runner of generated source does not pass; of other runners nothing is known."""
    name, _, mode = runner.partition(":")
    return {**DRAWS, **backend(name).exceptions(mode, unknown_shapes)} if name in names() else {}


def sometimes(runner: str) -> set[str]:
    """Reasons that do not keep a case from passing: by a draw, or on one processor and not on another."""
    return {RANDOM, *backend(runner.partition(":")[0]).sometimes}
