"""ONNX's own suite on Octave."""

from __future__ import annotations

import pytest

from onward.advice.extras import is_installed
from onward.scoreboard import suite
from onward.scoreboard.exceptions import exceptions

FAMILIES = (
    "add|sub|mul|div|mod|pow|clip|where|cast|bitshift|reshape|squeeze|unsqueeze|transpose|slice|pad|matmul_|gemm|conv_"
    "|convtranspose|maxpool|averagepool|batchnorm|layer_normalization_4d|softmax|gelu|reduce_sum|argmax|cumsum"
    "|resize|gridsample|roialign|nonmax|dft|stft|hann|quantizelinear|qlinear|dequantize|dynamicq|convinteger|einsum|adam"
    "|optional_|split_to_sequence|string_|strnorm|regex|tfidf|ai_onnx_ml"
)


@pytest.mark.skipif(not is_installed("octave"), reason="GNU Octave is not installed")
def test_cases_of_the_core() -> None:
    import re

    names = sorted(name for name in suite.cases() if re.match(f"test_({FAMILIES})", name))
    assert len(names) > 300
    results = suite.run("matlab", names[::3], jobs=1)
    excused = exceptions("matlab")
    assert not {r.name: r.message for r in results if r.outcome == "fail" and r.name not in excused}
    refused = {r.name for r in results if r.outcome == "error"}
    assert len(refused) < len(results) / 10, refused
