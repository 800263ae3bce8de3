"""Runs functions on tensors of texts in ONNX Runtime, and compares them with what a library says of the same texts."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
from hypothesis import strategies as st

from onward.frontends.dataframe.tensors.builder import ColumnBuilder
from onward.frontends.opset import OPSET
from onward.graph.build import Tensor
from onward.model import Model

TEXTS = [
    "", " ", "a", "abc", "Hello World", "  héß😀 x ", "a,b,,c", ",", ",,", "-5", "+12abc", "a\nb", "id=12; x=3", "\n",
    "aa bb  cc", "foo.0", "foo.0\n", "x\x00y", "\u00a0a\u2003", "\x1ca\x1f", "ΑΣ", "İß", "e\u0301", "١٢٣", "aaa",
    "john@example.com", "Braund, Mr. Owen", "2024-01-31", "A1-b2_C3", "\\d[a]$^", "日本語", "ﬁ ŉ ǆ", "K", "ab" * 40,
]  # fmt: skip
"""Texts that have been read wrongly by something."""

alphabet = st.sampled_from("abcABC019 ,.;-_=+@\n\t\\éßΣσİıſ😀١\u0301\u00a0日")
texts = st.lists(st.text(alphabet, max_size=12) | st.text(max_size=6), max_size=12)
"""Columns of texts."""


class TextModel:
    """A function of columns of texts, or of the dtypes given, as a session."""

    def __init__(self, function: Callable[..., Any], *dtypes: Any) -> None:
        types = [ir.DataType.STRING if d == "O" else ir.DataType.from_numpy(np.dtype(d)) for d in dtypes or "O"]
        names = [f"x{number}" for number in range(len(types))]
        inputs = [
            ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(["N", 1]))
            for name, dtype in zip(names, types, strict=True)
        ]
        graph = ir.Graph(inputs, [], nodes=[], name="texts", opset_imports={"": OPSET})
        op = ColumnBuilder(ir.Model(graph, ir_version=10))
        results = _flat(function(*(op.tensor(value) for value in inputs)))
        graph.outputs.extend(op.Identity(result).value for result in results)
        self.nodes = len(list(graph)) - len(results)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        proto = Model(op.model).to_proto().SerializeToString()
        self.session = onnxruntime.InferenceSession(proto, options, providers=["CPUExecutionProvider"])
        self.names = names

    def __call__(self, *columns: Any) -> list[tuple[Any, ...]]:
        """The results, a tuple for each row."""
        arrays = [np.asarray(c, None if len(c) and not isinstance(c[0], str) else object) for c in columns]
        found = self.session.run(None, {n: a.reshape(-1, 1) for n, a in zip(self.names, arrays, strict=True)})
        assert all(array.shape == (len(arrays[0]), 1) for array in found), [array.shape for array in found]
        return list(zip(*(array[:, 0].tolist() for array in found), strict=True))


def _flat(results: Any) -> list[Tensor]:
    if isinstance(results, Tensor):
        return [results]
    return [tensor for result in results for tensor in _flat(result)]


def agrees(model: TextModel, expected: Callable[[str], Any], columns: Sequence[Sequence[str]] = ()) -> None:
    """Whether a model says of texts what a function of one text says, for no rows, one and many."""
    for column in columns or [TEXTS, [], *([value] for value in TEXTS[:8])]:
        wanted = [value if isinstance(value, tuple) else (value,) for value in map(expected, column)]
        assert model(column) == wanted


def maybe(value: str | None) -> tuple[str, bool]:
    """A text and whether there is one."""
    return ("", False) if value is None else (value, True)
