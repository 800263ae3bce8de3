"""Functions that call one another many times: a small file would become a graph of any size."""

from __future__ import annotations

from typing import Any

import pytest

from onward.errors import InvalidModelError

tf = pytest.importorskip("tensorflow")


def nested(depth: int) -> Any:
    """A function that calls one ten times, which calls another ten times, and so on."""
    inner = tf.function(lambda x: -x, input_signature=[tf.TensorSpec([2])])
    for _ in range(depth):

        def ten_times(x: Any, call: Any = inner) -> Any:
            for _ in range(10):
                x = call(x)
            return x

        inner = tf.function(ten_times, input_signature=[tf.TensorSpec([2])], autograph=False)
    return inner


def test_functions_that_call_one_another(monkeypatch: pytest.MonkeyPatch) -> None:
    import onward

    assert len(list(onward.from_tensorflow(nested(2)).ir.graph)) >= 100
    monkeypatch.setenv("ONWARD_MAX_NODES", "2000")
    with pytest.raises(InvalidModelError, match=r"so often, .* that it has more than 2,000 operations; .*MAX_NODES"):
        onward.from_tensorflow(nested(4))
