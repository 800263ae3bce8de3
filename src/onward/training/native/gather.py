"""Entries of an axis by a constant table, zeros behind its end included: Pad and Gather as one compiled kernel."""

from __future__ import annotations

import onnx_ir as ir

from onward.training.native.driver import DOMAIN

NUMBERS = """\
static void gather_numbers(const Call *c, int64_t begin, int64_t end, char *sums) {
  const int64_t size = c->n[1], count = c->n[2];
  const int64_t *restrict at = c->in[1];
  for (int64_t row = begin; row < end; row++) {
    const float *restrict x = (const float *)c->in[0] + row * size;
    float *restrict y = (float *)c->out[0] + row * count;
#pragma omp simd
    for (int64_t j = 0; j < count; j++) y[j] = at[j] < size ? x[at[j]] : 0;
  }
}
static int gather_numbers_types[] = {1, 7, 1};
static int gather_numbers_ranks[] = {2, 1, 2};
static int gather_numbers_axes[] = {0, 1, 2, 0, 2};
static int gather_numbers_merged[] = {0, 1, 2};
static int gather_numbers_order[] = {0, 2, 1};
static const Kernel gather_numbers_kernel = {"gather_numbers", 2, 1, 0, 3, 1, 3, 0, gather_numbers_types,
  gather_numbers_ranks, gather_numbers_axes, gather_numbers_merged, gather_numbers_order, gather_numbers, 0};
"""
"""Axes are those of the tensor, then the one of the table."""
ROWS = """\
static void gather_rows(const Call *c, int64_t begin, int64_t end, char *sums) {
  const int64_t size = c->n[1], width = c->n[2], count = c->n[3];
  const int64_t *restrict at = c->in[1];
  for (int64_t row = begin; row < end; row++) {
    const float *restrict x = (const float *)c->in[0] + row * size * width;
    float *restrict y = (float *)c->out[0] + row * count * width;
    for (int64_t j = 0; j < count; j++, y += width) {
      const float *restrict from = x + at[j] * width;
      if (at[j] < size) {
#pragma omp simd
        for (int64_t i = 0; i < width; i++) y[i] = from[i];
      } else __builtin_memset(y, 0, width * sizeof(float));
    }
  }
}
static int gather_rows_types[] = {1, 7, 1};
static int gather_rows_ranks[] = {3, 1, 3};
static int gather_rows_axes[] = {0, 1, 2, 3, 0, 3, 2};
static int gather_rows_merged[] = {0, 1, 2, 3};
static int gather_rows_order[] = {0, 3, 2, 1};
static const Kernel gather_rows_kernel = {"gather_rows", 2, 1, 0, 4, 1, 4, 0, gather_rows_types, gather_rows_ranks,
  gather_rows_axes, gather_rows_merged, gather_rows_order, gather_rows, 0};
"""


def replace_gathers(graph: ir.Graph, sources: dict[str, str]) -> bool:
    """Put kernels in the place of Gathers along the second axis by constant tables; their C goes to `sources`."""
    replaced = False
    for node in [node for node in graph if node.op_type == "Gather" and not node.domain]:
        x = _read(node)
        if x is None:
            continue
        assert x.shape is not None
        name, text = ("gather_numbers", NUMBERS) if x.shape.rank() == 2 else ("gather_rows", ROWS)
        sources[name] = text
        old = node.outputs[0]
        kernel = ir.Node(DOMAIN, name, [x, node.inputs[1]], num_outputs=1, name=node.name)
        graph.insert_after(node, kernel)
        new = kernel.outputs[0]
        new.name, new.type, new.shape = old.name, old.type, old.shape
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        old.name = None
        padded = node.inputs[0].producer() if node.inputs[0] is not None and node.inputs[0] is not x else None
        graph.remove(node, safe=True)
        if padded is not None and not padded.outputs[0].uses() and not padded.outputs[0].is_graph_output():
            graph.remove(padded, safe=True)
        replaced = True
    return replaced


def _read(node: ir.Node) -> ir.Value | None:
    """What a kernel has to read instead of the node, if there is one: its input before a Pad by zeros at the end."""
    x, at = node.inputs
    if x is None or at is None or at.const_value is None or at.dtype != ir.DataType.INT64:
        return None
    if (
        x.dtype != ir.DataType.FLOAT
        or x.shape is None
        or x.shape.rank() not in (2, 3)
        or at.const_value.shape.rank() != 1
    ):
        return None
    size = x.shape[1]
    if node.attributes.get_int("axis", 0) % x.shape.rank() != 1 or not isinstance(size, int):
        return None
    places = at.const_value.numpy()
    if not places.size or places.min() < 0 or places.max() >= size:
        return None
    return _before_zeros(x) or x


def _before_zeros(x: ir.Value) -> ir.Value | None:
    """The input of a Pad by one entry of zeros behind the second axis."""
    node = x.producer()
    if node is None or node.op_type != "Pad" or node.domain or len(node.inputs) != 2:
        return None
    given, pads = node.inputs
    if given is None or given.dtype != x.dtype or given.shape is None or pads is None or pads.const_value is None:
        return None
    rank = given.shape.rank()
    expected = [0] * (rank + 1) + [1] + [0] * (rank - 2)
    mode = node.attributes.get_string("mode", "constant")
    return given if mode == "constant" and pads.const_value.numpy().tolist() == expected else None
