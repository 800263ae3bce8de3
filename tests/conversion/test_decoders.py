"""Language models as ONNX Runtime GenAI and Optimum ship them are converted and verified as they come."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoders import decoder, steps

import onward
from onward import runners

KINDS: dict[str, dict[str, Any]] = {
    "4 bits": {},
    "4 bits, symmetric, large blocks": {"zeros": False, "block": 32},
    "8 bits": {"bits": 8},
    "float32": {"bits": None},
    "float16": {"dtype": np.float16, "zeros": False},
    "may round to 8 bits": {"accuracy": 4, "block": 32},
    "rotations of their own": {"positions": True},
    "cache of int8": {"int8_cache": True},
    "cache with more room": {"room": 40},
    "lengths given": {"counted": False},
    "lengths given, more room": {"counted": False, "room": 40},
    "mixture of experts": {"bits": None, "experts": 4},
    "queries, keys and values in one": {"packed": True},
    "window": {"local_window_size": 4},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_becomes_pytorch_and_is_verified(kind: str, tmp_path: Path) -> None:
    done = onward.convert(decoder(**KINDS[kind]), to="torch", out=tmp_path / "net")
    (verdict,) = done.verdicts
    assert verdict.status == "verified"
    assert ("without the rounding to fewer bits" in verdict.words) == ("accuracy" in KINDS[kind])


@pytest.mark.parametrize("kind", ["float16", "rotations of their own", "cache of int8"])
def test_a_decoder_becomes_tensorflow_and_is_verified(kind: str, tmp_path: Path) -> None:
    done = onward.convert(decoder(**KINDS[kind]), to="tensorflow", out=tmp_path / "net")
    assert [verdict.status for verdict in done.verdicts] == ["verified"]


def test_other_rotations_are_found_out() -> None:
    net, other = decoder(), decoder()
    table = next(tensor for tensor in other.graph.initializer if tensor.name == "sin_cache")
    table.raw_data = np.roll(np.frombuffer(table.raw_data, np.float32), 8).tobytes()
    assert onward.verify(net, other).status == "different"


@pytest.mark.parametrize("kind", ["4 bits", "cache of int8", "rotations of their own"])
def test_a_prompt_and_sixteen_steps_give_the_scores_of_onnx_runtime(kind: str) -> None:
    net = decoder(**KINDS[kind])
    names = [value.name for value in net.graph.output]
    prompt = np.array([[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]])
    runs = [runners.prepare(runner, onward.load(net)) for runner in ("onnxruntime", "torch")]
    expected, found = (steps(net, lambda feeds, run=run: list(map(run(feeds).get, names)), prompt, 16) for run in runs)
    assert len(found) == 17
    for wanted, got in zip(expected, found, strict=True):
        np.testing.assert_allclose(got[0], wanted[0], rtol=2e-4, atol=2e-4)
        assert [x.shape for x in got] == [x.shape for x in wanted]
