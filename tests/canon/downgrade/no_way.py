"""Ops that opsets before their first version have no words for, and versions that need no entry to be left."""

NO_WAY = {
    "the texts of strings are read or made by it alone": """
        StringConcat-20 StringSplit-20 RegexFullMatch-20 StringNormalizer-10 TfIdfVectorizer-9 ImageDecoder-20
    """,
    "bits are read or made by it alone": "BitCast-26 BitwiseAnd-18 BitwiseOr-18 BitwiseXor-18",
    "there were no such values": """
        Optional-15 OptionalGetElement-15 OptionalHasElement-15 SequenceAt-11 SequenceConstruct-11 SequenceEmpty-11
        SequenceErase-11 SequenceInsert-11 SequenceLength-11 ConcatFromSequence-11 SplitToSequence-11
    """,
    "how many results there are depends on data": "NonMaxSuppression-10 NonZero-9 Unique-11 Compress-9",
    "what it gathers or scatters is decided when it runs": """
        GatherElements-11 GatherND-11 ScatterND-11 Scatter-9 TensorScatter-24 ReverseSequence-10 MaxUnpool-9
    """,
    "simpler ops would compute other numbers": """
        Erf-9 Sinh-9 Cosh-9 Asinh-9 Acosh-9 Atanh-9 Det-11 CumProd-26 DeformConv-19 GridSample-16 RoiAlign-10 STFT-17
    """,
    "there were no quantised numbers": """
        ConvInteger-10 MatMulInteger-10 QLinearConv-10 QLinearMatMul-10 QuantizeLinear-10 DequantizeLinear-10
    """,
    "its first version is one of batches": "Scan-8",
    "it is computed at once where its inputs are constant": "MelWeightMatrix-17",
}

SAME = {
    "the attribute that went has the value that is its default": "BatchNormalization-9",
    "the older version takes more types": "Erf-13 ReduceLogSum-28 ReduceLogSumExp-28",
    "deprecated, but there": "Scatter-11 Upsample-10",
    "kinds of values, which are checked": "OptionalGetElement-18",
}

WIDENED = (
    "allows an axis to count from the back",
    "inputs of one shape were demanded, now they may be broadcast",
    "allows shapes or kinds of values that it did not",
    "allows a value of an attribute that it did not",
    "indices below zero count from the back, which were not allowed; ONNX Runtime always did",
    "windows that start in the padding are ignored, as ONNX Runtime always did",
)
"""Reasons for which an older node means the same in a newer version, and not the other way round."""
