"""Chains of RNN, GRU or LSTM nodes as the one module of several layers that they were exported from.

`onward::LSTM(x, lengths, h0, c0, w_ih, w_hh[, b_ih, b_hh], …)`, and `GRU` and `RNN` without `c0`, take the tensors of
each direction of each layer with the gates in the order input, forget, cell, output (GRU: reset, update, new), and
give the sequence of the last layer as (time, batch, directions · hidden) and the final states of all layers.
With `batch_first`, x and the sequence have the batch first; the states never do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.graph.facts import Facts
from onward.graph.origin import origin
from onward.graph.replace import (
    DOMAIN,
    constant,
    graphs,
    ints,
    is_op,
    made_by,
    new_node,
    only_user,
    permutation,
    remove_unread,
    take_over,
)
from onward.graph.trained import is_trained
from onward.passes.rows import Rows, as_value, cut, reordered, row_count, stacked_rows, stacked_value
from onward.spec.rnn import GATES, Recurrence

ORDER = {"RNN": (0,), "GRU": (1, 0, 2), "LSTM": (0, 2, 3, 1)}
"""Where the gates of the fused node stand among ONNX's."""
ZERO_LIMIT = 1 << 22
_OF_ONE = ("Cast", "Expand", "Identity", "Reshape", "Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze")
"""Ops that give zeros for zeros, whatever else they are given."""


@dataclass
class _Layer:
    """A node that a framework's module can compute, its weights found."""

    node: ir.Node
    hidden: int
    bidirectional: bool
    nonlinearity: str
    weights: list[tuple[Rows, Rows, Rows | None, Rows | None]]
    """For each direction: of the input, of the state, and the biases of both."""
    flat: ir.Value | None = None
    """The output as (time, batch, directions · hidden), where the graph makes it so."""

    @property
    def states(self) -> list[ir.Value | None]:
        """What it starts from, as it is now: that may be what another layer ends with, which is replaced first."""
        return [*self.node.inputs, *[None] * 7][5 : 7 if self.node.op_type == "LSTM" else 6]

    @property
    def lengths(self) -> ir.Value | None:
        return self.node.inputs[4] if len(self.node.inputs) > 4 else None

    @property
    def directions(self) -> int:
        return 2 if self.bidirectional else 1

    def continues(self, other: _Layer) -> bool:
        """Whether this can be the next layer of the same module."""
        return self.lengths is other.lengths and (
            self.node.op_type,
            self.hidden,
            self.bidirectional,
            self.nonlinearity,
            self._has_bias,
        ) == (
            other.node.op_type,
            other.hidden,
            other.bidirectional,
            other.nonlinearity,
            other._has_bias,
        )

    @property
    def _has_bias(self) -> bool:
        return self.weights[0][2] is not None


def fuse_rnn(model: ir.Model) -> int:
    """Rewrites in place; returns how many modules were found. Weights of other recurrent nodes are put together."""
    facts, count = Facts(), 0
    for graph in graphs(model):
        nodes = [node for node in graph if is_op(node, *GATES)]
        for node in nodes:
            drop_zero_states(node)
        if nodes:
            remove_unread(list(graph))
        layers = {}
        for node in nodes:
            if node.graph is not None:
                layer = _layer(node, facts)
                if layer is None:
                    _fold_weights(node, graph, facts)
                else:
                    layers[node] = layer
        while layers:
            chain = [layers.pop(next(iter(layers)))]
            while (following := _next(chain, layers, facts)) is not None:
                chain.append(layers.pop(following.node))
            _fuse(chain, graph, facts)
            count += 1
    return count


def _layer(node: ir.Node, facts: Facts) -> _Layer | None:
    """The node as a layer, if a framework's own module means the same."""
    kind = node.op_type
    meaning = Recurrence.of(node)
    inputs = [*node.inputs, *[None] * 8][:8]
    x, w, r, b, _, *states, peepholes = inputs
    if not meaning.is_usual or peepholes is not None or meaning.batch_first:
        return None
    if meaning.reverse == (True,) or x is None:
        return None
    stacks = [None if v is None else stacked_rows(v, facts) for v in (w, r, b)]
    if stacks[0] is None or stacks[1] is None or (b is not None and stacks[2] is None):
        return None
    if any(stack is not None and len(stack) != len(meaning.reverse) for stack in stacks):
        raise InvalidModelError(f"{origin(node)}: its weights are for another number of directions")
    order, size = ORDER[kind], row_count(stacks[1][0])
    hidden = size // GATES[kind]
    weights = []
    for d in range(len(meaning.reverse)):
        ih, hh = (reordered(stack[d], order) for stack in stacks[:2] if stack is not None)
        bias = None if stacks[2] is None else stacks[2][d]
        halves = [None, None] if bias is None else [cut(bias, 0, size), cut(bias, size, 2 * size)]
        b_ih, b_hh = (None if half is None else reordered(half, order) for half in halves)
        weights.append((ih, hh, b_ih, b_hh))
    states = states[: 2 if kind == "LSTM" else 1]
    if None in states and any(s is not None for s in states):
        return None
    nonlinearity = meaning.nonlinearity or "tanh"
    layer = _Layer(node, hidden, len(meaning.reverse) == 2, nonlinearity, weights)
    layer.flat = _flattened(layer, facts)
    return layer


