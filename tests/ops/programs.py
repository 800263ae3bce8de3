"""Random programs: nested If, Loop and Scan nodes over a few tensors, numbers and flags, with all kinds of names."""

import random

import onnx
from onnx import TensorProto as T
from onnx import helper as h

TYPES = {"tensor": (T.FLOAT, [2]), "number": (T.INT64, []), "flag": (T.BOOL, [])}
WEIGHTS = {
    "two": (T.INT64, [], [2]),
    "three": (T.INT64, [], [3]),
    "none": (T.INT64, [], [0]),
    "yes": (T.BOOL, [], [True]),
    "zero": (T.FLOAT, [], [0.0]),
    "first": (T.INT64, [1], [0]),
    "w.weight": (T.FLOAT, [2], [0.3, -0.7]),
    "b.0.weight": (T.FLOAT, [2], [0.5, -0.1]),
    "b.1.weight": (T.FLOAT, [2], [-0.4, 0.9]),
    "table": (T.FLOAT, [3, 2], [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]),
}
SCOPES = ["", "/w/", "/b/b.0/", "/b/b.1/", "/b/"]
Values = dict[str, list[str]]


def info(name: str, kind: str) -> onnx.ValueInfoProto:
    return h.make_tensor_value_info(name, *TYPES[kind])


