"""The table of what backends refuse is of tests that exist, and lists that no longer hold are noticed."""

import re
from pathlib import Path

import numpy as np
import pytest
from harness import BACKENDS, check, floats, node_model, prepare_once
from refusals import EXPECTED, Watch

from onward.scoreboard.suite import forget_shapes

TESTS = Path(__file__).parents[1]


def test_the_tests_of_the_table_exist() -> None:
    files = {path.name: path.read_text() for path in TESTS.rglob("test_*.py")}
    for refusal in EXPECTED:
        file, _, function = refusal.test.partition("::")
        assert re.search(rf"^def {function}\(", files[file], re.MULTILINE), refusal


def test_what_is_not_listed_is_not_expected() -> None:
    cases = "attributes0-fixed0-4", "attributes0-fixed0-2"
    four, two = (Watch("test_conv.py::test_conv", case, "tensorflow") for case in cases)
    assert four.expects("tensorflow", "Conv 'c': tensorflow has no rule for Conv")
    assert not four.expects("tensorflow", "Conv 'c': it is too large")
    assert not four.expects("torch", "Conv 'c': tensorflow has no rule for Conv")
    assert not two.expects("tensorflow", "Conv 'c': tensorflow has no rule for Conv")


def test_what_is_no_longer_refused_fails() -> None:
    watch = Watch("test_conv.py::test_conv", "attributes0-fixed0-4", "tensorflow")
    watch.close()
    watch.ran.add("tensorflow")
    with pytest.raises(pytest.fail.Exception, match="no longer refused"):
        watch.close()


def in_a_function() -> None:
    check(*node_model("Relu", [floats(3)]))


def test_what_compares_generated_code_runs_for_every_backend(run_on: str) -> None:
    in_a_function()
    assert run_on in BACKENDS


def test_what_compares_nothing_runs_once(run_on: str) -> None:
    assert run_on == ""


def test_what_is_the_same_is_run_once() -> None:
    ran: set[object] = set()
    x, w = floats(2, 3), floats(3)
    for value, other in ((w, w + 1), (np.array(["a", "b"], object), np.array(["a", "c"], object))):
        op, given = ("Add", x) if value is w else ("Equal", value)
        first, second = (node_model(op, [given, each], fixed=[1])[0] for each in (value, other))
        assert prepare_once("torch", first, ran) is not None
        assert prepare_once("torch", forget_shapes(first), ran) is None
        assert prepare_once("torch", second, ran) is not None
