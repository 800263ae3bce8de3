"""Ops that TensorFlow's converter does not write, or not in all forms: models put together op by op."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from lite import Flat, Graph, Made, single
from tensorflow.lite.python import schema_py_generated as schema

RNG = np.random.default_rng(0)
FLOAT, INT, LONG, TRUTH = np.float32, np.int32, np.int64, np.bool_
Case = tuple[bytes, list[Any]]


def numbers(*shape: int) -> Any:
    return RNG.uniform(-1, 1, shape).astype(FLOAT)


X = numbers(3, 4)
SQUARE = numbers(2, 5, 6)
IMAGE = numbers(1, 6, 7, 2)
SEQUENCE = numbers(2, 12, 5)
STEPS = numbers(12, 2, 5)
"""With time first: with the batch first, the interpreter's bidirectional LSTM reads states that nothing wrote."""
TANH, RELU, RELU6 = 4, 1, 3


def op(op_type: str, *arrays: Any, to: Any = FLOAT, **options: Any) -> Callable[[], Case]:
    """One op; arrays that come in tuples are constants, dtypes may have a shape with them."""
    dtypes = to if isinstance(to, list) else [to]

    def make() -> Case:
        given = [a for a in arrays if a is not None and not isinstance(a, tuple)]
        return single(op_type, arrays, dtypes, **options), given

    return make


def integers(array: Any, scale: Any, axis: int = 0) -> Any:
    by_axis = np.asarray(scale).reshape([-1 if i == axis else 1 for i in range(array.ndim)])
    return np.clip(np.round(array / by_axis), -127, 127).astype(np.int8)


def weight(graph: Graph, array: Any, hybrid: bool) -> int:
    """A constant, in floats or as integers."""
    if not hybrid:
        return graph.constant(array)
    scale = float(np.abs(array).max() / 127)
    return graph.constant(integers(array, scale), scale=scale)


def rnn(op_type: str, x: Any, hybrid: bool = False, activation: int = TANH, **options: Any) -> Callable[[], Case]:
    def make() -> Case:
        flat = Flat()
        graph = flat.graph()
        inputs: list[int | None] = [graph.input(x)]
        both = op_type.startswith("BIDIRECTIONAL")
        for _ in range(2 if both else 1):
            inputs += [weight(graph, numbers(4, 5), hybrid), weight(graph, numbers(4, 4), hybrid)]
            inputs += [graph.constant(numbers(4)), graph.state(np.zeros((2, 4), FLOAT))]
        inputs += [None] * 3 if both else []
        table = {
            "RNN": "RNNOptions",
            "UNIDIRECTIONAL_SEQUENCE_RNN": "SequenceRNNOptions",
            "BIDIRECTIONAL_SEQUENCE_RNN": "BidirectionalSequenceRNNOptions",
        }[op_type]
        held = {"fusedActivationFunction": activation, **options}
        several = both and not options.get("mergeOutputs")
        graph.output(*graph.op(op_type, inputs, [FLOAT] * (2 if several else 1), **{table: held}))
        return flat.bytes(), [x]

    return make


def lstm_weights(graph: Graph, parts: str, hybrid: bool) -> list[int | None]:
    """Of one direction; `parts` says what there is more: c(oupled gates), p(eepholes), j (projection)."""
    cells, results = 4, 3 if "j" in parts else 4
    coupled = "c" in parts
    inputs = [None if coupled and i == 0 else weight(graph, numbers(cells, 5), hybrid) for i in range(4)]
    recurrent = [None if coupled and i == 0 else weight(graph, numbers(cells, results), hybrid) for i in range(4)]
    peepholes: list[int | None] = [None] * 3
    if "p" in parts:
        peepholes = [None if coupled and i == 0 else weight(graph, numbers(cells), hybrid) for i in range(3)]
    biases = [None if coupled and i == 0 else graph.constant(numbers(cells)) for i in range(4)]
    projection: list[int | None] = [None, None]
    if "j" in parts:
        projection = [weight(graph, numbers(results, cells), hybrid), graph.constant(numbers(results))]
    return [*inputs, *recurrent, *peepholes, *biases, *projection]


