"""Steps of the optimizer inside the graph of gradients: each weight is changed as soon as its gradient is there.

A gradient lives no longer than until then, and that of an embedding is never more than the rows that a batch reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import onnx_ir as ir

from onward.training.info.whole_step import all_names
from onward.training.native.driver import DOMAIN, MOST_AXES
from onward.training.native.expressions import UnprintableError, ctype
from onward.training.native.optimizer import printed, step_graphs
from onward.training.speed.lifetimes import UPDATE
from onward.training.speed.scattered import sum_of_rows
from onward.training.step_graphs import LEARNING_RATE, LOSS, STEP
from onward.training.trainable import Trainable

COPIED = """\
  for (int t = 0; t < {kept}; t++)
    if (c->out[t] != c->in[t])
      __builtin_memcpy(({kind} *)c->out[t] + FIRST, ({kind} *)c->in[t] + FIRST, (LAST - FIRST) * sizeof({kind}));
  if (!isfinite(*(const {kind} *)c->in[{loss}])) return;
  const void *scalars[] = {{c->in[{loss} - 2], c->in[{loss} - 1]}};
"""
"""Without a loss that is a number, weights stay as they are."""
DENSE = """\
static void NAME(const Call *c, int64_t begin, int64_t end, char *sums) {{
{copied}  void *arrays[] = {{{arrays}}};
  NAME_step(begin, end, scalars, arrays);
}}
"""
ROWS = """\
static void NAME(const Call *c, int64_t begin, int64_t end, char *sums) {{
  enum {{ MOST = 4096 }};
  static const {kind} zeros[MOST];
  const int64_t rows = c->n[0], width = c->n[1], count = c->n[2], *at = c->in[{loss} - 3];
  const {kind} *slopes = c->in[{kept}];
  int32_t *first = c->out[{kept}], *next = c->out[{kept} + 1];
{copied}  for (int64_t row = begin; row < end; row++) first[row] = -1;
  for (int64_t i = count - 1; i >= 0; i--) {{
    const int64_t row = at[i] < 0 ? at[i] + rows : at[i];
    if (row >= begin && row < end) next[i] = first[row], first[row] = i;
  }}
  for (int64_t row = begin; row < end;) {{
    int64_t last = row;
    while (last < end && first[last] < 0) last++;
    for (int64_t i = row * width; i < last * width; i += MOST) {{
      void *arrays[] = {{{shifted}}};
      arrays[1] = (void *)zeros;
      NAME_step(0, last * width - i < MOST ? last * width - i : MOST, scalars, arrays);
    }}
    for (row = last; row < end && first[row] >= 0; row++)
      for (int64_t from = 0; from < width; from += MOST) {{
        const int64_t size = width - from < MOST ? width - from : MOST, i = row * width + from;
        {kind} line[MOST];
        __builtin_memcpy(line, slopes + first[row] * width + from, size * sizeof({kind}));
        for (int32_t e = next[first[row]]; e >= 0; e = next[e])
          for (int64_t j = 0; j < size; j++) line[j] += slopes[e * width + from + j];
        void *arrays[] = {{{shifted}}};
        arrays[1] = line;
        NAME_step(0, size, scalars, arrays);
      }}
  }}
}}
"""
"""Rows of a table by their numbers, which may repeat: lists of what belongs to each row, then all rows in turn."""


def with_updates(trainable: Trainable) -> tuple[ir.Model, dict[str, str]]:
    """A copy of the graph of gradients that gives weights and state after the step, and the C of its kernels by name.

    Raises `UnprintableError` where an optimizer does not go element by element, or wants all gradients at once.
    """
    if trainable.clip_norm is not None or trainable.accumulate > 1:
        raise UnprintableError("all gradients are wanted at once")
    if not trainable.parameters:
        raise UnprintableError("there are no gradients")
    slots = list(trainable.optimizer.states)
    dtype = next(iter(trainable.parameters.values())).dtype
    kinds, graphs = step_graphs(trainable, dtype)
    bodies = [printed(graph, "NAME_step", ["w", "w.grad", *(f"w.{slot}" for slot in slots)]) for graph in graphs]
    model = trainable.gradients.clone()
    graph = model.graph
    inputs = {value.name: value for value in graph.inputs}
    outputs = {value.name: value for value in graph.outputs}
    if taken := all_names(graph) & {LEARNING_RATE, STEP}:
        raise UnprintableError(f"the model has a value of the name {taken.pop()}")
    scalars = [_input(graph, LEARNING_RATE, ir.DataType.FLOAT, ()), _input(graph, STEP, ir.DataType.INT64, ())]
    sources: dict[str, str] = {}
    for (name, array), kind in zip(trainable.parameters.items(), kinds, strict=True):
        weight, gradient = inputs[name], outputs[f"{name}.grad"]
        assert weight.dtype is not None
        state = [_input(graph, f"{name}.{slot}", weight.dtype, array.shape) for slot in slots]
        gradient.shape = gradient.shape or ir.Shape(array.shape)
        graph.outputs.remove(gradient)
        scattered = sum_of_rows(gradient)
        read = [weight, *state, *(scattered or [gradient]), *scalars, outputs[LOSS]]
        wide = None if scattered is None else scattered[0].shape
        text = _source(bodies[kind], read, len(array.shape), len(slots), None if wide is None else wide.rank())
        kernel = f"{UPDATE}{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        sources[kernel] = text.replace("NAME", kernel)
        node = ir.Node(DOMAIN, kernel, read, num_outputs=1 + len(slots) + (2 if scattered else 0))
        for before, after in zip([weight, *state], node.outputs, strict=False):
            after.name, after.type, after.shape = f"{before.name}.next", before.type, ir.Shape(array.shape)
            graph.outputs.append(after)
        for scratch in node.outputs[1 + len(slots) :]:
            scratch.name, scratch.type = f"{name}.scratch{scratch.index()}", ir.TensorType(ir.DataType.INT32)
        graph.append(node)
    return model, sources


def _input(graph: ir.Graph, name: str, dtype: ir.DataType, shape: Sequence[int]) -> ir.Value:
    value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape))
    graph.inputs.append(value)
    return value


def _source(body: str, read: Sequence[ir.Value], rank: int, slots: int, wide: int | None) -> str:
    """The C of a kernel for weights of a rank; `wide` is that of the slopes of rows, which come with their numbers.

    Axes are those of the weights; of rows, those that count them behind.
    """
    kept, loss = 1 + slots, len(read) - 1
    kind = ctype(read[0])
    own = list(range(rank))
    batch = list(range(rank, rank + (0 if wide is None else wide - rank + 1)))
    axes = [own] * kept + ([own] if wide is None else [[*batch, *own[1:]], [*batch, -1]]) + [[], [], []] + [own] * kept
    merged = [0] * rank if wide is None else [0, *[1] * (rank - 1), *[2] * len(batch)]
    types = [int(value.dtype or 0) for value in (*read, *read[:kept])]
    order, rows = ([0] if rank else []), 0
    if wide is not None:
        axes += [[0], batch]
        types += [int(ir.DataType.INT32)] * 2
        order, rows = [0, 1, 2], 1
    if len(merged) > MOST_AXES:
        raise UnprintableError("there are too many axes")
    places = ["c->out[0]", f"c->in[{kept}]", *(f"c->out[{t}]" for t in range(1, kept))]
    names = {"kind": kind, "kept": kept, "loss": loss}
    copied = COPIED.format(**names)
    if wide is None:
        copied = copied.replace("FIRST", "begin").replace("LAST", "end")
        text = DENSE.format(copied=copied, arrays=", ".join(f"(void *){place}" for place in places))
    else:
        copied = copied.replace("FIRST", "begin * width").replace("(LAST -", "(end * width -")
        shifted = ", ".join(f"({kind} *){place} + i" for place in places)
        text = ROWS.format(copied=copied, shifted=shifted, **names)
    tables: Mapping[str, Sequence[int]] = {
        "types": types,
        "ranks": [len(each) for each in axes],
        "axes": [axis for each in axes for axis in each],
        "merged": merged,
        "order": order,
    }
    lines = [f"static {body}", text]
    lines += [f"static int NAME_{key}[] = {{{', '.join(map(str, [*numbers, 0]))}}};" for key, numbers in tables.items()]
    counts = [len(read), len(axes) - len(read), 0, len(merged), rows, len(order), 0]
    listed = ", ".join([*map(str, counts), *(f"NAME_{key}" for key in tables), "NAME", "0"])
    return "\n".join([*lines, f'static const Kernel NAME_kernel = {{"NAME", {listed}}};'])
