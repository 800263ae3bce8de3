"""MaxPool with its places as a compiled kernel: ONNX Runtime's own is fast only where no places are asked for."""

from __future__ import annotations

import hashlib

import numpy as np
import onnx_ir as ir

from onward.spec.window import Window, window
from onward.training.native.driver import DOMAIN

BODY = """\
static void NAME(const Call *c, int64_t begin, int64_t end, char *sums) {
  enum { H = {H}, W = {W}, OH = {OH}, OW = {OW}, KH = {KH}, KW = {KW}, SH = {SH}, SW = {SW}, DH = {DH}, DW = {DW},
         PH = {PH}, PW = {PW}, COLUMNS = (OW - 1) * SW + (KW - 1) * DW + 1 };
  float line[COLUMNS], best[OW];
  int32_t place[OW], first[OW];
  for (int ow = 0; ow < OW; ow++)
    for (first[ow] = ow * SW - PW; first[ow] < 0;) first[ow] += DW;
  for (int w = 0; w < COLUMNS; w++) line[w] = -INFINITY;
  for (int64_t plane = begin; plane < end; plane++) {
    const float *x = (const float *)c->in[0] + plane * H * W;
    for (int oh = 0; oh < OH; oh++) {
      int top = oh * SH - PH;
      while (top < 0) top += DH;
      for (int ow = 0; ow < OW; ow++) best[ow] = -INFINITY, place[ow] = top * W + first[ow];
      for (int h = top; h < H && h <= oh * SH - PH + (KH - 1) * DH; h += DH) {
        for (int w = PW < 0 ? -PW : 0; w < W && w + PW < COLUMNS; w++) line[w + PW] = x[h * W + w];
#pragma GCC unroll 16
        for (int b = 0; b < KW; b++)
#pragma omp simd
          for (int ow = 0; ow < OW; ow++) {
            const float v = line[ow * SW + b * DW];
            const int32_t at = h * W + ow * SW + b * DW - PW;
            place[ow] = v > best[ow] ? at : place[ow];
            best[ow] = v > best[ow] ? v : best[ow];
          }
      }
      float *y = (float *)c->out[0] + (plane * OH + oh) * OW;
      int64_t *places = (int64_t *)c->out[1] + (plane * OH + oh) * OW;
      for (int ow = 0; ow < OW; ow++) y[ow] = best[ow], places[ow] = plane * H * W + place[ow];
    }
  }
}
static int NAME_types[] = {1, 1, 1, 7};
static int NAME_ranks[] = {4, 2, 4, 4};
static int NAME_axes[] = {0, 1, 2, 3, 4, 5, 0, 1, 4, 5, 0, 1, 4, 5};
static int NAME_merged[] = {0, 0, 1, 1, 2, 2};
static int NAME_order[] = {0, 1, 2};
static const Kernel NAME_kernel = {"NAME", 2, 2, 0, 6, 1, 3, 0, NAME_types, NAME_ranks, NAME_axes, NAME_merged,
                                   NAME_order, NAME, 0};
"""
"""Axes are batch, channels, those of the input and those of the output; a tensor of zeros brings the last two."""
BACK = """\
static void unpool(const Call *c, int64_t begin, int64_t end, char *sums) {
  const int64_t size = c->n[1], count = c->n[2];
  float *dx = c->out[0];
  __builtin_memset(dx + begin * size, 0, (end - begin) * size * sizeof(float));
  const float *g = c->in[0];
  const int64_t *places = c->in[1];
  for (int64_t i = begin * count; i < end * count; i++) dx[places[i]] += g[i];
}
static int unpool_types[] = {1, 7, 1, 1};
static int unpool_ranks[] = {4, 4, 2, 4};
static int unpool_axes[] = {0, 1, 4, 5, 0, 1, 4, 5, 2, 3, 0, 1, 2, 3};
static int unpool_merged[] = {0, 0, 1, 1, 2, 2};
static int unpool_order[] = {0, 1, 2};
static const Kernel unpool_kernel = {"unpool", 3, 1, 0, 6, 1, 3, 0, unpool_types, unpool_ranks, unpool_axes,
                                     unpool_merged, unpool_order, unpool, 0};
"""
LARGEST = 1 << 14
"""The longest axis: a line of it is held on the stack."""
NUMBERS = ("H", "W", "OH", "OW", "KH", "KW", "SH", "SW", "DH", "DW", "PH", "PW")


def replace_pools(graph: ir.Graph, sources: dict[str, str]) -> bool:
    """Put kernels in the place of pools whose places are used; their C goes to `sources` by name."""
    replaced = False
    for node in [node for node in graph if node.op_type == "MaxPool" and not node.domain]:
        text = _source(node)
        if text is None:
            continue
        name = f"p{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        sources[name] = text.replace("NAME", name)
        x, (y, places) = node.inputs[0], node.outputs
        assert x is not None and x.shape is not None and y.shape is not None
        if (back := way_back(x, places)) is not None:
            sources["unpool"] = BACK
            g, dx = back
            last = dx.producer()
            assert last is not None
            _put(graph, last, ir.Node(DOMAIN, "unpool", [g, places, _zeros(graph, x.shape)], name=last.name))
        _put(graph, node, ir.Node(DOMAIN, name, [x, _zeros(graph, y.shape)], num_outputs=2, name=node.name))
        replaced = True
    return replaced


def _put(graph: ir.Graph, node: ir.Node, kernel: ir.Node) -> None:
    """Put a kernel in the place of a node, and remove what nothing reads any more."""
    graph.insert_after(node, kernel)
    for old, new in zip(node.outputs, kernel.outputs, strict=True):
        new.name, new.type, new.shape = old.name, old.type, old.shape
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        old.name = None
    waiting = [node]
    while waiting:
        unused = waiting.pop()
        if unused.graph is None or any(o.uses() or o.is_graph_output() for o in unused.outputs):
            continue
        before = [value.producer() for value in unused.inputs if value is not None]
        graph.remove(unused, safe=True)
        waiting += [producer for producer in before if producer is not None]


