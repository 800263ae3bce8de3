"""What sort of work an op does: the colour of its nodes in a picture."""

from __future__ import annotations

import re

KINDS = {
    "layer": "weights: products, convolutions, recurrence, attention",
    "norm": "normalisation",
    "activation": "activation",
    "pool": "pooling and reduction",
    "shape": "shape and selection",
    "math": "arithmetic and logic",
    "quant": "quantisation and casts",
    "control": "control flow and functions",
    "other": "others",
}
"""By name: what a legend says."""

_WORDS = {
    "quant": r"Quantize|QLinear|DequantizeLinear|^Cast|MatMulInteger|ConvInteger|NBits|^QGemm|^QAttention",
    "norm": r"Norm|^LRN$",
    "layer": r"^Conv|^Deform|Gemm|MatMul|Einsum|^LSTM$|^GRU$|^RNN$|Attention|RotaryEmbedding|^TreeEnsemble|^Linear(Class|Reg)|^SVM"
    r"|^FusedConv",
    "activation": r"Relu|^[CS]?Elu$|Gelu|Sigmoid|Softmax|Softplus|Softsign|Swish|Mish|^Tanh$|^Hardmax$|Shrink|^Clip$|^Dropout$",
    "pool": r"Pool|^Reduce|^ArgM|^TopK$|^CumSum$|NonMaxSuppression|RoiAlign",
    "control": r"^If$|^Loop$|^Scan$|^Sequence|^Optional|^SplitToSequence$|^ConcatFromSequence$",
    "shape": r"Reshape|^Shape$|^Size$|Transpose|Squeeze|^Flatten$|^Slice$|^Gather|^Scatter|^Concat$|^Split$|^Expand$|^Tile$|^Pad$"
    r"|DepthToSpace|SpaceToDepth|^Resize$|^Upsample$|^GridSample$|^Identity$|^Range$|^OneHot$|^NonZero$|^ConstantOfShape$"
    r"|^Where$|^Compress$|^Unique$|^EyeLike$|^Trilu$|^CenterCropPad$|^Col2Im$|^ReverseSequence$|^Constant$|^AffineGrid$",
    "math": r"^Add$|^Sub$|^Mul$|^Div$|^Mod$|^Pow$|^Sqrt$|^Exp$|^Log$|^Neg$|^Abs$|^Sign$|^Floor$|^Ceil$|^Round$|^Reciprocal$|^Erf$|^Sum$"
    r"|^M(ax|in|ean)$|^Equal$|^Greater|^Less|^Not$|^And$|^Or$|^Xor$|^Bit|^Is(NaN|Inf)$|^A?(Sin|Cos|Tan)h?$|^Atanh$|^Det$"
    r"|^Random|^Bernoulli$|^Multinomial$|DFT$|^STFT$|Window$",
}
_PATTERNS = {kind: re.compile(pattern) for kind, pattern in _WORDS.items()}


def kind_of_op(op: str) -> str:
    return next((kind for kind, pattern in _PATTERNS.items() if pattern.search(op)), "other")
