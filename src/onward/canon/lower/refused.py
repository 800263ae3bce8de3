"""Ops of ONNX Runtime that no rule can be written for, and what to do with a model that has one."""

from onward.canon.lower.microsoft_fused import MS

_SEARCH = (
    "it searches with the decoder in its attribute {graph!r}; save that graph as a model of its own "
    "(`onnx.helper.make_model`), convert that, and search in the framework"
)
_BLOB = "its weight is laid out for one kind of processor; write the model again with MatMulNBits, which has a rule"
_SPARSE = "an input of it is a sparse tensor; write it as a dense one, with MatMul"
_LSTM = "no exporter writes it any more; write the model again with LSTM and Attention, which have rules"

_INSIDE = "it is for internal use of ONNX Runtime, and stops at the first place that its mask hides; use MaxPool"
_STEP = "it is a step of a search for the next words, not of the model; cut the model before it and search outside"
_PATH = "it traces a path back step by step; cut the model before it, and trace the path of its input outside"
_PACKED = "it has the words of several requests in one row; write the model again with NGramHashMapping, a row each"

_TEXT = "no other op cuts texts by a pattern; cut the model behind it, and give the rest words"

REFUSED: dict[str, str] = {
    f"{MS}::BeamSearch": _SEARCH.format(graph="decoder"),
    f"{MS}::GreedySearch": _SEARCH.format(graph="decoder"),
    f"{MS}::Sampling": _SEARCH.format(graph="decoder"),
    f"{MS}::WhisperBeamSearch": _SEARCH.format(graph="decoder"),
    f"{MS}::MatMulFpQ4": _BLOB,
    f"{MS}::SparseToDenseMatMul": _SPARSE,
    f"{MS}::AttnLSTM": _LSTM,
    f"{MS}::MaxpoolWithMask": _INSIDE,
    f"{MS}::BifurcationDetector": _STEP,
    f"{MS}::DynamicTimeWarping": _PATH,
    f"{MS}::Tokenizer": _TEXT,
    f"{MS}::VarlenNGramHashMapping": _PACKED,
}
"""By op: the reason, which is what the error says after the name of the node."""
