"""What a layer alone loses is what the model loses with all other layers in floats."""

from pathlib import Path

import numpy as np
import pytest

import onward
from onward.bits.eight.alone import alone, effects
from onward.bits.eight.observed import Observed, is_layer, pieces
from onward.bits.eight.quantizer import Quantizer
from onward.bits.eight.ready import ready
from onward.model import Model
from onward.runners import prepare

DIGITS = Path("examples/digits/digits.onnx")
RNG = np.random.default_rng(4)


@pytest.fixture(scope="module")
def model() -> Model:
    return ready(onward.load(DIGITS), {"image": np.zeros((1, 1, 8, 8), np.float32)})


def test_alone_is_as_the_quantizer_makes_it(model: Model) -> None:
    samples = [{"image": RNG.random((16, 1, 8, 8)).astype(np.float32)}]
    quantizer = Quantizer(model, pieces(model, samples)[:1], Observed.on(model, samples))
    layers = [node.name or "" for node in model.ir.graph if is_layer(node)]
    expected = prepare("onnxruntime", model)(samples[0])["logits"]
    lost = effects(model, layers, quantizer.weights, quantizer.ranges("all"), samples, lambda words: None)
    for name in (layers[0], layers[3], layers[-1]):
        only = quantizer.made([other for other in layers if other != name], "all")
        ours = alone(model, name, quantizer.weights[name], quantizer.ranges("all"))
        theirs, found = (prepare("onnxruntime:unoptimized", one)(samples[0])["logits"] for one in (only, ours))
        assert np.linalg.norm(found - theirs) < 0.1 * np.linalg.norm(theirs - expected)
        assert lost[name] == pytest.approx(np.linalg.norm(theirs - expected) / np.linalg.norm(expected), rel=0.05)
