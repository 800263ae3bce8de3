"""Products of groups of rows with matrices of their own, as mixtures of experts compute them."""

from __future__ import annotations

import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.torch.rules import rule
from onward.graph.build import Builder, Tensor


@rule("_grouped_mm")
def grouped_product(
    op: Builder,
    a: Tensor,
    b: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: int | None = None,
) -> Tensor:
    if bias is not None or (a.rank, b.rank) not in ((2, 3), (3, 3)) or (offs is None) != (a.rank == 3):
        raise UnsupportedError("only products of groups of rows, without a bias, are supported")
    product = op.MatMul(a, b) if offs is None else product_by_rows(op, a, b, offs)
    return product if out_dtype is None else product.cast(ir.DataType(out_dtype))


@rule("transformers::grouped_mm_fallback")
def product_by_rows(op: Builder, a: Tensor, b: Tensor, offs: Tensor) -> Tensor:
    """Rows up to the first offset with the first matrix, those after it with the second, and so on.

    The last offset is the number of rows; a file raises an error where it is another.
    """
    count = (b.dims or [None])[0]
    if not isinstance(count, int):
        raise UnsupportedError("the number of matrices must be known")
    if count == 1:
        return op.MatMul(a, op.squeeze(b, [0]))
    ends = offs.cast(ir.DataType.INT64)
    starts = op.Concat(op.ints([0]), op.Slice(ends, op.ints([0]), op.ints([-1])), axis=0)
    groups = op.many("Split", count, a, ends - starts, axis=0)
    matrices = op.many("Split", count, b, None, axis=0, num_outputs=count)
    products = [op.MatMul(group, matrix) for group, matrix in zip(groups, matrices, strict=True)]
    return op.squeeze(op.Concat(*products, axis=1), [0])
