"""What backends refuse in the tests of ops, and why: the one table of it.

A refusal that is not listed fails its test, and so does a listed one that no longer happens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import pytest

PARTIAL = {
    "keras": "its layers take seconds to make: it runs the first case of each test",
    "jax": "it compiles op by op: it runs every tenth case of each test, and all of ONNX's own",
}
"""Backends that do not run every case, and why."""
EVERY = {"jax": 10}
"""Of which of them more than the first case is run."""


@dataclass(frozen=True)
class Refusal:
    """A backend refuses the cases of a test whose parameters match `cases`, or fails, in words that match `says`."""

    backend: str
    test: str
    says: str
    why: str
    cases: str = ""

    def concerns(self, backend: str, test: str, case: str) -> bool:
        return (backend, test) == (self.backend, self.test) and re.search(self.cases, case) is not None


NO_RULE = "TensorFlow has windows over one to three axes"
NO_BITS = "TensorFlow has no tensors of eight-bit floats that keep their bits"
NO_RANK = "TensorFlow's pools are those of a known rank"
NO_SHAPE = "Keras makes layers for tensors of a known rank, and no rank follows from unknown shapes"
NO_LISTS = "Keras has tensors as inputs and outputs, no lists and no optional values"
NO_INPUTS = "Keras has no models without inputs"
NO_STRINGS = "Keras infers no shapes of layers that look up strings"
INFER = "Could not automatically infer the output shape"
LISTS = "a Keras model has tensors, and its (in|out)put"

EXPECTED = [
    Refusal("tensorflow", "test_conv.py::test_conv", "no rule for Conv", NO_RULE, "-4$"),
    Refusal("tensorflow", "test_pool.py::test_pool_over_four_axes", "no rule for", NO_RULE),
    Refusal("tensorflow", "test_cast.py::test_bit_patterns", "cannot cast the bits of", NO_BITS, "float8"),
    Refusal("tensorflow", "test_unknown_rank_images.py::test_op", "no rule for Global", NO_RANK, "^Global"),
    Refusal("keras", "test_pool.py::test_pool_over_four_axes", "no rule for", NO_RULE),
    Refusal("keras", "test_ml_encode.py::test_a_key_that_is_no_number", INFER, NO_STRINGS),
    Refusal("keras", "test_control_flow.py::test_sequences_and_optionals_carried", INFER, NO_LISTS),
    Refusal("keras", "test_index.py::test_gather_nd", INFER, NO_SHAPE),
    Refusal("keras", "test_sample.py::test_affine_grid", INFER, NO_SHAPE),
    *(
        Refusal("keras", f"test_shape.py::test_{name}", INFER, NO_SHAPE)
        for name in ("reshape", "unsqueeze", "squeeze", "squeeze_along_no_axis", "expand", "constant_of_shape")
    ),
    *(
        Refusal("keras", f"test_sequence.py::test_{name}", LISTS, NO_LISTS)
        for name in ("insert", "erase", "at_and_length", "split", "optionals", "sequence_map")
    ),
    Refusal("keras", "test_sequence.py::test_lists_are_never_changed_in_place", LISTS, NO_LISTS),
    Refusal("keras", "test_shape.py::test_constant", "this one has none", NO_INPUTS),
    Refusal("keras", "test_signal.py::test_windows", "this one has none", NO_INPUTS),
    Refusal("keras", "test_differential.py::test_found", "this one has none", NO_INPUTS),
]


@dataclass
class Watch:
    """What happens in one test."""

    test: str
    """Its file and function: test_conv.py::test_conv."""
    case: str
    """Its parameters, as pytest writes them, without the backend."""
    backend: str
    """The backend that it runs for; '' if it is a test of no backend in particular."""
    ran: set[str] = field(default_factory=set)
    """The backend, and its modes, that a model ran on."""
    refused: set[Refusal] = field(default_factory=set)

    def expects(self, backend: str, message: str) -> bool:
        """Whether a refusal stands in the table."""
        found = {r for r in self.listed(backend) if re.search(r.says, message)}
        self.refused |= found
        return bool(found)

    def listed(self, backend: str) -> set[Refusal]:
        return {refusal for refusal in EXPECTED if refusal.concerns(backend, self.test, self.case)}

    def close(self) -> None:
        """Fails if something was listed and did not happen."""
        gone = {refusal for backend in self.ran for refusal in self.listed(backend)} - self.refused
        if gone:
            words = ", ".join(f"{refusal.backend}: {refusal.says}" for refusal in gone)
            pytest.fail(f"no longer refused, take it out of tests/ops/refusals.py: {words}", pytrace=False)


BACKEND = "run_on"
"""The parameter of a test that says which backend it runs for."""


def backend_of(item: pytest.Item) -> str:
    call = getattr(item, "callspec", None)
    return "" if call is None else call.params.get(BACKEND, "")


def is_left_out(item: pytest.Item) -> bool:
    """Whether it is not among the cases of a test that a backend runs, which does not run all."""
    call = getattr(item, "callspec", None)
    if call is None or backend_of(item) not in PARTIAL:
        return False
    place = sum(index for name, index in call.indices.items() if name != BACKEND)
    every = EVERY.get(backend_of(item))
    return place > 0 if every is None else place % every > 0


def watch(item: pytest.Item) -> Watch:
    name, _, case = item.name.partition("[")
    backend = backend_of(item)
    return Watch(f"{item.path.name}::{name}", case.removesuffix("]").removeprefix(backend).removeprefix("-"), backend)
