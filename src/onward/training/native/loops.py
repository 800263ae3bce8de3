"""A region as a C function: a loop over rows, and in each row one over its elements for every sum that has to wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import onnx_ir as ir

from onward.training.native.expressions import constant, ctype, expression, literal
from onward.training.native.regions import FORMS, Axes, Region, Sum, dims_of


@dataclass(frozen=True)
class Slot:
    """A tensor that a kernel reads or writes, and the axes of the frame that it runs along."""

    value: ir.Value
    axes: Axes


@dataclass
class Loop:
    """A kernel: what it reads and writes, and its source."""

    region: Region
    inputs: list[Slot] = field(default_factory=list)
    outputs: list[Slot] = field(default_factory=list)
    totals: list[Slot] = field(default_factory=list)
    """Outputs that are sums over all rows; they come last."""
    merged: list[int] = field(default_factory=list)
    """The loop that each axis of the frame belongs to; -1 for one of size 1."""
    rows: int = 0
    """How many loops go over rows; the others are within a row."""
    order: list[int] = field(default_factory=list)
    """The loops as they are nested: those over rows first."""
    source: str = ""


def loop_of(region: Region, order: Sequence[ir.Node]) -> Loop:
    """Print a region; `order` is that of its nodes in the graph."""
    return _Printer(region, order).printed()


class _Printer:
    def __init__(self, region: Region, order: Sequence[ir.Node]) -> None:
        self.region = region
        self.order = order
        self.loop = Loop(region)
        self.inputs: dict[tuple[ir.Value, Axes], int] = {}
        self.results = {node.outputs[0]: node for node in order}
        self.sums = {found.result: found for found in region.sums}
        self.names: dict[ir.Value, str] = {}
        self.levels: dict[ir.Value, int] = {}
        self.varying: dict[int, set[int]] = {}

    def printed(self) -> Loop:
        self._collect()
        self._merge()
        for node in self.order:
            self._level(node)
        lines = self._head()
        deepest = max((self.levels[v] for v in self.sums), default=0)
        for level in range(1, deepest + 1):
            lines += self._summing([found for result, found in self.sums.items() if self.levels[result] == level])
            lines += self._small(level)
        lines += self._writing()
        self.loop.source = "\n".join([*lines, "}", "}"])
        return self.loop

    def _collect(self) -> None:
        """Find what is read from outside, and what is used outside."""
        region, whole = self.region, self.region.whole()
        for node in self.order:
            if node in region.full or node in region.small:
                onto = whole if node in region.full else region.rows[node.outputs[0]]
                given = node.inputs[:1] if node.op_type in FORMS else node.inputs
                for value in given:
                    self._read(value, onto)
        for found in (*region.sums, *region.totals):
            self._read(found.source, whole)
            if found.weights is not None:
                self._slot(found.weights, (max(found.over), None))
        last = {total.result for total in region.totals}
        for node in self.order:
            result = node.outputs[0]
            outside = result.is_graph_output() or any(user not in region.nodes for user, _ in result.uses())
            if outside and result not in last:
                axes = whole if node in region.full else region.rows[result]
                self.loop.outputs.append(Slot(result, axes))
        self.loop.totals = [Slot(total.result, total.axes) for total in region.totals]

    def _read(self, value: ir.Value | None, onto: Axes) -> None:
        if value is None or value in self.results or constant(value) is not None:
            return
        dims = dims_of(value)
        axes = None if dims is None else self.region.spread(dims, onto)
        assert axes is not None, "regions take in only what can be read"
        self._slot(value, axes)

    def _slot(self, value: ir.Value, axes: Axes) -> int:
        key = value, axes
        if key not in self.inputs:
            self.inputs[key] = len(self.inputs)
            self.loop.inputs.append(Slot(value, axes))
        return self.inputs[key]

    def _merge(self) -> None:
        """Make one loop of neighbouring axes that all tensors run along, or none does."""
        region, loop = self.region, self.loop
        slots = [slot.axes for slot in (*loop.inputs, *loop.outputs, *loop.totals)]
        over = region.over
        marks: list[tuple[object, ...]] = []
        loop.merged = [-1] * len(region.frame)
        before: int | None = None
        for axis in region.long:
            mark = (over is not None and axis in over, *(axis in axes for axes in slots))
            if before is None or marks[-1] != mark:
                marks.append(mark)
            loop.merged[axis] = len(marks) - 1
            before = axis
        inner = {len(marks) - 1} if over is None else {loop.merged[axis] for axis in over}
        outer = [m for m in range(len(marks)) if m not in inner]
        loop.rows = len(outer)
        loop.order = [*outer, *sorted(inner)]

    def _level(self, node: ir.Node) -> None:
        """How many sums have to be known before what a node computes."""
        found = self.sums.get(node.outputs[0])
        if found is not None:
            self.levels[node.outputs[0]] = 1 + self.levels.get(found.source, 0)
        else:
            given = (self.levels.get(value, 0) for value in node.inputs if value is not None)
            self.levels[node.outputs[0]] = max(given, default=0)

    def _along(self, axes: Axes) -> list[int]:
        """The loops that a tensor runs along, as they follow each other in memory."""
        found = [self.loop.merged[axis] for axis in axes if axis is not None]
        return list(dict.fromkeys(found))

    def _offset(self, axes: Axes, loops: Iterable[int]) -> str:
        """Where a tensor is read or written, as far as the indices of some loops say."""
        along, wanted = self._along(axes), set(loops)
        terms = []
        for place, m in enumerate(along):
            if m in wanted:
                terms.append(" * ".join([f"i{m}", *(f"n{later}" for later in along[place + 1 :])]))
        return " + ".join(terms) or "0"

    @property
    def _inner(self) -> int:
        return self.loop.order[-1]

    def _head(self) -> list[str]:
        loop = self.loop
        lines = ["static void NAME(const Call *c, int64_t begin, int64_t end, char *sums) {"]
        lines += [f"const int64_t n{m} = c->n[{m}];" for m in sorted(loop.order)]
        for i, slot in enumerate(loop.inputs):
            kind = ctype(slot.value)
            lines.append(f"const {kind} *x{i} = c->in[{i}];")
        for i, slot in enumerate(loop.outputs):
            lines.append(f"{ctype(slot.value)} *y{i} = c->out[{i}];")
        width = [f"n{m}" for m in loop.order[loop.rows :]]
        offset = "0"
        for i, slot in enumerate(loop.totals):
            kind = ctype(slot.value)
            lines.append(f"{kind} *t{i} = (void *)(sums + {offset});")
            offset += f" + sizeof({kind}) * {' * '.join(width)}"
        if not loop.rows:
            return [*lines, "{"]
        lines.append("for (int64_t row = begin; row < end; row++) {")
        rest = "row"
        for m in reversed(loop.order[1 : loop.rows]):
            lines += [f"const int64_t i{m} = ({rest}) % n{m};"]
            rest = f"({rest}) / n{m}"
        first = loop.order[0]
        lines.append(f"const int64_t i{first} = {rest};")
        return lines

    def _summing(self, wanted: Sequence[Sum]) -> list[str]:
        """A loop over a row for some sums."""
        kinds = [ctype(found.result) for found in wanted]
        lines = [f"double d{self._id(found)} = 0;" for found in wanted]
        opened = self._open()
        accumulators = [f"s{self._id(found)}" for found in wanted]
        inside = self._elements([found.source for found in wanted])
        inside.before += [f"{kind} {name} = 0;" for kind, name in zip(kinds, accumulators, strict=True)]
        for found, name in zip(wanted, accumulators, strict=True):
            term = inside.names[found.source]
            if found.weights is not None:
                slot = self._slot(found.weights, (max(found.over), None))
                term = f"{term} * {self._loaded(slot, inside)}"
            inside.every.append(f"{name} += {term};")
        lines += [*opened, *inside.before, f"#pragma omp simd reduction(+ : {', '.join(accumulators)})"]
        lines += [self._for(self._inner), *inside.every, "}"]
        lines += [f"d{self._id(found)} += {name};" for found, name in zip(wanted, accumulators, strict=True)]
        lines += ["}"] * len(opened)
        count = " * ".join(f"n{m}" for m in self.loop.order[self.loop.rows :])
        for found, kind in zip(wanted, kinds, strict=True):
            self.names[found.result] = f"v{self._id(found)}"
            scale = f" / ({kind})({count})" if found.mean else ""
            lines.append(f"const {kind} v{self._id(found)} = ({kind})d{self._id(found)}{scale};")
        return lines

    def _id(self, found: Sum) -> int:
        return self.order.index(found.nodes[-1])

    def _small(self, level: int) -> list[str]:
        """What is computed once a row from the sums known so far."""
        lines = []
        for node in self.order:
            result = node.outputs[0]
            if node not in self.region.small or self.levels[result] != level:
                continue
            given = []
            for value in node.inputs[:1] if node.op_type in FORMS else node.inputs:
                if value is None:
                    given.append("")
                elif value in self.names:
                    given.append(self.names[value])
                elif constant(value) is not None:
                    given.append(literal(constant(value), ctype(value)))
                else:
                    dims = dims_of(value)
                    axes = None if dims is None else self.region.spread(dims, self.region.rows[result])
                    assert axes is not None
                    given.append(f"x{self._slot(value, axes)}[{self._offset(axes, self.loop.order[: self.loop.rows])}]")
            self.names[result] = f"v{self.order.index(node)}"
            text = given[0] if node.op_type in FORMS else expression(node, given)
            lines.append(f"const {ctype(result)} {self.names[result]} = {text};")
        return lines

    def _writing(self) -> list[str]:
        """The last loop over a row: what is used outside."""
        region, loop = self.region, self.loop
        lines = []
        outer = loop.order[: loop.rows]
        full = []
        for i, slot in enumerate(loop.outputs):
            if self.results[slot.value] in region.full:
                full.append((i, slot))
            else:
                lines.append(f"y{i}[{self._offset(slot.axes, outer)}] = {self.names[slot.value]};")
        if not full and not region.totals:
            return lines
        opened = self._open()
        inside = self._elements([*(slot.value for _, slot in full), *(total.source for total in region.totals)])
        for i, slot in full:
            inside.before.append(f"{ctype(slot.value)} *o{i} = y{i} + {self._offset(slot.axes, loop.order[:-1])};")
            inside.every.append(f"o{i}[j] = {inside.names[slot.value]};")
        for i, total in enumerate(region.totals):
            place = self._offset(loop.totals[i].axes, loop.order[:-1])
            inside.before.append(f"{ctype(total.result)} *r{i} = t{i} + {place};")
            inside.every.append(f"r{i}[j] += {inside.names[total.source]};")
        lines += [*opened, *inside.before, "#pragma omp simd", self._for(self._inner), *inside.every, "}"]
        return [*lines, *["}"] * len(opened)]

    def _open(self) -> list[str]:
        """The loops of a row around the innermost one."""
        return [f"for (int64_t i{m} = 0; i{m} < n{m}; i{m}++) {{" for m in self.loop.order[self.loop.rows : -1]] or (
            ["{"]
        )

    def _for(self, m: int) -> str:
        first, last = ("0", f"n{m}") if self.loop.rows else ("begin", "end")
        return f"for (int64_t j = {first}; j < {last}; j++) {{"

    def _elements(self, wanted: Iterable[ir.Value]) -> _Body:
        """What computes full values, element by element."""
        body = _Body(dict(self.names))
        needed: dict[ir.Value, None] = {}
        waiting = list(wanted)
        while waiting:
            value = waiting.pop()
            if value in needed:
                continue
            needed[value] = None
            node = self.results.get(value)
            if node is not None and node in self.region.full:
                waiting += [read for read in node.inputs if read is not None]
        whole = self.region.whole()
        for value in needed:
            if value not in self.results and dims_of(value) == self.region.frame and constant(value) is None:
                body.names[value] = self._loaded(self._slot(value, whole), body)
        for place, node in enumerate(self.order):
            result = node.outputs[0]
            if node not in self.region.full or result not in needed:
                continue
            given = [self._operand(value, whole, body) for value in node.inputs]
            body.names[result] = f"v{place}"
            body.every.append(f"const {ctype(result)} v{place} = {expression(node, given)};")
        return body

    def _operand(self, value: ir.Value | None, onto: Axes, body: _Body) -> str:
        if value is None:
            return ""
        if value in body.names:
            return body.names[value]
        number = constant(value)
        if number is not None:
            return literal(number, ctype(value))
        dims = dims_of(value)
        axes = None if dims is None else self.region.spread(dims, onto)
        assert axes is not None
        return self._loaded(self._slot(value, axes), body)

    def _loaded(self, slot: int, body: _Body) -> str:
        """An element of an input: read in the innermost loop if it runs along it, else before."""
        if slot in body.loaded:
            return body.loaded[slot]
        given = self.loop.inputs[slot]
        kind, name = ctype(given.value), f"e{slot}"
        offset = self._offset(given.axes, self.loop.order[:-1])
        if self._inner in self._along(given.axes):
            body.before.append(f"const {kind} *p{slot} = x{slot} + {offset};")
            body.every.insert(0, f"const {kind} {name} = p{slot}[j];")
        else:
            body.before.append(f"const {kind} {name} = x{slot}[{offset}];")
        body.loaded[slot] = name
        return name


@dataclass
class _Body:
    """The inside of a loop over elements."""

    names: dict[ir.Value, str]
    before: list[str] = field(default_factory=list)
    every: list[str] = field(default_factory=list)
    loaded: dict[int, str] = field(default_factory=dict)