def lstm(op_type: str, x: Any, parts: str = "", hybrid: bool = False, **options: Any) -> Callable[[], Case]:
    def make() -> Case:
        flat = Flat()
        graph = flat.graph()
        results = 3 if "j" in parts else 4
        states = [(2, results), (2, 4)]
        both = op_type.startswith("BIDIRECTIONAL")
        inputs: list[int | None] = [graph.input(x)]
        for _ in range(2 if both else 1):
            inputs += lstm_weights(graph, parts, hybrid)
        for _ in range(2 if both else 1):
            inputs += [graph.state(np.zeros(size, FLOAT)) for size in states]
        if both:
            inputs += [None] * 9
        elif "n" in parts:
            inputs += [None if "c" in parts and i == 0 else graph.constant(numbers(4)) for i in range(4)]
        table = {
            "LSTM": "LSTMOptions",
            "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTMOptions",
            "BIDIRECTIONAL_SEQUENCE_LSTM": "BidirectionalSequenceLSTMOptions",
        }[op_type]
        held = {"fusedActivationFunction": TANH, **({"timeMajor": True} if both else {}), **options}
        several = both and not options.get("mergeOutputs")
        graph.output(*graph.op(op_type, inputs, [FLOAT] * (2 if several else 1), **{table: held}))
        return flat.bytes(), [x]

    return make


def basic_lstm() -> Case:
    arrays = [numbers(2, 5), numbers(2, 4), numbers(16, 9), numbers(16), numbers(2, 4)]
    lite = single(
        "LSTM",
        [arrays[0], arrays[1], (arrays[2],), (arrays[3],), arrays[4]],
        [FLOAT] * 4,
        LSTMOptions={"fusedActivationFunction": TANH, "kernelType": 1},
    )
    return lite, [arrays[0], arrays[1], arrays[4]]


def svdf(hybrid: bool = False, **options: Any) -> Callable[[], Case]:
    def make() -> Case:
        flat = Flat()
        graph = flat.graph()
        x = numbers(2, 5)
        inputs = [graph.input(x), weight(graph, numbers(6, 5), hybrid), weight(graph, numbers(6, 4), hybrid)]
        inputs += [graph.constant(numbers(3)), graph.state(np.zeros((2, 24), FLOAT))]
        held = {"rank": 2, "fusedActivationFunction": RELU, **options}
        graph.output(*graph.op("SVDF", inputs, [FLOAT], SVDFOptions=held))
        return flat.bytes(), [x]

    return make


def table(op_type: str) -> Case:
    """Filled once, then asked."""
    flat = Flat()
    graph, once = flat.graph(), flat.graph()
    name = {"HashtableOptions": {"tableId": 7, "keyDtype": 4, "valueDtype": 5}}
    held = [inner.op("HASHTABLE", [], [Made(resource(inner))], **name)[0] for inner in (graph, once)]
    keys, values = np.int64([3, 5, 9]), np.asarray(["a", "bb", "c"], object)
    once.op("HASHTABLE_IMPORT", [held[1], once.constant(keys), once.constant(values)], [])
    graph.op("CALL_ONCE", [], [], CallOnceOptions={"initSubgraphIndex": 1})
    wanted = np.int64([9, 4, 3])
    if op_type == "HASHTABLE_SIZE":
        graph.output(*graph.op("HASHTABLE_SIZE", [held[0]], [LONG]))
        return flat.bytes(), []
    asked, other = graph.input(wanted), graph.constant(np.asarray(["none"], object))
    graph.output(*graph.op("HASHTABLE_FIND", [held[0], asked, other], [object]))
    return flat.bytes(), [wanted]


def resource(graph: Graph) -> int:
    number = graph.tensor(FLOAT, [1])
    graph.made.tensors[number].type = 13
    return number


