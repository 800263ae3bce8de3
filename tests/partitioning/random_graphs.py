"""Random ONNX models with branches, loops and shape computations, all of which ONNX Runtime runs."""

import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROWS, COLUMNS = 3, 4


def tensor(name: str, kind: int = TensorProto.FLOAT, shape: tuple[object, ...] = ("n", COLUMNS)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


class _Builder:
    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.values = ["x", "y"]
        self.sizes: list[str] = []

    def name(self) -> str:
        return f"v{len(self.nodes)}"

    def pick(self) -> str:
        return self.draw.choice(self.values[-6:])

    def add(self, op: str, inputs: list[str], **attributes: object) -> str:
        made = self.name()
        self.nodes.append(helper.make_node(op, inputs, [made], name=f"node_{made}", **attributes))
        return made

    def step(self) -> None:
        kind = self.draw.choice(["unary", "unary", "binary", "binary", "if", "loop", "shape", "reshape", "constant"])
        if kind == "unary":
            self.values.append(
                self.add(self.draw.choice(["Relu", "Neg", "Sigmoid", "Tanh", "Identity"]), [self.pick()])
            )
        elif kind == "binary":
            op = self.draw.choice(["Add", "Sub", "Mul", "Max"])
            self.values.append(self.add(op, [self.pick(), self.pick()]))
        elif kind == "constant":
            self.values.append(self.add("Mul", [self.pick(), self.add("Exp", ["w"])]))
        elif kind == "shape":
            self.sizes.append(self.add("Shape", [self.pick()]))
        elif kind == "reshape" and self.sizes:
            size = self.draw.choice(self.sizes)
            if self.draw.random() < 0.5:
                size = self.add("Add", [size, "zeros"])
                self.sizes.append(size)
            self.values.append(self.add("Reshape", [self.pick(), size]))
        elif kind == "if":
            captured, other = self.pick(), self.pick()
            branches = {
                branch: helper.make_graph(
                    [helper.make_node(op, [captured, other], [f"{self.name()}_{branch}"])],
                    branch,
                    [],
                    [tensor(f"{self.name()}_{branch}")],
                )
                for branch, op in (("then_branch", "Add"), ("else_branch", "Mul"))
            }
            self.values.append(self.add("If", ["flag"], **branches))
        elif kind == "loop":
            captured, made = self.pick(), self.name()
            body = helper.make_graph(
                [
                    helper.make_node("Identity", ["go_in"], [f"{made}_go"]),
                    helper.make_node("Mul", ["state", "half"], [f"{made}_less"]),
                    helper.make_node("Add", [f"{made}_less", captured], [f"{made}_more"]),
                ],
                "body",
                [tensor("i", TensorProto.INT64, ()), tensor("go_in", TensorProto.BOOL, ()), tensor("state")],
                [tensor(f"{made}_go", TensorProto.BOOL, ()), tensor(f"{made}_more")],
            )
            self.values.append(self.add("Loop", ["trips", "", self.pick()], body=body))


def model(seed: int, size: int) -> onnx.ModelProto:
    """Its inputs are x, y and flag."""
    builder = _Builder(seed)
    for _ in range(size):
        builder.step()
    read = {name for node in builder.nodes for name in node.input}
    made = [value for value in builder.values[2:] if value not in read] or builder.values[-1:]
    outputs = [tensor(name) for name in dict.fromkeys([*made, builder.draw.choice(builder.values[2:] or ["x"])])]
    weights = {
        "w": np.linspace(-1, 1, COLUMNS, dtype=np.float32)[None],
        "half": np.float32(0.5).reshape(()),
        "trips": np.int64(2).reshape(()),
        "zeros": np.zeros(2, np.int64),
    }
    graph = helper.make_graph(
        builder.nodes,
        f"random_{seed}",
        [tensor("x"), tensor("y"), tensor("flag", TensorProto.BOOL, ())],
        outputs,
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def feeds(seed: int) -> dict[str, np.ndarray]:
    draw = np.random.default_rng(seed)
    made = {name: draw.standard_normal((ROWS, COLUMNS), np.float32) for name in ("x", "y")}
    return {**made, "flag": np.array(bool(seed % 2))}
