"""Gradients of Fourier transforms."""

import numpy as np
import pytest
from gradient_checks import check_op, single

from onward.training.autodiff.derivatives import gradient
from onward.training.autodiff.reverse import MissingGradient


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).normal(size=shape)


FORMS = [(0, 0, 2), (1, 0, 2), (0, 0, 1), (0, 1, 1), (1, 0, 1)]


@pytest.mark.parametrize(("inverse", "onesided", "parts"), FORMS)
def test_dft(inverse: int, onesided: int, parts: int) -> None:
    check_op("DFT", {"x": normal(2, 4, parts)}, inverse=inverse, onesided=onesided)


@pytest.mark.parametrize(("inverse", "onesided", "parts"), FORMS)
@pytest.mark.parametrize("length", [6, 3])
def test_dft_of_another_length(inverse: int, onesided: int, parts: int, length: int) -> None:
    inputs = {"x": normal(5, 2, parts), "length": np.asarray(length), "axis": np.asarray(-3)}
    check_op("DFT", inputs, fixed=["axis"], second=False, inverse=inverse, onesided=onesided)


def test_the_inverse_of_one_side_is_refused() -> None:
    model = single("DFT", {"x": normal(2, 4, 2)}, inverse=1, onesided=1)
    with pytest.raises(MissingGradient, match="one side"):
        gradient(model, "y0", ["x"])


def test_stft() -> None:
    step = np.asarray(3)
    check_op("STFT", {"x": normal(1, 8, 1), "s": np.asarray(2), "w": normal(4)}, onesided=1)
    check_op("STFT", {"x": normal(1, 8, 1), "s": step, "_w": step, "l": np.asarray(4)}, onesided=0, second=False)
    check_op("STFT", {"x": normal(2, 8, 1), "s": step, "w": normal(4), "l": np.asarray(4)}, onesided=0, second=False)
