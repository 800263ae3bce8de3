"""Fourier transforms and windows against ONNX Runtime."""

import numpy as np
import pytest
from harness import check, floats, node_model, source
from onnx.reference import ReferenceEvaluator


def by_reference(model, feed):
    """Not by ONNX Runtime: it crashes on some axes, and mirrors frequencies that are not in a spectrum."""
    names = [v.name for v in model.graph.input]
    return ReferenceEvaluator(model).run(None, dict(zip(names, feed, strict=True)))


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -2, None])
@pytest.mark.parametrize("length", [None, 5, 9])
@pytest.mark.parametrize("inverse", [0, 1])
def test_dft(parts, axis, length, inverse):
    inputs = [
        floats(6, 7, parts),
        None if length is None else np.array(length),
        None if axis is None else np.array(axis),
    ]
    while inputs[-1] is None:
        inputs.pop()
    fixed = [i for i in range(1, len(inputs)) if inputs[i] is not None]
    for kept in ([], fixed):
        for onesided in (0, 1) if parts == 1 and not inverse else (0,):
            model, feed = node_model("DFT", inputs, fixed=kept, inverse=inverse, onesided=onesided, opset=20)
            check(model, feed, expected=by_reference(model, feed))


@pytest.mark.parametrize("length", [None, 5, 12])
def test_inverse_of_one_sided_spectra(length):
    x = floats(3, 6, 2)
    inputs = [x] if length is None else [x, np.array(length)]
    model, feed = node_model("DFT", inputs, fixed=tuple(range(1, len(inputs))), inverse=1, onesided=1, opset=20)
    check(model, feed, expected=by_reference(model, feed))


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("length", [None, 8, 7])
def test_stft(parts, windowed, length):
    window = floats(length or 16) if windowed else None
    inputs = [floats(2, 30, parts), np.array(3), window, None if length is None else np.array(length)]
    fixed = [i for i in range(1, 4) if inputs[i] is not None]
    for kept in ([], fixed):
        for onesided in (0, 1) if parts == 1 else (0,):
            model, feed = node_model("STFT", inputs, fixed=kept, onesided=onesided, opset=17)
            check(model, feed, expected=None if windowed or length else by_reference(model, feed))


@pytest.mark.parametrize("op", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
@pytest.mark.parametrize("kind", [1, 11])
def test_windows(op, periodic, kind):
    for fixed in ((), (0,)):
        model = node_model(op, [np.array(10)], fixed=fixed, periodic=periodic, output_datatype=kind)
        check(*model, atol=1e-6)
    assert "_window(" in source(model[0])


@pytest.mark.parametrize("fixed", [(), (0, 1, 2, 3, 4)])
@pytest.mark.parametrize("bins", [4, 20])
def test_mel_weight_matrix(bins, fixed):
    inputs = [np.array(bins), np.array(64), np.array(8192), np.array(20, np.float32), np.array(4000, np.float32)]
    check(*node_model("MelWeightMatrix", inputs, fixed=fixed))
