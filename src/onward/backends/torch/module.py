"""The classes of a generated PyTorch model."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from onward.backends.emit.classes import ClassWriter, Plan, joined, no_leaf, plain_text
from onward.backends.emit.expr import Name, lift, render
from onward.backends.emit.parameters import Pieces, Slot
from onward.backends.emit.printing.language import wrap
from onward.backends.emit.statements import Scope
from onward.backends.emit.tree import TreeNode
from onward.backends.emit.weights import Array, Tensor
from onward.backends.torch.target import DTYPES, np_

POSITIONAL = {
    "nn.Conv1d": ("in_channels", "out_channels", "kernel_size"),
    "nn.Conv2d": ("in_channels", "out_channels", "kernel_size"),
    "nn.Conv3d": ("in_channels", "out_channels", "kernel_size"),
    "nn.ConvTranspose1d": ("in_channels", "out_channels", "kernel_size"),
    "nn.ConvTranspose2d": ("in_channels", "out_channels", "kernel_size"),
    "nn.ConvTranspose3d": ("in_channels", "out_channels", "kernel_size"),
    "nn.Linear": ("in_features", "out_features"),
    "QuantizedLinear": ("in_features", "out_features"),
    "DynamicLinear": ("in_features", "out_features"),
    "DynamicConv": ("in_channels", "out_channels", "kernel_size"),
    "Int8Linear": ("in_features", "out_features"),
    "Int8Conv": ("in_channels", "out_channels", "kernel_size"),
    "nn.Embedding": ("num_embeddings", "embedding_dim"),
    "nn.BatchNorm1d": ("num_features",),
    "nn.BatchNorm2d": ("num_features",),
    "nn.BatchNorm3d": ("num_features",),
    "nn.LayerNorm": ("normalized_shape",),
    "nn.GroupNorm": ("num_groups", "num_channels"),
    "nn.LSTM": ("input_size", "hidden_size"),
    "nn.GRU": ("input_size", "hidden_size"),
    "nn.RNN": ("input_size", "hidden_size"),
}
"""What PyTorch calls the positional arguments of its constructors; shared classes name their own after these."""

_CONVOLUTION = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1}
_CONVOLUTIONS = [name for name in POSITIONAL if name.startswith("nn.Conv") and "Transpose" not in name]
OPTIONAL = dict.fromkeys([*_CONVOLUTIONS, "DynamicConv", "Int8Conv"], _CONVOLUTION)
"""What its constructors take by name, and what that is where it is not given."""

RESERVED = frozenset({
    "self", "torch", "nn", "F", "np", "math", "Tensor", "Any", "Path", "load", "fill", "load_file",
    "OrderedDict", "TorchFunctionMode", "Uninitialized",
})  # fmt: skip

SHORTEST_RUN = 3
"""Two equal members of a list are written out; more are a comprehension."""


@dataclass
class ModuleWriter(ClassWriter):
    """Writes `nn.Module`s."""

    ties: dict[Scope, Scope] = field(default_factory=dict)
    constants: list[str] = field(default_factory=list)
    """What the state dict of the original module does not have."""
    freeze: bool | list[str] = False
    """Which parameters a training step leaves alone: all, none, or those of these names."""
    reserved: frozenset[str] = RESERVED
    positional: dict[str, tuple[str, ...]] = field(default_factory=lambda: POSITIONAL)
    optional: dict[str, dict[str, int]] = field(default_factory=lambda: OPTIONAL)
    call = "forward"
    optional_child = "self.{0} = nn.Identity() if {0} is None else {0}"
    child_type = "nn.Module"
    no_device = 'torch.device("cpu")'

    def is_class(self, node: TreeNode) -> bool:
        return super().is_class(node) and not node.is_parameter_list

    def base(self, node: TreeNode) -> str:
        return "nn.Sequential" if node.sequential else "nn.Module"

    def plan(self, node: TreeNode, leave_out: str = "") -> Plan:
        if not node.sequential:
            return super().plan(node, leave_out)
        plan = Plan(node)
        plan.add("", ["super().__init__(", *joined([self._construct(child) for child in node.children.values()]), ")"])
        return plan

    def declare(self, attribute: str, tensor: Tensor) -> Pieces:
        """`self.scale = nn.Parameter(torch.empty(64))`, with the sizes as slots."""
        if tensor.parameter and attribute.isdigit():
            return [f'self.register_parameter("{attribute}", ', *_parameter(tensor), ")"]
        if tensor.parameter:
            return [f"self.{attribute} = ", *_parameter(tensor)]
        fill = "torch.ones" if attribute.rstrip("0123456789").endswith("scale") else "torch.zeros"
        return [f'self.register_buffer("{attribute}", ', *_filled(fill, tensor), ")"]

    def declare_strings(self, attribute: str, array: Array) -> Pieces:
        return [f"self.{attribute} = {render(np_.array(array.tolist(), dtype=Name('object')), no_leaf)}"]

    def child(self, attribute: str, child: TreeNode) -> Pieces:
        if attribute.isdigit():
            return [f'self.add_module("{attribute}", ', *self._construct(child), ")"]
        return [f"self.{attribute} = ", *self._construct(child)]

    def annotation(self, kind: str) -> str:
        return {"tensor": "Tensor", "host": "int"}.get(kind, "Any")

    def access(self, node: TreeNode, path: Scope) -> str:
        text, here = "self", node
        for part in path[len(node.path) :]:
            child = here.children.get(part)
            if part.isdigit() and here.is_parameter_list:
                text += f"[{part}]"
            elif part.isdigit() and not here.is_container:
                kind = "submodule" if child is not None else "parameter" if here.tensors[part].parameter else "buffer"
                text += f'.get_{kind}("{part}")'
            elif part.isdigit():
                text += f"[{part}]" if here.is_numbered else f'["{part}"]'
            else:
                text += f".{part}"
            if child is None:
                break
            here = child
        return text

    def root_extras(self) -> list[str]:
        """What only the whole model does: freeze parameters, share weights."""
        lines: list[str] = []
        if self.freeze is True:
            lines.append("    self.requires_grad_(False)")
        elif self.freeze:
            names = render(lift(tuple(self.freeze)), no_leaf)
            lines += ["    " + line for line in wrap(f"for name in {names}:")]
            lines.append("        self.get_parameter(name).requires_grad = False")
        if self.ties:
            shared = [f"    {self.access(self.root, a)} = {self.access(self.root, b)}" for a, b in self.ties.items()]
            lines += ["    self.tie_weights()", "", "def tie_weights(self) -> None:"]
            lines += ['    """Weights that stand in several places are one tensor."""', *shared]
        if self.constants:
            names = render(lift(tuple(self.constants)), no_leaf)
            lines += ["", "def load_state_dict(self, state_dict: Any, *args: Any, **options: Any) -> Any:"]
            lines += ['    """As of any module, but constants that a state dict does not have stay as they are."""']
            lines += ["    own = self.state_dict()"]
            lines += ["    " + line for line in wrap(f"constants = {{name: own[name] for name in {names}}}")]
            lines += ["    return super().load_state_dict({**constants, **state_dict}, *args, **options)"]
        return lines

    def _construct(self, node: TreeNode) -> Pieces:
        """The expression that makes a child."""
        if node.leaf is not None:
            return self.slotted(node.leaf.constructor)
        if node.is_parameter_list:
            return ["nn.ParameterList([", *joined([_parameter(tensor) for tensor in node.tensors.values()]), "])"]
        if not self.is_class(node):
            return self._container(node)
        made = self.slotted(self._constructors[node.path])
        if part := self._parts.get(node.path):
            comma = ", " if len(made) > 2 else ""
            return [*made[:-1], f"{comma}{part}=", *self._construct(node.children[part]), ")"]
        return made

    def _container(self, node: TreeNode) -> Pieces:
        if node.is_wrapper:
            named = [[f"{name}=", *self._construct(child)] for name, child in node.children.items()]
            return ["nn.Sequential(OrderedDict(", *joined(named), "))"]
        kind = "nn.Sequential" if node.sequential else "nn.ModuleList"
        if not node.is_numbered:
            members = sorted(node.children.items(), key=lambda member: int(member[0]))
            items = [[f'"{name}": ', *self._construct(child)] for name, child in members]
            return ["nn.ModuleDict({", *joined(items), "})"]
        items = [self._construct(node.children[str(i)]) for i in range(len(node.children))]
        runs = [list(run) for _, run in itertools.groupby(items, key=plain_text)]
        if len(runs) == 1 and len(items) > 1 and not node.sequential:
            return [kind, "(", *_repeated(runs[0]), ")"]
        parts = [part for run in runs for part in ([["*(", *_repeated(run), ")"]] if len(run) >= SHORTEST_RUN else run)]
        open_, close = ("(", ")") if node.sequential else ("([", "])")
        return [kind, open_, *joined(parts), close]


def _repeated(run: list[Pieces]) -> Pieces:
    return [*run[0], f" for _ in range({len(run)})"]


def _parameter(tensor: Tensor) -> Pieces:
    """A parameter that a new model starts with: matrices with small random numbers, scales with ones."""
    if tensor.start == "random":
        return ["nn.Parameter(nn.init.trunc_normal_(", *_filled("torch.empty", tensor), ", std=0.02))"]
    return ["nn.Parameter(", *_filled(f"torch.{tensor.start}", tensor), ")"]


def _filled(function: str, tensor: Tensor) -> Pieces:
    dims: list[Pieces] = [[Slot("size", n)] for n in tensor.shape] or [["()"]]
    dtype = DTYPES[tensor.dtype]
    return [f"{function}(", *joined(dims), ")" if dtype == "float32" else f", dtype=torch.{dtype})"]