def drop_zero_states(node: ir.Node) -> bool:
    """Forget initial states that are zero, as they are by default; returns whether there were any."""
    states = list(node.inputs[5:7])
    if not any(states) or not all(s is None or _is_zero(s) for s in states):
        return False
    for index in range(5, 5 + len(states)):
        node.replace_input_with(index, None)
    return True


def _is_zero(value: ir.Value | None, depth: int = 0) -> bool:
    """Whether all elements of a value are zero."""
    if value is None or depth > 12:
        return False
    tensor = constant(value)
    if tensor is not None:
        return tensor.size <= ZERO_LIMIT and not is_trained(value) and not np.any(tensor.numpy())
    node = made_by(value, "Concat", "ConstantOfShape", *_OF_ONE)
    if node is None:
        return False
    if node.op_type == "Concat":
        return all(_is_zero(part, depth + 1) for part in node.inputs)
    if node.op_type == "ConstantOfShape":
        fill = node.attributes.get_tensor("value", None)
        return fill is None or not np.any(fill.numpy())
    return _is_zero(node.inputs[0], depth + 1)


def _flattened(layer: _Layer, facts: Facts) -> ir.Value | None:
    """Where all that happens to Y is that its directions are put side by side: the result of that."""
    y = layer.node.outputs[0]
    user = only_user(y)
    if user is None:
        return None
    if is_op(user, "Squeeze") and not layer.bidirectional:
        return user.outputs[0] if facts.ints(user.inputs[1]) == [1] else None
    if not is_op(user, "Transpose") or permutation(user) != [0, 2, 1, 3]:
        return None
    turned = user.outputs[0]
    reshapes = [u.node for u in turned.uses() if not is_op(u.node, "Shape")]
    if len(reshapes) != 1 or not is_op(reshapes[0], "Reshape") or turned.is_graph_output():
        return None
    target = facts.numbers(reshapes[0].inputs[1])
    if target is None or len(target) != 3 or turned.shape is None:
        return None
    copies = reshapes[0].attributes.get_int("allowzero", 0) == 0
    sizes = [facts.dim(turned, 0), facts.dim(turned, 1), layer.directions * layer.hidden]
    fits = [
        t == s or t == -1 or (t == 0 and copies and i < 2) for i, (t, s) in enumerate(zip(target, sizes, strict=True))
    ]
    return reshapes[0].outputs[0] if all(fits) and target.count(-1) <= 1 else None


def _next(chain: list[_Layer], layers: dict[ir.Node, _Layer], facts: Facts) -> _Layer | None:
    """The layer that reads the sequence of the last one, if nothing else does, and the states fit together."""
    flat = chain[-1].flat
    user = None if flat is None else only_user(flat)
    following = None if user is None else layers.get(user)
    if following is None or following.node.inputs[0] is not flat or not following.continues(chain[-1]):
        return None
    for i, state in enumerate(following.states):
        states = [*(layer.states[i] for layer in chain), state]
        if any(s is not None for s in states) and _sliced_from(states, following.directions, facts) is None:
            return None
    return following


def _sliced_from(states: list[ir.Value | None], step: int, facts: Facts) -> ir.Value | None:
    """The value whose first, second, … `step` elements are the initial states of the layers."""
    sources = []
    for i, state in enumerate(states):
        node = made_by(state, "Slice")
        if node is None:
            return None
        starts, ends, axes, steps = (facts.ints(v) for v in (*node.inputs[1:], None, None)[:4])
        if (starts, ends) != ([i * step], [(i + 1) * step]) or (axes or [0]) != [0] or (steps or [1]) != [1]:
            return None
        sources.append(node.inputs[0])
    return sources[0] if all(s is sources[0] for s in sources) else None


def _initial(states: list[ir.Value | None], step: int, before: ir.Node, facts: Facts) -> ir.Value | None:
    """The initial states of all layers as one value."""
    source = _sliced_from(states, step, facts)
    if source is None or states[0] is None:
        assert len(states) == 1 or states[0] is None
        return states[0]
    size = len(states) * step
    if source.shape is not None and source.shape[0] == size:
        return source
    part = _slice(source, 0, size, before, f"{states[0].name}/all")
    part.type = source.type
    return part