class Program:
    """Grows a graph; `seen` lists by kind the values that a node may read."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        self.numbered = self.random.random() < 0.5

    def model(self) -> onnx.ModelProto:
        """Inputs: tensors p and q, the number `trips`, the flag `flag`, three rows of two."""
        seen = {
            "tensor": ["p", "q", "w.weight", "b.0.weight", "b.1.weight"],
            "number": ["two", "three", "trips"],
            "flag": ["flag", "yes"],
        }
        nodes = self.nodes(seen, depth=3, count=self.random.randint(4, 12))
        kinds = ["tensor", "tensor", "number", "flag"]
        results = [self.result(nodes, seen, kind) for kind in kinds]
        inputs = [info("p", "tensor"), info("q", "tensor"), info("trips", "number"), info("flag", "flag")]
        inputs.append(h.make_tensor_value_info("rows", T.FLOAT, [3, 2]))
        weights = [h.make_tensor(name, *content) for name, content in WEIGHTS.items()]
        graph = h.make_graph(nodes, "program", inputs, list(map(info, results, kinds)), weights)
        return h.make_model(graph, opset_imports=[h.make_opsetid("", 20)], ir_version=9)

    def name(self) -> str:
        self.count += 1
        return str(self.count) if self.numbered else self.random.choice(["a", "b", "x", "total"]) + f"_{self.count}"

    def add(self, nodes: list[onnx.NodeProto], op: str, inputs: list[str], **attributes: object) -> str:
        out = self.name()
        name = f"{self.random.choice(SCOPES)}{op}_{self.count}"
        nodes.append(h.make_node(op, inputs, [out], name, **attributes))
        return out

    def result(self, nodes: list[onnx.NodeProto], seen: Values, kind: str) -> str:
        return self.add(nodes, "Identity", [self.random.choice(seen[kind][-5:])])

    def nodes(self, seen: Values, depth: int, count: int) -> list[onnx.NodeProto]:
        made: list[onnx.NodeProto] = []
        steps = (
            [self.arithmetic] * 5
            + [self.scaled, self.test, self.number]
            + [self.branch, self.loop, self.loop, self.scan] * (depth > 0)
        )
        for _ in range(count):
            self.random.choice(steps)(made, seen, depth)
        return made

    def read(self, seen: Values, kind: str) -> str:
        return self.random.choice(seen[kind][-6:] if self.random.random() < 0.7 else seen[kind])

    def arithmetic(self, nodes: list[onnx.NodeProto], seen: Values, depth: int) -> None:
        op = self.random.choice(["Add", "Sub", "Mul", "Max", "Tanh", "Relu", "Identity"])
        inputs = [self.read(seen, "tensor") for _ in range(2 if op in ("Add", "Sub", "Mul", "Max") else 1)]
        seen["tensor"].append(self.add(nodes, op, inputs))

    def scaled(self, nodes: list[onnx.NodeProto], seen: Values, depth: int) -> None:
        factor = self.add(nodes, "Cast", [self.read(seen, "number")], to=T.FLOAT)
        seen["tensor"].append(self.add(nodes, "Mul", [self.read(seen, "tensor"), factor]))

    def number(self, nodes: list[onnx.NodeProto], seen: Values, depth: int) -> None:
        if self.random.random() < 0.5:
            seen["number"].append(self.add(nodes, "Add", [self.read(seen, "number"), self.read(seen, "number")]))
        else:
            seen["number"].append(self.add(nodes, "Size", [self.read(seen, "tensor")]))

    def test(self, nodes: list[onnx.NodeProto], seen: Values, depth: int) -> None:
        if self.random.random() < 0.5:
            seen["flag"].append(self.add(nodes, "Less", [self.read(seen, "number"), self.read(seen, "number")]))
        else:
            mean = self.add(nodes, "ReduceMean", [self.read(seen, "tensor")], keepdims=0)
            seen["flag"].append(self.add(nodes, "Greater", [mean, "zero"]))

    def branch(self, nodes: list[onnx.NodeProto], seen: Values, depth: int) -> None:
        kinds = self.random.choices(list(TYPES), k=self.random.randint(1, 3))
        graphs = []
        for _ in range(2):
            inner = {kind: list(names) for kind, names in seen.items()}
            body = self.nodes(inner, depth - 1, self.random.randint(0, 5))
            outs = [self.result(body, inner, kind) for kind in kinds]
            graphs.append(h.make_graph(body, self.name(), [], list(map(info, outs, kinds))))
        outs = [self.name() for _ in kinds]
        test = self.read(seen, "flag")
        nodes.append(h.make_node("If", [test], outs, then_branch=graphs[0], else_branch=graphs[1]))
        for out, kind in zip(outs, kinds, strict=True):
            seen[kind].append(out)

    def loop(self, nodes: list[onnx.NodeProto], seen: Values, depth: int) -> None:
        kinds = self.random.choices(list(TYPES), k=self.random.randint(1, 4))
        rows = self.random.choices(["tensor", "number"], k=self.random.randint(0, 2))
        inner = {kind: list(names) for kind, names in seen.items()}
        counter, going, states = self.name(), self.name(), [self.name() for _ in kinds]
        for name, kind in zip([counter, going, *states], ["number", "flag", *kinds], strict=True):
            inner[kind].append(name)
        body = self.nodes(inner, depth - 1, self.random.randint(1, 6))
        again = self.random.choice([going, *inner["flag"]])
        if self.random.random() < 0.3:
            again = self.add(body, "Less", [counter, self.random.choice(["two", "three"])])
        swapped = [[s for s, k in zip(states, kinds, strict=True) if k == kind] for kind in kinds]
        sources = [self.random.choice(same) if self.random.random() < 0.25 else None for same in swapped]
        outs = [
            self.add(body, "Identity", [s]) if s else self.result(body, inner, k)
            for s, k in zip(sources, kinds, strict=True)
        ]
        outs += [self.result(body, inner, kind) for kind in rows]
        outs = [state if self.random.random() < 0.15 else out for out, state in zip(outs, states, strict=False)] + outs[
            len(states) :
        ]
        graph = h.make_graph(
            body,
            self.name(),
            list(map(info, [counter, going, *states], ["number", "flag", *kinds])),
            list(map(info, [self.add(body, "Identity", [again]), *outs], ["flag", *kinds, *rows])),
        )
        inputs = [self.random.choice(["two", "three", "trips", "none"]), self.random.choice(["", *seen["flag"]])]
        results = [self.name() for _ in outs]
        nodes.append(h.make_node("Loop", inputs + [self.read(seen, kind) for kind in kinds], results, body=graph))
        self.keep(nodes, seen, results, kinds, rows)

    def scan(self, nodes: list[onnx.NodeProto], seen: Values, depth: int) -> None:
        kinds = self.random.choices(["tensor", "number"], k=self.random.randint(0, 2))
        scanned = self.random.choices(["rows", "table"], k=self.random.randint(1, 2))
        inner = {kind: list(names) for kind, names in seen.items()}
        states, items = [self.name() for _ in kinds], [self.name() for _ in scanned]
        for name, kind in zip([*states, *items], [*kinds, *["tensor"] * len(items)], strict=True):
            inner[kind].append(name)
        body = self.nodes(inner, depth - 1, self.random.randint(1, 4))
        outs = [self.result(body, inner, kind) for kind in [*kinds, "tensor"]]
        graph = h.make_graph(
            body,
            self.name(),
            list(map(info, [*states, *items], [*kinds, *["tensor"] * len(items)])),
            list(map(info, outs, [*kinds, "tensor"])),
        )
        attributes = {
            "num_scan_inputs": len(scanned),
            "scan_input_directions": [self.random.randint(0, 1) for _ in scanned],
            "scan_output_directions": [self.random.randint(0, 1)],
        }
        results = [self.name() for _ in outs]
        inputs = [self.read(seen, kind) for kind in kinds]
        nodes.append(h.make_node("Scan", inputs + scanned, results, body=graph, **attributes))
        self.keep(nodes, seen, results, kinds, ["tensor"])

    def keep(
        self, nodes: list[onnx.NodeProto], seen: Values, results: list[str], kinds: list[str], rows: list[str]
    ) -> None:
        """Make results known: states as they are, what was collected row by row as a sum."""
        for name, kind in zip(results, kinds, strict=False):
            seen[kind].append(name)
        for name, kind in zip(results[len(kinds) :], rows, strict=True):
            seen[kind].append(self.add(nodes, "ReduceSum", [name, "first"], keepdims=0))
