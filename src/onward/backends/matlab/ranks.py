"""How many dimensions values have of which inference does not say it: MATLAB code has to know no more than that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx_ir as ir

from onward.backends.matlab.equations import explicit
from onward.graph.infer import DECLARED
from onward.graph.walk import all_nodes

Rank = int | None
SAME = frozenset(
    "Abs Acos Acosh Asin Asinh Atan Atanh BatchNormalization Cast CastLike Ceil Celu CenterCropPad Clip Conv CumSum "  # noqa: SIM905
    "CumProd Cos Cosh DequantizeLinear Dropout Elu Erf Exp Floor Gelu HardSigmoid HardSwish Hardmax Identity "
    "InstanceNormalization GroupNormalization IsInf IsNaN LRN LayerNormalization LeakyRelu Log LogSoftmax "
    "LpNormalization MaxPool AveragePool LpPool MaxUnpool MeanVarianceNormalization Mish Neg Not PRelu Pad "
    "QuantizeLinear RMSNormalization Reciprocal Relu Resize ReverseSequence Round ScatterElements ScatterND Selu "
    "Shrink Sigmoid Sign Sin Sinh Slice Softmax Softplus Softsign Sqrt Swish Tan Tanh ThresholdedRelu Tile TopK "
    "Transpose Trilu GatherElements Concat Split ConvTranspose GlobalAveragePool GlobalMaxPool BitwiseNot "
    "Flatten Bernoulli ConvInteger DFT DynamicQuantizeLinear GridSample RandomNormalLike RandomUniformLike "
    "SequenceErase SequenceAt Optional OptionalGetElement".split()
)
"""Ops whose outputs have as many dimensions as the first input."""
ALONE = frozenset(
    "Abs Acos Acosh Asin Asinh Atan Atanh Cast Ceil Celu Clip Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish "  # noqa: SIM905
    "Identity IsInf IsNaN LeakyRelu Log Mish Neg Not Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus "
    "Softsign Sqrt Swish Tan Tanh ThresholdedRelu".split()
)
"""Ops that compute each element by itself: they need not know how many dimensions there are."""
KEEPS = ALONE | {"Slice", "Concat", "Transpose", "Pad"}
"""Ops whose inputs have as many dimensions as the output."""
BROADCAST = frozenset(
    "Add Sub Mul Div Mod Pow And Or Xor BitwiseAnd BitwiseOr BitwiseXor BitShift Equal Less LessOrEqual Greater "  # noqa: SIM905
    "GreaterOrEqual Min Max Sum Mean Where".split()
)
BODIES = frozenset({"If", "Loop", "Scan"})
FIXED = {
    "NonZero": 2,
    "MelWeightMatrix": 2,
    "Range": 1,
    "EyeLike": 2,
    "STFT": 4,
    "HannWindow": 1,
    "HammingWindow": 1,
    "BlackmanWindow": 1,
    "MaxRoiPool": 4,
    "RoiAlign": 4,
    "NonMaxSuppression": 2,
    "Multinomial": 2,
}


def settle_ranks(graph: ir.Graph, declared: Sequence[ir.Value]) -> None:
    """Note the number of dimensions of what has no shape, in place, from the beginning to the end.

    That of a sequence or an optional is that of its elements.
    What the file says of its outputs is taken where nothing else is known.
    """
    said = {value.name: value.shape for value in declared if value.shape is not None}
    _from_the_start(graph, said)
    _from_the_end(graph)
    _from_the_start(graph, said)


def _from_the_end(graph: ir.Graph) -> None:
    """What an output says of the values that it is made of."""
    for node in reversed(list(graph)):
        shape = node.outputs[0].shape
        if shape is None or node.op_type not in KEEPS:
            continue
        for value in node.inputs if node.op_type == "Concat" else node.inputs[:1]:
            if value is not None and value.shape is None:
                value.shape = ir.Shape([None] * len(shape))


def _from_the_start(graph: ir.Graph, said: Mapping[str | None, ir.Shape]) -> None:
    for node in all_nodes(graph):
        for i, value in enumerate(node.outputs):
            if value.shape is None:
                rank = _rank(node, i)
                shape = said.get(value.name) if value.is_graph_output() else value.meta.get(DECLARED)
                if rank is None and shape is not None:
                    rank = len(shape)
                if rank is not None:
                    value.shape = ir.Shape([None] * rank)


def is_squeezed(output: ir.Value) -> bool:
    """Whether a value has lost all dimensions of 1: how many those are, only its sizes say."""
    node = output.producer()
    while node is not None and (given := _element_by_element(node)) is not None:
        node = given.producer()
    return node is not None and node.op_type == "Squeeze" and (len(node.inputs) == 1 or node.inputs[1] is None)


def only_leaves(value: ir.Value) -> bool:
    """Whether nobody has to know how many dimensions a value has: it goes to outputs, element by element."""
    readers = [use.node for use in value.uses()]
    if not readers:
        return value.is_graph_output()
    return all(_element_by_element(node) is value and only_leaves(node.outputs[0]) for node in readers)


def _element_by_element(node: ir.Node) -> ir.Value | None:
    """What a node computes each element of by itself, with numbers at most."""
    if node.op_type in ALONE:
        return node.inputs[0]
    others = [value for value in node.inputs if value is not None and not _is_number(value)]
    return others[0] if node.op_type in BROADCAST and len(others) == 1 else None


def _is_number(value: ir.Value) -> bool:
    return value.const_value is not None and len(value.const_value.shape) == 0


def _rank(node: ir.Node, place: int) -> Rank:
    if node.domain not in ("", "ai.onnx"):
        return None
    op, ranks = node.op_type, [None if v is None or v.shape is None else len(v.shape) for v in node.inputs]
    if op in BODIES:
        return _of_body(node, place)
    if op in FIXED:
        return FIXED[op]
    if op in SAME:
        if op == "DynamicQuantizeLinear" and place > 0:
            return 0
        return ranks[0] if place == 0 or op in ("Dropout", "TopK", "Split", "MaxPool") else None
    if op in BROADCAST:
        known = [rank for rank in ranks if rank is not None]
        return max(known) if len(known) == len(ranks) else None
    rule = RULES.get("Reduce" if op.startswith("Reduce") else op)
    return None if rule is None else rule(node, ranks)


def _of_body(node: ir.Node, place: int) -> Rank:
    """What the branches of an If agree in; what a loop hands on, if it stays the same, or collects."""
    bodies = [
        attribute.as_graph() for attribute in node.attributes.values() if attribute.type == ir.AttributeType.GRAPH
    ]
    first = 1 if node.op_type == "Loop" else 0
    shapes = [body.outputs[first + place].shape for body in bodies]
    ranks = {None if shape is None else len(shape) for shape in shapes}
    rank = ranks.pop() if len(ranks) == 1 else None
    if node.op_type == "If" or rank is None:
        return rank
    carried = len(node.inputs) - 2 if first else len(node.inputs) - (node.attributes.get_int("num_scan_inputs", 0) or 0)
    if place >= carried:
        return rank + 1
    start = node.inputs[2 * first + place]
    return rank if start is not None and start.shape is not None and len(start.shape) == rank else None


def _reduced(node: ir.Node, ranks: Sequence[Rank]) -> Rank:
    if node.attributes.get_int("keepdims", 1) or ranks[0] is None:
        return ranks[0]
    count = _length(node, 1)
    if count == 0 or len(node.inputs) < 2 or node.inputs[1] is None:
        return ranks[0] if node.attributes.get_int("noop_with_empty_axes", 0) else 0
    return None if count is None else ranks[0] - count


def _index_of(node: ir.Node, ranks: Sequence[Rank]) -> Rank:
    gone = 0 if node.attributes.get_int("keepdims", 1) else 1
    return None if ranks[0] is None else ranks[0] - gone


def _gather(node: ir.Node, ranks: Sequence[Rank]) -> Rank:
    return None if ranks[0] is None or ranks[1] is None else ranks[0] - 1 + ranks[1]


def _unsqueezed(node: ir.Node, ranks: Sequence[Rank]) -> Rank:
    count = _length(node, 1)
    return None if ranks[0] is None or count is None else ranks[0] + count


def _squeezed(node: ir.Node, ranks: Sequence[Rank]) -> Rank:
    count = _length(node, 1)
    return None if ranks[0] is None or count is None else ranks[0] - count


def _expanded(node: ir.Node, ranks: Sequence[Rank]) -> Rank:
    count = _length(node, 1)
    return None if ranks[0] is None or count is None else max(ranks[0], count)


def _product(node: ir.Node, ranks: Sequence[Rank]) -> Rank:
    a, b = ranks[:2]
    if a is None or b is None:
        return None
    return max(a, b, 2) - (a == 1) - (b == 1)


def _contracted(node: ir.Node, ranks: Sequence[Rank]) -> Rank:
    known = [rank for rank in ranks if rank is not None]
    equation = node.attributes.get_string("equation")
    if len(known) < len(ranks) or equation is None:
        return None
    return len(explicit(equation, known).partition("->")[2])


def _inserted(node: ir.Node, ranks: Sequence[Rank]) -> Rank:
    sequence = node.inputs[0]
    producer = None if sequence is None else sequence.producer()
    is_new = producer is not None and producer.op_type == "SequenceEmpty"
    return ranks[1] if is_new or ranks[0] == ranks[1] else None


def _parts(node: ir.Node, ranks: Sequence[Rank]) -> Rank:
    if ranks[0] is None or any(given is not None for given in node.inputs[1:]):
        return ranks[0]
    return ranks[0] - 1 + node.attributes.get_int("keepdims", 1)


def _joined(node: ir.Node, ranks: Sequence[Rank]) -> Rank:
    return None if ranks[0] is None else ranks[0] + node.attributes.get_int("new_axis", 0)


def _length(node: ir.Node, place: int) -> int | None:
    """How many numbers an input of the node has."""
    value = node.inputs[place] if place < len(node.inputs) else None
    size = None if value is None or value.shape is None or len(value.shape) != 1 else value.shape[0]
    return size if isinstance(size, int) else None


RULES: dict[str, Callable[[ir.Node, Sequence[Rank]], Rank]] = {
    "Reduce": _reduced,
    "ArgMax": _index_of,
    "ArgMin": _index_of,
    "Gather": _gather,
    "Unsqueeze": _unsqueezed,
    "Squeeze": _squeezed,
    "Expand": _expanded,
    "MatMul": _product,
    "MatMulInteger": _product,
    "AffineGrid": lambda node, ranks: _length(node, 1),
    "Einsum": _contracted,
    "SequenceConstruct": lambda node, ranks: ranks[0] if len(set(ranks)) == 1 else None,
    "SequenceInsert": _inserted,
    "SplitToSequence": _parts,
    "ConcatFromSequence": _joined,
    "Reshape": lambda node, ranks: _length(node, 1),
    "ConstantOfShape": lambda node, ranks: _length(node, 0),
}
