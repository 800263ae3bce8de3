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

_EXACT = {
    "norm": "LRN",
    "layer": "Einsum LSTM GRU RNN FusedConv SVMClassifier SVMRegressor LinearClassifier LinearRegressor",
    "activation": "Elu Celu Selu Tanh Hardmax Clip Dropout Mish Shrink Softplus Softsign",
    "pool": "TopK CumSum CumProd NonMaxSuppression",
    "control": "If Loop Scan SplitToSequence ConcatFromSequence",
    "shape": "Shape Size Flatten Slice Concat Split Expand Tile Pad DepthToSpace SpaceToDepth Resize Upsample Identity"
    " GridSample Range OneHot NonZero ConstantOfShape Where Compress Unique EyeLike Trilu CenterCropPad Col2Im Constant"
    " ReverseSequence AffineGrid",
    "math": "Add Sub Mul Div Mod Pow Sqrt Exp Log Neg Abs Sign Floor Ceil Round Reciprocal Erf Sum Max Min Mean Equal"
    " Not And Or Xor IsNaN IsInf Det Bernoulli Multinomial Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh DFT"
    " STFT",
}
_NAMES = {name: kind for kind, listed in _EXACT.items() for name in listed.split()}
_PATTERNS = {
    "quant": re.compile(r"[Qq]uantize|QLinear|^Cast|MatMulInteger|ConvInteger|NBits|^QGemm|^QAttention"),
    "norm": re.compile(r"Norm"),
    "layer": re.compile(r"Conv(?!ert)|^Deform|Gemm|MatMul|Attention|RotaryEmbedding|^TreeEnsemble"),
    "activation": re.compile(r"Relu|Gelu|GLU$|Sigmoid|Softmax|Swish"),
    "pool": re.compile(r"[Pp]ool|^Reduce|^ArgM|RoiAlign"),
    "control": re.compile(r"^Sequence|^Optional"),
    "shape": re.compile(r"Reshape|Transpose|[Ss]queeze|^Gather|Scatter"),
    "math": re.compile(r"^Greater|^Less|^Bit|^Random|Window$"),
}
"""For the others, the first that fits."""


def kind_of_op(op: str) -> str:
    return _NAMES.get(op) or next((kind for kind, pattern in _PATTERNS.items() if pattern.search(op)), "other")