def way_back(x: ir.Value, places: ir.Value) -> tuple[ir.Value, ir.Value] | None:
    """The gradient that goes into a pool and the one that comes out, where the graph has them as the pool's rule
    writes them: by one MaxUnpool, or by several, each for windows that do not overlap."""
    found: dict[tuple[int, ...], ir.Value] = {}
    given: set[ir.Value] = set()
    steps: set[tuple[int, ...]] = set()
    for user, _ in places.uses():
        cut = user if user.op_type == "Slice" else None
        row = user if cut is None else _reader(cut.outputs[0])
        unpool = None if row is None or row.op_type != "Reshape" else _reader(row.outputs[0])
        last = None if unpool is None or unpool.op_type != "MaxUnpool" else _reader(unpool.outputs[0])
        if row is None or unpool is None or unpool.inputs[1] is not row.outputs[0]:
            return None
        if last is None or last.op_type != "Reshape" or last.outputs[0].shape != x.shape:
            return None
        slopes = _before(unpool.inputs[0], "Reshape")
        if cut is not None:
            sliced = None if slopes is None else slopes.producer()
            if sliced is None or sliced.op_type != "Slice" or sliced.inputs[1:] != cut.inputs[1:]:
                return None
            slopes = sliced.inputs[0]
        if slopes is None or slopes.shape != places.shape or slopes.dtype != x.dtype:
            return None
        numbers = _numbers(cut) if cut is not None else ((0,), (1,))
        if numbers is None:
            return None
        given.add(slopes)
        steps.add(numbers[1])
        found[numbers[0]] = last.outputs[0]
    if len(given) != 1 or len(steps) != 1 or set(found) != set(np.ndindex(*steps.pop())):
        return None
    g, results = given.pop(), list(found.values())
    if len(results) == 1:
        return g, results[0]
    total = _reader(results[0])
    if total is None or total.op_type not in ("Sum", "Add") or set(total.inputs) != set(results):
        return None
    return g, total.outputs[0]


def _reader(value: ir.Value) -> ir.Node | None:
    """The node that reads a value, if it is the only one."""
    uses = list(value.uses())
    return uses[0].node if len(uses) == 1 and not value.is_graph_output() else None


def _before(value: ir.Value | None, op_type: str) -> ir.Value | None:
    """The first input of the node that gives a value, if it is of a certain op."""
    node = None if value is None else value.producer()
    return node.inputs[0] if node is not None and node.op_type == op_type else None


def _numbers(cut: ir.Node) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Where a Slice of the places of a map starts, and its steps; it goes to the end."""
    constants = [None if value is None or value.const_value is None else value.const_value for value in cut.inputs[1:]]
    if len(constants) != 4 or any(constant is None for constant in constants):
        return None
    starts, ends, axes, steps = (tuple(constant.numpy().tolist()) for constant in constants if constant is not None)
    return (starts, steps) if axes == (2, 3) and min(ends) > LARGEST else None


def _source(node: ir.Node) -> str | None:
    """The C for a pool, if it is one of two axes of known sizes whose places are used."""
    x = node.inputs[0]
    if x is None or x.dtype != ir.DataType.FLOAT or x.shape is None or x.shape.rank() != 4 or len(node.outputs) < 2:
        return None
    y, places = node.outputs
    if not (places.uses() or places.is_graph_output()) or y.shape is None or places.shape is None:
        return None
    sizes = [n for n in (*x.shape[2:], *y.shape[2:]) if isinstance(n, int)]
    given = {name: value.value for name, value in node.attributes.items()}
    if len(sizes) != 4 or min(sizes) < 1 or max(sizes) > LARGEST or given.get("storage_order", 0):
        return None
    strides, dilations, pads = (given.get(key) for key in ("strides", "dilations", "pads"))
    auto_pad = given.get("auto_pad", "NOTSET")
    kernel = list(given["kernel_shape"])
    win = window(kernel, sizes[:2], strides=strides, dilations=dilations, pads=pads, auto_pad=auto_pad, pool=True)
    if win.begin is None or not _have_elements(sizes, win, win.begin):
        return None
    numbers = [*sizes, *win.kernel, *win.strides, *win.dilations, *win.begin]
    text = BODY
    for key, number in zip(NUMBERS, numbers, strict=True):
        text = text.replace(f"{{{key}}}", str(number))
    return text


def _have_elements(sizes: list[int], win: Window, begin: tuple[int, ...]) -> bool:
    """Whether every window has an element of the input in it."""
    for axis, (size, steps) in enumerate(zip(sizes[:2], sizes[2:], strict=True)):
        taps = np.arange(win.kernel[axis]) * win.dilations[axis] - begin[axis]
        places = np.arange(steps)[:, None] * win.strides[axis] + taps
        if not ((places >= 0) & (places < size)).any(axis=1).all():
            return False
    return True


def _zeros(graph: ir.Graph, shape: ir.Shape) -> ir.Value:
    """A constant of the sizes of a map."""
    sizes = [int(n) for n in shape[2:] if isinstance(n, int)]
    name = "onward_pool_" + "_".join(map(str, sizes))
    found = graph.initializers.get(name)
    if found is None:
        tensor = ir.Tensor(np.zeros(sizes, np.float32), name=name)
        found = ir.Value(
            name=name, const_value=tensor, type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape(tuple(sizes))
        )
        graph.register_initializer(found)
    return found
