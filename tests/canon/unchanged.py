"""Versions of ops under which an older node means what it meant: why no upgrade entry is needed."""

UNCHANGED = {
    "reworded, or said in more detail": """
        Abs-13 ArgMax-13 ArgMin-13 Ceil-13 Floor-13 BatchNormalization-15 Conv-11 Dropout-22 Gather-11
        Gather-13 Gemm-6 LSTM-22 Loop-13 MaxPool-11 MaxUnpool-11 MeanVarianceNormalization-13
        NonMaxSuppression-11 ReduceL1-11 ReduceL1-13 ReduceL2-11 ReduceL2-13 ReduceLogSum-11
        ReduceLogSum-13 ReduceLogSumExp-11 ReduceLogSumExp-13 ReduceMax-12 ReduceMax-13 ReduceMean-11
        ReduceMean-13 ReduceMin-12 ReduceMin-13 ReduceProd-11 ReduceProd-13 ReduceSum-11
        ReduceSumSquare-11 ReduceSumSquare-13 Slice-13 Squeeze-23 Transpose-21 Transpose-25 Unsqueeze-23
    """,
    "allows element types that it did not, and says how it treats them": """
        Add-14 Sub-14 Mul-14 Div-14 BitShift-28 Cast-9 Mod-28 Pad-13 QuantizeLinear-25 QuantizeLinear-28
        ReduceMax-20 ReduceMin-20 DequantizeLinear-19 Range-27
    """,
    "allows an axis to count from the back": """
        ArgMax-11 ArgMin-11 Compress-11 Concat-11 Flatten-11 Hardmax-11 LogSoftmax-11 ReduceMax-11
        ReduceMin-11 Scan-11 Slice-11 Softmax-11 Split-11 Squeeze-11 Unsqueeze-11
    """,
    "inputs of one shape were demanded, now they may be broadcast": "Max-8 Mean-8 Min-8 Sum-8",
    "allows shapes or kinds of values that it did not": "If-11 OptionalGetElement-18",
    "an input or output may be given, or left out, that could not": """
        Attention-24 Gemm-11 Loop-11 MaxPool-8 OptionalHasElement-18 Pad-18
    """,
    "a new attribute whose default says what was always done": """
        ArgMax-12 ArgMin-12 Attention-25 AveragePool-7 AveragePool-10 AveragePool-19 Cast-19 CastLike-19
        CastLike-24 DepthToSpace-11 DequantizeLinear-21 DequantizeLinear-23 GRU-14 GatherND-12 LSTM-14
        LpPool-18 MaxPool-10 QuantizeLinear-19 QuantizeLinear-21 QuantizeLinear-23 RNN-14 Reshape-14
        Resize-18 ScatterElements-16 ScatterND-16 Shape-15 SpaceToDepth-28 TopK-11
    """,
    "new attributes, one of which may be given instead of the old one": """
        Constant-11 Constant-12 TreeEnsembleClassifier-3 TreeEnsembleRegressor-3
    """,
    "allows a value of an attribute that it did not": "Pad-19 Resize-19 ScatterElements-18 ScatterND-18",
    "says what was undefined: conversions out of range, min above max, the sign of a remainder": """
        Cast-13 Clip-13 Mod-13
    """,
    "the type of its missing input is no longer said, the input was never optional": "EyeLike-22",
    "the formulas for auto_pad are corrected; ONNX Runtime computes all versions alike": """
        AveragePool-11 ConvTranspose-11 LpPool-11 MaxPool-12
    """,
    "windows that start in the padding are ignored, as ONNX Runtime always did": "AveragePool-22 MaxPool-22",
    "infinity saturates for all float8 types, as ONNX Runtime and the reference always did": "Cast-24",
    "indices below zero count from the back, which were not allowed; ONNX Runtime always did": "OneHot-11",
    "deprecated, but kept: backends implement it as it is": """
        TreeEnsembleClassifier-5 TreeEnsembleRegressor-5
    """,
}
