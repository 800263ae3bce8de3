"""Small ops of `com.microsoft` that a standard one replaces today, or two or three of them."""

import onnx_ir as ir

from onward.canon.lower.microsoft_fused import MS, added
from onward.canon.lower.registry import lowering
from onward.graph.rewriter import Rewriter, input_of, needed, rank, take


@lowering(f"{MS}::Trilu")
def trilu(node: ir.Node, op: Rewriter) -> None:
    op.replace(op("Trilu", needed(node, 0), input_of(node, 1), upper=take(node, "upper", 1)))


@lowering(f"{MS}::ExpandDims")
def expand_dims(node: ir.Node, op: Rewriter) -> None:
    axis = op("Cast", needed(node, 1), to=ir.DataType.INT64)
    op.replace(op("Unsqueeze", needed(node, 0), op("Reshape", axis, op.ints([1]))))


@lowering(f"{MS}::Pad")
def pad(node: ir.Node, op: Rewriter) -> None:
    """Pads may be a row of a matrix, the value a vector of one element."""
    pads, value = op("Reshape", needed(node, 1), op.ints([-1])), input_of(node, 2)
    value = value if value is None or rank(value) == 0 else op("Squeeze", value)
    op.replace(op("Pad", needed(node, 0), pads, value, mode=take(node, "mode", "constant")))


@lowering(f"{MS}::Range")
def numbers(node: ir.Node, op: Rewriter) -> None:
    """Bounds may be vectors of one element; the step is 1 unless it is given."""
    bounds = [needed(node, 0), needed(node, 1)]
    step = input_of(node, 2)
    bounds.append(op.number(1, bounds[0]) if step is None else step)
    op.replace(op("Range", *(b if rank(b) == 0 else op("Squeeze", b) for b in bounds)))


@lowering(f"{MS}::GatherND")
def gather_nd(node: ir.Node, op: Rewriter) -> None:
    op.replace(op("GatherND", needed(node, 0), op("Cast", needed(node, 1), to=ir.DataType.INT64)))


@lowering(f"{MS}::TorchEmbedding")
def embedding(node: ir.Node, op: Rewriter) -> None:
    op.replace(op("Gather", needed(node, 0), needed(node, 1), axis=0))


@lowering(f"{MS}::Unique")
def unique(node: ir.Node, op: Rewriter) -> None:
    """Values in the order in which they occur first, where each element is among them, how often each occurs."""
    values, _, places, counts = op.many(4, "Unique", needed(node, 0), sorted=0)
    op.replace(*[values, places, counts][: len(node.outputs)])


@lowering(f"{MS}::CDist")
def cdist(node: ir.Node, op: Rewriter) -> None:
    """The distance of each row of one matrix from each of another."""
    a, b = op("Unsqueeze", needed(node, 0), op.ints([1])), op("Unsqueeze", needed(node, 1), op.ints([0]))
    squares = op("ReduceSumSquare", op("Sub", a, b), op.ints([2]), keepdims=0)
    op.replace(squares if take(node, "metric", "sqeuclidean") == "sqeuclidean" else op("Sqrt", squares))


@lowering(f"{MS}::GridSample")
def grid_sample(node: ir.Node, op: Rewriter) -> None:
    """As the standard op was when it was new."""
    given = {name: take(node, name) for name in ("align_corners", "mode", "padding_mode")}
    y = op("GridSample", needed(node, 0), needed(node, 1), **given)
    op.created[-1].version = 16
    op.replace(y)


@lowering(f"{MS}::GemmFastGelu")
def gemm_fast_gelu(node: ir.Node, op: Rewriter) -> None:
    y = added(op("MatMul", needed(node, 0), needed(node, 1)), input_of(node, 2), op)
    op.replace(op("Gelu", y, approximate="tanh"))


@lowering(f"{MS}::Inverse")
def inverse(node: ir.Node, op: Rewriter) -> None:
    """`onward::Inverse`: of each matrix of a batch."""
    op.replace(*op.own(1, "Inverse", needed(node, 0)))


@lowering(f"{MS}::SampleOp")
def sample_op(node: ir.Node, op: Rewriter) -> None:
    """It gives what it gets."""
    op.replace(op("Identity", needed(node, 0)))


@lowering(f"{MS}::MatMulInteger16")
def matmul_integer16(node: ir.Node, op: Rewriter) -> None:
    a, b = (op("Cast", needed(node, i), to=ir.DataType.INT32) for i in (0, 1))
    op.replace(op("MatMul", a, b))