def variable() -> Case:
    """It begins with twos, and a call adds what comes in."""
    flat = Flat()
    graph, once = flat.graph(), flat.graph()
    name = {"VarHandleOptions": {"container": b"", "sharedName": b"sum"}}
    held = [inner.op("VAR_HANDLE", [], [Made(resource(inner))], **name)[0] for inner in (graph, once)]
    once.op("ASSIGN_VARIABLE", [held[1], once.constant(np.full((3, 4), 2, FLOAT))], [])
    graph.op("CALL_ONCE", [], [], CallOnceOptions={"initSubgraphIndex": 1})
    before = graph.op("READ_VARIABLE", [held[0]], [Made(graph.tensor(FLOAT, [3, 4]))])
    after = graph.op("ADD", [*before, graph.input(X)], [Made(graph.tensor(FLOAT, [3, 4]))])
    graph.op("ASSIGN_VARIABLE", [held[0], *after], [])
    graph.output(*graph.op("READ_VARIABLE", [held[0]], [Made(graph.tensor(FLOAT, [3, 4]))]))
    return flat.bytes(), [X]


def two_places(flat: Flat, op_type: str, dtype: Any = FLOAT) -> int:
    """The number of a graph that makes one of two numbers; the second where there is no op."""
    graph = flat.graph()
    given = [graph.input(np.zeros((), dtype)), graph.input(np.zeros((), dtype))]
    graph.output(*(graph.op(op_type, given, [Made(graph.tensor(dtype, []))]) if op_type else given[1:]))
    return len(flat.model.subgraphs) - 1


def scatter(kind: str) -> Callable[[], Case]:
    def make() -> Case:
        flat = Flat()
        graph = flat.graph()
        body = two_places(flat, kind)
        arrays = [numbers(4, 5), np.int32([[2], [0], [2]]), numbers(3, 5)]
        how = {
            "updateWindowDims": [1],
            "insertedWindowDims": [0],
            "scatterDimsToOperandDims": [0],
            "indexVectorDim": 1,
            "updateComputationSubgraphIndex": body,
        }
        graph.output(
            *graph.op("STABLEHLO_SCATTER", [graph.input(a) for a in arrays], [FLOAT], StablehloScatterOptions=how)
        )
        return flat.bytes(), arrays

    return make


def reduce_window() -> Case:
    flat = Flat()
    graph = flat.graph()
    body = two_places(flat, "STABLEHLO_ADD")
    how = {
        "windowDimensions": [1, 2, 3],
        "windowStrides": [1, 2, 1],
        "baseDilations": [1, 1, 2],
        "windowDilations": [1, 2, 1],
        "padding": [0, 0, 1, 0, 2, 1],
        "bodySubgraphIndex": body,
    }
    inputs = [graph.input(SQUARE), graph.constant(np.zeros((), FLOAT))]
    graph.output(*graph.op("STABLEHLO_REDUCE_WINDOW", inputs, [FLOAT], StablehloReduceWindowOptions=how))
    return flat.bytes(), [SQUARE]


def composite() -> Case:
    flat = Flat()
    graph, inner = flat.graph(), flat.graph()
    given = inner.input(X)
    inner.output(*inner.op("EXP", [given], [Made(inner.tensor(FLOAT, X.shape))]))
    how = {"name": b"mine", "decompositionSubgraphIndex": 1, "compositeAttributes": [], "version": 1}
    made = [Made(graph.tensor(FLOAT, X.shape))]
    graph.output(*graph.op("STABLEHLO_COMPOSITE", [graph.input(X)], made, StableHLOCompositeOptions=how))
    return flat.bytes(), [X]


def case(index: int) -> Callable[[], Case]:
    def make() -> Case:
        flat = Flat()
        graph = flat.graph()
        for op_type in ("EXP", "NEG", "ABS"):
            inner = flat.graph()
            inner.output(*inner.op(op_type, [inner.input(X)], [Made(inner.tensor(FLOAT, X.shape))]))
        given = [graph.input(np.int32(index)), graph.input(X)]
        made = [Made(graph.tensor(FLOAT, X.shape))]
        how = {"branchSubgraphIndices": [1, 2, 3]}
        graph.output(*graph.op("STABLEHLO_CASE", given, made, StablehloCaseOptions=how))
        return flat.bytes(), [np.int32(index), X]

    return make


