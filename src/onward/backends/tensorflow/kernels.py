"""In which dtypes TensorFlow and TensorFlow Lite compute an op, as far as they do not in all of them.

Found by running every op in every dtype, as it is generated here: `onward scoreboard --what dtypes --on tensorflow` and
`--on tensorflow:tflite`, with TensorFlow 2.21. Ops that neither computes in any dtype are not listed.
"""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.tensorflow.missing_kernels import Kernels

_D = ir.DataType
_EVERY = frozenset(_D) - {_D.UNDEFINED}

TENSORFLOW = Kernels(
    "TensorFlow",
    {
        "Col2Im": {"T": _EVERY - {_D.BOOL, _D.STRING}},
        "NonZero": {"T": _EVERY - {_D.STRING}},
        "Trilu": {"T": _EVERY - {_D.STRING}},
        "Unique": {"T": _EVERY - {_D.BOOL, _D.COMPLEX64, _D.COMPLEX128}},
    },
)

NAMES = {"float32": _D.FLOAT, "float64": _D.DOUBLE} | {dtype.name.lower(): dtype for dtype in _EVERY}

# Dtypes, and the ops that have kernels for these; behind a dot the type parameter, where it is not T.
_LITE = """
float32: AveragePool BatchNormalization CausalConvWithState Ceil Conv ConvTranspose Cos DeformConv Elu Erf Exp Floor
float32: GRU Gelu Gemm GlobalAveragePool GlobalMaxPool GridSample.T2 GroupNormalization HardSigmoid HardSwish
float32: Hardmax InstanceNormalization IsNaN.T1 LRN LSTM LayerNormalization LeakyRelu LinearAttention.S LinearAttention
float32: Log LogSoftmax LpNormalization LpPool MatMul MaxPool MaxUnpool.T1 Mean Mish NegativeLogLikelihoodLoss Pow
float32: RMSNormalization RMSNormalization.V RNN Reciprocal ReduceLogSum ReduceLogSumExp ReduceMean RotaryEmbedding
float32: Round Selu Shrink Sigmoid Sin Softmax SoftmaxCrossEntropyLoss Softplus Softsign Sqrt Sum SwiGLU Swish Tanh
float32: ThresholdedRelu onward::GRU.* onward::LSTM.* onward::Linear.* onward::RNN.*
float32 bool: Attention.U
float32 float16 bfloat16: Attention.T1 Attention.T2 BatchNormalization.T1 BatchNormalization.T2 RoiAlign.T1 STFT.T1
float32 float16 bfloat16: onward::SDPA.*
float32 float16 bfloat16 bool: GridSample.T1
float32 float64 int32: Sign
float32 int32: Div ReduceL1
float32 int32 int64: Clip CumSum Greater LessOrEqual Max Min Neg ReduceProd ReduceSum ReduceSumSquare Relu
float32 int32 int64: ReverseSequence SpaceToDepth Sub
float32 int32 int64 bool: NonZero Pad ReduceMax ReduceMin ScatterElements ScatterND TensorScatter
float32 int32 int64 uint8 bool: Tile
float32 int32 int64 uint32 uint64: PRelu
float32 int8 int32 uint8: ArgMax ArgMin
float32 int8 int32 int64 uint8: DepthToSpace Resize.T1
float32 int8 int32 int64 uint8 bool: Transpose
float32 int8 int16 int32 int64 uint8 bool: Compress Gather GatherElements GatherND
float32 int8 int16 int32 int64 uint8 uint32 bool: Concat Expand Slice
float32 int8 int16 int32 int64 uint8 uint16 uint32: Einsum
float32 int8 int16 int32 uint8: Split
float32 int8 int16 int32 int64 uint32: OneHot.T3
float32 int8 int16 int32 int64 uint32 bool: Trilu Where
float32 int16 int32 int64: GreaterOrEqual Less
float32 int16 int32 int64 bool: Equal
float32 int16 int32 int64 uint32: Add Mul
float32 int16 int32 uint8 uint16 uint32 uint64: Abs
int8 int16 int32 int64: Mod
int8 int16 int32 uint8 uint16 uint32: BitwiseXor
"""


def _parsed(table: str) -> dict[str, dict[str, frozenset[_D]]]:
    found: dict[str, dict[str, frozenset[_D]]] = {}
    for line in table.strip().splitlines():
        dtypes, _, ops = line.partition(": ")
        for entry in ops.split():
            op, _, parameter = entry.partition(".")
            found.setdefault(op, {})[parameter or "T"] = frozenset(NAMES[name] for name in dtypes.split())
    return found


LITE = Kernels("TensorFlow Lite", _parsed(_LITE))
