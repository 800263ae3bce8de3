"""A Scan as one compiled kernel.

The sequences of a batch do not touch each other, so threads share the batch and never wait for each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import onnx_ir as ir

from onward.training.native.driver import DOMAIN, MOST_AXES, MOST_TENSORS
from onward.training.native.expressions import UnprintableError, constant, ctype, expression, literal
from onward.training.native.steps import Phase, Steps, feeding, given

LEAST_ROWS = 4
"""Sequences that are worth a thread: for them it reads all of the matrices."""


def replace_scans(graph: ir.Graph, sources: dict[str, str]) -> bool:
    """Put kernels in the place of Scans that can be printed; their C goes to `sources` by name."""
    replaced = False
    for node in [node for node in graph if node.op_type == "Scan" and not node.domain]:
        for before in (feeding(graph, node), []):
            try:
                steps = Steps(node, before)
                text = _Printer(steps).printed()
            except UnprintableError:
                continue
            name = f"s{hashlib.sha256(text.encode()).hexdigest()[:16]}"
            sources[name] = text.replace("NAME", name)
            kernel = ir.Node(DOMAIN, name, steps.inputs, num_outputs=len(node.outputs), name=node.name)
            graph.insert_after(node, kernel)
            for old, new in zip(node.outputs, kernel.outputs, strict=True):
                new.name, new.type, new.shape = old.name, old.type, old.shape
                old.replace_all_uses_with(new, replace_graph_outputs=True)
                old.name = None
            graph.remove([*before, node], safe=True)
            replaced = True
            break
    return replaced


class _Printer:
    """Prints a function for some of the sequences: `s` and `n` are states before and after a step, `x` and `y` rows
    of this step, `w` tensors from outside, `t` what is kept from phase to phase."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.homes: dict[ir.Value, str] = {}
        """Where a value is read from."""
        self.copies: dict[ir.Value, list[str]] = {}
        """Where else it has to be written to."""
        self.buffers: dict[str, int] = {}
        """The widths of what is held for each sequence."""
        for i, state in enumerate(steps.states):
            self.homes[state] = f"s{i}"
            self.buffers |= {f"s{i}": steps.widths[state], f"n{i}": steps.widths[state]}
        self.homes |= {value: f"x{steps.inputs.index(value)}" for value in steps.rows}
        self.homes |= {value: f"w{steps.inputs.index(value)}" for value in steps.outside}
        for i, value in enumerate(steps.outputs):
            self.copies.setdefault(value, []).append(f"n{i}" if i < len(steps.states) else f"y{i}")
        for value in steps.lasting():
            if value not in self.homes:
                self._settle(value)

    def _settle(self, value: ir.Value) -> None:
        if ctype(value) != "float":
            raise UnprintableError(f"a {ctype(value)} that lasts")
        if self.copies.get(value):
            self.homes[value] = self.copies[value].pop()
        else:
            self.homes[value] = f"t{len(self.buffers)}"
            self.buffers[self.homes[value]] = self.steps.widths[value]

    def printed(self) -> str:
        steps, states = self.steps, range(len(self.steps.states))
        sizes = [f"rows * {width}" for width in self.buffers.values()]
        lines = [f"float *{name} = at; at += rows * {width};" for name, width in self.buffers.items()]
        for value, dims in steps.outside.items():
            name = self.homes[value]
            if len(dims) == 2:
                sizes.append(f"{dims[0]} * (({dims[1]} + PANEL - 1) / PANEL * PANEL)")
                lines.append(f"float *{name} = at; at += {sizes[-1]};")
                lines.append(f"keep_panels({dims[0]}, {dims[1]}, c->in[{name[1:]}], {name});")
            else:
                lines.append(f"const float *{name} = c->in[{name[1:]}];")
        widths = [steps.widths[value] for value in steps.outputs]
        all_of = [f"rows * {width} * sizeof(float)" for width in widths]
        lines += [f"memcpy(s{i}, (const float *)c->in[{i}] + begin * {widths[i]}, {all_of[i]});" for i in states]
        lines.append("for (int64_t step = 0; step < time; step++) {")
        lines.append(f"const int64_t first = {'(time - 1 - step)' if steps.backwards else 'step'} * batch + begin;")
        for value in steps.rows:
            i = steps.inputs.index(value)
            lines.append(f"const float *x{i} = (const float *)c->in[{i}] + first * {steps.widths[value]};")
        for i, width in list(enumerate(widths))[len(states) :]:
            lines.append(f"float *y{i} = (float *)c->out[{i}] + first * {width};")
        lines += [line for phase in steps.phases for line in self._phase(phase)]
        lines += [f"float *swap{i} = s{i}; s{i} = n{i}; n{i} = swap{i};" for i in states]
        lines.append("}")
        lines += [f"memcpy((float *)c->out[{i}] + begin * {widths[i]}, s{i}, {all_of[i]});" for i in states]
        return "\n".join(
            [
                "static void NAME(const Call *c, int64_t begin, int64_t end, char *scratch) {",
                "const int64_t batch = c->n[0], time = c->n[1], rows = end - begin;",
                "float *at = (float *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);",
                *lines,
                "}",
                f"static size_t NAME_scratch(int64_t rows) {{ return 64 + sizeof(float) * ({' + '.join(sizes)}); }}",
                *self._tables(),
            ]
        )

    def _phase(self, phase: Phase) -> list[str]:
        lines = self._loop(phase)
        for node in phase.products:
            read = [given(value) for value in self.steps.read(node)]
            a, w, *c = (self.homes[value] for value in read)
            depth, columns = self.steps.outside[read[1]]
            y = self.homes[node.outputs[0]]
            lines.append(f"product(rows, {depth}, {columns}, {a}, {w}, {c[0] if c else 'NULL'}, {y});")
        return lines

    def _loop(self, phase: Phase) -> list[str]:
        """Over all units of all sequences; none, if there is nothing to write."""
        unit, widths = self.steps.unit, self.steps.widths
        names: dict[ir.Value, list[str]] = {}
        lines: list[str] = []

        def variable(kind: str, expression: str) -> str:
            lines.append(f"const {kind} v{len(lines)} = {expression};")
            return f"v{len(lines) - 1}"

        def places(home: str, value: ir.Value) -> list[str]:
            row = "" if value in self.steps.outside else f"r * {widths[value]} + "
            return [f"{home}[{row}{first} + j]" for first in range(0, widths[value], unit)]

        def pieces(value: ir.Value) -> list[str]:
            if value not in names:
                names[value] = [variable("float", place) for place in places(self.homes[value], value)]
            return names[value]

        def operand(value: ir.Value | None, piece: int) -> str:
            if value is None:
                return ""
            return pieces(value)[piece] if value in widths else literal(constant(value), ctype(value))

        for node in phase.nodes:
            read, result = self.steps.read(node), node.outputs[0]
            if node.op_type == "Split":
                parts = iter(pieces(given(read[0])))
                for output in node.outputs:
                    names[output] = [next(parts) for _ in range(widths[output] // unit)]
            elif node.op_type == "Concat":
                names[result] = [name for value in read for name in pieces(given(value))]
            else:
                names[result] = [
                    variable(ctype(result), expression(node, [operand(value, piece) for value in read]))
                    for piece in range(widths[result] // unit)
                ]
        new = [output for node in phase.nodes for output in node.outputs]
        written = [(value, self.homes[value]) for value in new if value in self.homes]
        written += [(value, copy) for value in (*phase.known, *new) for copy in self.copies.get(value, [])]
        stores = [
            f"{place} = {name};"
            for value, home in written
            for place, name in zip(places(home, value), pieces(value), strict=True)
        ]
        head = ["for (int64_t r = 0; r < rows; r++)", "#pragma omp simd", f"for (int64_t j = 0; j < {unit}; j++) {{"]
        return [*head, *lines, *stores, "}"] if stores else []

    def _tables(self) -> list[str]:
        """What the driver has to know. The frame is the batch, time, and each width that there is."""
        steps = self.steps
        states, rows = [0], [1, 0]
        read: list[tuple[list[int], Sequence[int]]] = [
            *((states, [steps.widths[value]]) for value in steps.states),
            *((rows, [steps.widths[value]]) for value in steps.rows),
            *(([], sizes) for sizes in steps.outside.values()),
        ]
        written = [
            (states if i < len(steps.states) else rows, [steps.widths[value]]) for i, value in enumerate(steps.outputs)
        ]
        widths = sorted({n for _, sizes in (*read, *written) for n in sizes})
        if len(widths) + 2 > MOST_AXES or max(len(read), len(written)) > MOST_TENSORS:
            raise UnprintableError("too many tensors, or of too many widths")
        axes = [[*leading, *(2 + widths.index(n) for n in sizes)] for leading, sizes in (*read, *written)]
        rank = 2 + len(widths)
        tables = {
            "types": [int(ir.DataType.FLOAT)] * len(axes),
            "ranks": [len(each) for each in axes],
            "axes": [axis for each in axes for axis in each],
            "merged": range(rank),
            "order": range(rank),
            "sizes": [0, 0, *widths],
        }
        counts = f"{len(read)}, {len(written)}, 0, {rank}, 1, {rank}, 0"
        names = ", ".join(f"NAME_{key}" for key in list(tables)[:5])
        return [
            *(f"static int NAME_{key}[] = {{{', '.join(map(str, numbers))}}};" for key, numbers in tables.items()),
            f'static const Kernel NAME_kernel = {{"NAME", {counts}, {names}, NAME, NULL, {LEAST_ROWS}, NAME_sizes,'
            " NAME_scratch};",
        ]