def densify() -> Case:
    """Of blocks of two by two, those that are not zero: rows are all there, of each the places are listed."""
    flat = Flat()
    graph = flat.graph()
    whole = np.zeros((4, 6), FLOAT)
    whole[0:2, 2:4], whole[2:4, 0:2], whole[2:4, 4:6] = numbers(2, 2), numbers(2, 2), numbers(2, 2)
    stored = np.stack([whole[0:2, 2:4], whole[2:4, 0:2], whole[2:4, 4:6]])
    number = graph.constant(stored)
    graph.made.tensors[number].shape = [4, 6]
    graph.made.tensors[number].sparsity = sparsity([0, 1, 2, 3], [0, 1], [2, ([0, 1, 3], [1, 0, 2]), 2, 2])
    given = graph.input(numbers(4, 6))
    (dense,) = graph.op("DENSIFY", [number], [Made(graph.tensor(FLOAT, [4, 6]))], DensifyOptions={})
    graph.output(*graph.op("ADD", [given, dense], [Made(graph.tensor(FLOAT, [4, 6]))]))
    return flat.bytes(), [numbers(4, 6)]


def sparsity(order: list[int], blocks: list[int], dimensions: list[Any]) -> Any:
    """A dimension is its size, or where the places of each row begin, and the places."""
    made = schema.SparsityParametersT()
    made.traversalOrder, made.blockMap, made.dimMetadata = order, blocks, []
    for dimension in dimensions:
        how = schema.DimensionMetadataT()
        if isinstance(dimension, int):
            how.format, how.denseSize = 0, dimension
        else:
            how.format, how.arraySegmentsType, how.arrayIndicesType = 1, 1, 1
            how.arraySegments, how.arrayIndices = schema.Int32VectorT(), schema.Int32VectorT()
            how.arraySegments.values, how.arrayIndices.values = dimension
        made.dimMetadata.append(how)
    return made


def quantised(op_type: str, dtype: Any, zero: int = 0) -> Callable[[], Case]:
    """From floats to integers, or back."""

    def make() -> Case:
        flat = Flat()
        graph = flat.graph()
        how = {"scale": 0.01, "zero": zero}
        if op_type == "QUANTIZE":
            given = X
            graph.output(*graph.op(op_type, [graph.input(X)], [Made(graph.tensor(dtype, X.shape, **how))]))
        else:
            limits = np.iinfo(dtype)
            given = RNG.integers(limits.min, limits.max, (3, 4)).astype(dtype)
            graph.output(*graph.op(op_type, [graph.input(given, **how)], [Made(graph.tensor(FLOAT, X.shape))]))
        return flat.bytes(), [given]

    return make


GATHER = {
    "offsetDims": [0, 2],
    "collapsedSliceDims": [1],
    "startIndexMap": [1, 2],
    "indexVectorDim": 1,
    "sliceSizes": [2, 1, 3],
}
WHOLE = RNG.integers(-9, 9, (3, 4)).astype(INT)
SPARSE = [
    np.int32([1, 3, 0, 1]),
    np.int32([[0, 0], [0, 1], [2, 0], [2, 1]]),
    np.int32([3, 2]),
    numbers(4),
    numbers(4, 2, 3),
]