def _fuse(chain: list[_Layer], graph: ir.Graph, facts: Facts) -> None:
    first, last = chain[0], chain[-1]
    kind, before = first.node.op_type, first.node
    x = first.node.inputs[0]
    inputs: list[ir.Value | None] = [x, first.lengths]
    for i in range(len(first.states)):
        inputs.append(_initial([layer.states[i] for layer in chain], first.directions, before, facts))
    base = next(o.name for o in first.node.outputs if o.name)
    for depth, layer in enumerate(chain):
        for d, tensors in enumerate(layer.weights):
            names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            suffix = f"_l{depth}" + ("_reverse" if d else "")
            for name, rows in zip(names, tensors, strict=True):
                if rows is not None:
                    inputs.append(as_value(rows, graph, f"{base}/{name}{suffix}"))
    turned_in, turned_out = made_by(x, "Transpose"), _turned(last.flat)
    batch_first = turned_in is not None and permutation(turned_in) == [1, 0, 2] and turned_out is not None
    if batch_first and turned_in is not None:
        inputs[0] = turned_in.inputs[0]
    weight = constant(inputs[2 + len(first.states)])
    assert weight is not None
    attributes = {
        "input_size": weight.shape.numpy()[1],
        "hidden_size": first.hidden,
        "num_layers": len(chain),
        "bidirectional": int(first.bidirectional),
        "batch_first": int(batch_first),
        "bias": int(first._has_bias),
        "nonlinearity": first.nonlinearity if kind == "RNN" else None,
    }
    node = new_node(kind, inputs, attributes, first.node, before, domain=DOMAIN, outputs=1 + len(first.states))
    _replace_sequence(node, last, batch_first, before)
    for i in range(1, len(node.outputs)):
        _replace_states(node.outputs[i], [_output(layer.node, i) for layer in chain], chain, before)


def _turned(flat: ir.Value | None) -> list[ir.Value] | None:
    """The sequence with batch first, if it is only read that way."""
    if flat is None or flat.is_graph_output() or not flat.uses():
        return None
    users = [use.node for use in flat.uses()]
    fits = all(is_op(user, "Transpose") and permutation(user) == [1, 0, 2] for user in users)
    return [user.outputs[0] for user in users] if fits else None


def _replace_sequence(node: ir.Node, last: _Layer, batch_first: bool, before: ir.Node) -> None:
    """Give the readers of the last layer's output the module's."""
    out, y = node.outputs[0], last.node.outputs[0]
    if last.flat is not None:
        olds = (_turned(last.flat) or []) if batch_first else [last.flat]
        take_over(olds[0], out)
        for old in olds[1:]:
            old.replace_all_uses_with(out, replace_graph_outputs=True)
        return
    out.type = y.type
    if y.shape is not None:
        time, _, batch, _ = y.shape
        out.shape = ir.Shape([time, batch, last.directions * last.hidden])
    if not y.uses() and not y.is_graph_output():
        return
    name = y.name
    sizes = ints([0, 0, last.directions, last.hidden], f"{name}/sizes", before)
    apart = new_node("Reshape", [out, sizes], {"allowzero": 0}, last.node, before).outputs[0]
    apart.type = y.type
    turned = new_node("Transpose", [apart], {"perm": [0, 2, 1, 3]}, last.node, before).outputs[0]
    take_over(y, turned)


def _output(node: ir.Node, index: int) -> ir.Value | None:
    """An output of a node, if somebody reads it."""
    value = node.outputs[index] if index < len(node.outputs) else None
    return value if value is not None and (value.uses() or value.is_graph_output()) else None


def _replace_states(out: ir.Value, olds: list[ir.Value | None], chain: list[_Layer], before: ir.Node) -> None:
    """Give the readers of the layers' final states the module's, or each its layer's part of it."""
    read = [old for old in olds if old is not None]
    if not read:
        return
    out.type = read[0].type
    together = only_user(read[0])
    if len(chain) == 1:
        take_over(read[0], out)
    elif together is not None and _joins(together, olds):
        take_over(together.outputs[0], out)
    else:
        step = chain[0].directions
        for depth, old in enumerate(olds):
            if old is not None:
                take_over(old, _slice(out, depth * step, (depth + 1) * step, before, old.name))


def _joins(node: ir.Node, values: list[ir.Value | None]) -> bool:
    return is_op(node, "Concat") and node.attributes.get_int("axis", 0) == 0 and list(node.inputs) == values


def _slice(x: ir.Value, start: int, stop: int, before: ir.Node, name: str | None) -> ir.Value:
    bounds = {"start": start, "stop": stop, "axis": 0}
    ends = [ints([n], f"{name}/{which}", before) for which, n in bounds.items()]
    return new_node("Slice", [x, *ends], {}, before, before).outputs[0]


def _fold_weights(node: ir.Node, graph: ir.Graph, facts: Facts) -> None:
    """Put together, once, weights that the graph makes out of constants at every run."""
    for index, name in ((1, "weight_ih"), (2, "weight_hh"), (3, "bias")):
        value = node.inputs[index] if index < len(node.inputs) else None
        if value is not None and constant(value) is None:
            stack = stacked_rows(value, facts)
            if stack is not None:
                base = next(o.name for o in node.outputs if o.name)
                node.replace_input_with(index, stacked_value(stack, graph, f"{base}/{name}"))
