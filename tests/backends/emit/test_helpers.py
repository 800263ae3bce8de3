"""Runtime helpers of a backend, and those that several take from one place."""

import pytest

from onward.backends.emit.helpers import COMMON, load_runtime


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_common_helpers_are_copied_with_what_they_need(backend: str) -> None:
    source = load_runtime(f"onward.backends.{backend}.runtime").source({"sequence_insert", "ngram_counts"}, "Helpers.")
    assert "def sequence_insert(" in source
    assert "from collections import Counter" in source
    assert "onward" not in source


def test_a_backend_takes_the_common_files_that_it_names() -> None:
    assert COMMON == "onward.backends.shared.runtime"
    assert "ngram_counts" not in load_runtime("onward.backends.tensorflow.runtime").definitions