CASES: dict[str, Callable[[], Case]] = {
    "RNN": rnn("RNN", numbers(2, 5)),
    "RNN hybrid": rnn("RNN", numbers(2, 5), hybrid=True),
    "RNN hybrid asymmetric": rnn("RNN", numbers(2, 5), hybrid=True, asymmetricQuantizeInputs=True),
    "UNIDIRECTIONAL_SEQUENCE_RNN": rnn("UNIDIRECTIONAL_SEQUENCE_RNN", SEQUENCE),
    "UNIDIRECTIONAL_SEQUENCE_RNN time": rnn("UNIDIRECTIONAL_SEQUENCE_RNN", numbers(7, 2, 5), timeMajor=True),
    "UNIDIRECTIONAL_SEQUENCE_RNN relu6": rnn("UNIDIRECTIONAL_SEQUENCE_RNN", SEQUENCE, activation=RELU6),
    "UNIDIRECTIONAL_SEQUENCE_RNN hybrid": rnn("UNIDIRECTIONAL_SEQUENCE_RNN", SEQUENCE, hybrid=True),
    "BIDIRECTIONAL_SEQUENCE_RNN": rnn("BIDIRECTIONAL_SEQUENCE_RNN", SEQUENCE),
    "BIDIRECTIONAL_SEQUENCE_RNN merged": rnn("BIDIRECTIONAL_SEQUENCE_RNN", SEQUENCE, mergeOutputs=True),
    "BIDIRECTIONAL_SEQUENCE_RNN hybrid": rnn("BIDIRECTIONAL_SEQUENCE_RNN", SEQUENCE, hybrid=True),
    "LSTM": lstm("LSTM", numbers(2, 5)),
    "LSTM all": lstm("LSTM", numbers(2, 5), "pjn", cellClip=0.4, projClip=0.3),
    "LSTM coupled": lstm("LSTM", numbers(2, 5), "cp"),
    "LSTM hybrid": lstm("LSTM", numbers(2, 5), "pj", hybrid=True),
    "LSTM basic": basic_lstm,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": lstm("UNIDIRECTIONAL_SEQUENCE_LSTM", SEQUENCE),
    "UNIDIRECTIONAL_SEQUENCE_LSTM clip": lstm("UNIDIRECTIONAL_SEQUENCE_LSTM", SEQUENCE, cellClip=0.3),
    "UNIDIRECTIONAL_SEQUENCE_LSTM all": lstm("UNIDIRECTIONAL_SEQUENCE_LSTM", SEQUENCE, "pjn", projClip=0.5),
    "UNIDIRECTIONAL_SEQUENCE_LSTM coupled": lstm("UNIDIRECTIONAL_SEQUENCE_LSTM", numbers(9, 2, 5), "c", timeMajor=True),
    "UNIDIRECTIONAL_SEQUENCE_LSTM hybrid": lstm("UNIDIRECTIONAL_SEQUENCE_LSTM", SEQUENCE, "j", hybrid=True),
    "UNIDIRECTIONAL_SEQUENCE_LSTM asymmetric": lstm(
        "UNIDIRECTIONAL_SEQUENCE_LSTM", SEQUENCE, hybrid=True, asymmetricQuantizeInputs=True
    ),
    "BIDIRECTIONAL_SEQUENCE_LSTM": lstm("BIDIRECTIONAL_SEQUENCE_LSTM", STEPS),
    "BIDIRECTIONAL_SEQUENCE_LSTM merged": lstm("BIDIRECTIONAL_SEQUENCE_LSTM", STEPS, "pj", mergeOutputs=True),
    "BIDIRECTIONAL_SEQUENCE_LSTM coupled": lstm("BIDIRECTIONAL_SEQUENCE_LSTM", STEPS, "c"),
    "BIDIRECTIONAL_SEQUENCE_LSTM hybrid": lstm("BIDIRECTIONAL_SEQUENCE_LSTM", STEPS, hybrid=True),
    "SVDF": svdf(),
    "SVDF hybrid": svdf(hybrid=True),
    "SVDF hybrid asymmetric": svdf(hybrid=True, asymmetricQuantizeInputs=True),
    "HASHTABLE": lambda: table("HASHTABLE"),
    "HASHTABLE_FIND": lambda: table("HASHTABLE_FIND"),
    "HASHTABLE_IMPORT": lambda: table("HASHTABLE_IMPORT"),
    "HASHTABLE_SIZE": lambda: table("HASHTABLE_SIZE"),
    "CALL_ONCE": variable,
    "VAR_HANDLE": variable,
    "READ_VARIABLE": variable,
    "ASSIGN_VARIABLE": variable,
    "QUANTIZE": quantised("QUANTIZE", np.int8, 3),
    "QUANTIZE uint8": quantised("QUANTIZE", np.uint8, 120),
    "QUANTIZE int16": quantised("QUANTIZE", np.int16),
    "DEQUANTIZE": quantised("DEQUANTIZE", np.int8, 3),
    "DEQUANTIZE uint8": quantised("DEQUANTIZE", np.uint8, 120),
    "DEQUANTIZE int16": quantised("DEQUANTIZE", np.int16),
    "RANK": op("RANK", numbers(2, 3, 4), to=INT),
    "SQUEEZE": op("SQUEEZE", numbers(2, 1, 3, 1), SqueezeOptions={"squeezeDims": [1]}),
    "SQUEEZE all": op("SQUEEZE", numbers(2, 1, 3, 1), SqueezeOptions={"squeezeDims": []}),
    "FAKE_QUANT": op("FAKE_QUANT", X, FakeQuantOptions={"min": -0.6, "max": 0.7, "numBits": 8}),
    "L2_POOL_2D": op(
        "L2_POOL_2D",
        IMAGE,
        Pool2DOptions={"padding": 0, "strideW": 2, "strideH": 2, "filterWidth": 3, "filterHeight": 2},
    ),
    "PRELU": op("PRELU", IMAGE, (numbers(1, 1, 2),)),
    "RELU_0_TO_1": op("RELU_0_TO_1", X * 2),
    "DENSIFY": densify,
    "DYNAMIC_UPDATE_SLICE": op("DYNAMIC_UPDATE_SLICE", X, numbers(2, 2), np.int32([1, 9])),
    "EMBEDDING_LOOKUP": op("EMBEDDING_LOOKUP", np.int32([2, 0]), X),
    "EMBEDDING_LOOKUP_SPARSE": op("EMBEDDING_LOOKUP_SPARSE", *SPARSE, EmbeddingLookupSparseOptions={"combiner": 0}),
    "EMBEDDING_LOOKUP_SPARSE mean": op(
        "EMBEDDING_LOOKUP_SPARSE", *SPARSE, EmbeddingLookupSparseOptions={"combiner": 1}
    ),
    "EMBEDDING_LOOKUP_SPARSE root": op(
        "EMBEDDING_LOOKUP_SPARSE", *SPARSE, EmbeddingLookupSparseOptions={"combiner": 2}
    ),
    "HASHTABLE_LOOKUP": op("HASHTABLE_LOOKUP", np.int32([9, 1, 3]), np.int32([1, 3, 5]), X, to=[FLOAT, np.uint8]),
    "STABLEHLO_ADD": op("STABLEHLO_ADD", X, X[::-1].copy()),
    "STABLEHLO_MULTIPLY": op("STABLEHLO_MULTIPLY", X, X[::-1].copy()),
    "STABLEHLO_MAXIMUM": op("STABLEHLO_MAXIMUM", X, X[::-1].copy()),
    "STABLEHLO_MINIMUM": op("STABLEHLO_MINIMUM", WHOLE, WHOLE[::-1].copy(), to=INT),
    "STABLEHLO_AND": op("STABLEHLO_AND", X > 0, X[::-1] > 0, to=TRUTH),
    "STABLEHLO_SHIFT_LEFT": op("STABLEHLO_SHIFT_LEFT", WHOLE, np.abs(WHOLE), to=INT),
    "STABLEHLO_PAD": op(
        "STABLEHLO_PAD",
        X,
        np.float32(7),
        StablehloPadOptions={"edgePaddingLow": [1, -1], "edgePaddingHigh": [0, 2], "interiorPadding": [2, 1]},
    ),
    "STABLEHLO_GATHER": op(
        "STABLEHLO_GATHER",
        numbers(2, 4, 6),
        np.int64([[3, 1], [0, 5], [9, 0]]),
        to=(FLOAT, (2, 3, 3)),
        StablehloGatherOptions=GATHER,
    ),
    "STABLEHLO_SCATTER": scatter("STABLEHLO_ADD"),
    "STABLEHLO_SCATTER last": scatter(""),
    "STABLEHLO_SCATTER most": scatter("STABLEHLO_MAXIMUM"),
    "STABLEHLO_REDUCE_WINDOW": reduce_window,
    "STABLEHLO_COMPOSITE": composite,
    "STABLEHLO_CASE": case(1),
    "STABLEHLO_CASE beyond": case(7),
    "DILATE": op("DILATE", X, (np.int32([2, 3]),), (np.float32(-1),), DilateOptions={}),
    "REDUCE_WINDOW": op(
        "REDUCE_WINDOW",
        SQUARE,
        (np.float32(0),),
        (np.int64([1, 2, 3]),),
        (np.int64([1, 1, 2]),),
        (np.int64([1, 2, 1]),),
        ReduceWindowOptions={"reduceFunction": 4},
    ),
}
"""By the op, and a word on the case."""
