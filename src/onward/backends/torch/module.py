"""Prints the module tree as Python classes."""

from __future__ import annotations

from dataclasses import dataclass, field

from onward.backends.emit.expr import Device, Expr, Helper, Ref, Weight, render, variables, walk
from onward.backends.emit.names import identifier
from onward.backends.emit.printer import FunctionPrinter, drop_unread, wrap
from onward.backends.emit.statements import Scope, expressions
from onward.backends.emit.tree import Function, TreeNode
from onward.backends.emit.weights import Tensor
from onward.backends.torch.target import DTYPES


@dataclass
class ModuleWriter:
    """Collects the classes of a model, the helpers they call, and the names they import."""

    root: TreeNode
    classes: dict[str, list[str]] = field(default_factory=dict)
    helpers: set[str] = field(default_factory=set)
    _by_text: dict[tuple[str, ...], str] = field(default_factory=dict)

    def write(self, node: TreeNode, name: str, docstring: str = "") -> str:
        """Emit the class of `node` after those of its children; returns its name. Equal classes are one."""
        body = self._init(node)
        if node.forward is not None:
            body += ["", *self._forward(node, node.forward, root=node is self.root)]
        key = tuple(body)
        if key in self._by_text:
            return self._by_text[key]
        unique, n = name, 1
        while unique in self.classes:
            n += 1
            unique = f"{name}{n}"
        self._by_text[key] = unique
        doc = [f'    """{docstring}"""', ""] if docstring else []
        self.classes[unique] = [f"class {unique}(nn.Module):", *doc, *("    " + line if line else "" for line in body)]
        return unique

    def _init(self, node: TreeNode) -> list[str]:
        lines: list[str] = ["super().__init__()"]
        for attribute, tensor in node.tensors.items():
            lines += wrap(_declare(attribute, tensor))
        for attribute, array in node.arrays.items():
            text = render(Expr.__call__(_NP_ARRAY, array.tolist(), dtype=_OBJECT), _no_leaf)
            lines += wrap(f"self.{attribute} = {text}")
        for attribute, child in node.children.items():
            lines += wrap(f"self.{attribute} = {self._construct(child)}")
        return ["def __init__(self) -> None:", *("    " + line for line in lines)]

    def _construct(self, node: TreeNode) -> str:
        if node.leaf is not None:
            return render(node.leaf.constructor, _no_leaf)
        if node.is_list:
            items = [self._construct(node.children[str(i)]) for i in range(len(node.children))]
            if len(items) > 1 and len(set(items)) == 1:
                return f"nn.ModuleList({items[0]} for _ in range({len(items)}))"
            return f"nn.ModuleList([{', '.join(items)}])"
        if node.children and all(name.isdigit() for name in node.children) and not node.forward and not node.tensors:
            items = [f'"{name}": {self._construct(child)}' for name, child in node.children.items()]
            return f"nn.ModuleDict({{{', '.join(items)}}})"
        return self.write(node, node.class_hint or class_name(node.path)) + "()"

    def _forward(self, node: TreeNode, function: Function, root: bool) -> list[str]:
        drop_unread(function.block, function.results)
        device: list[str] = []

        def outer(leaf: Expr) -> str:
            match leaf:
                case Weight():
                    return self.access(node, leaf._path)
                case Helper():
                    self.helpers.add(leaf._name)
                    return leaf._name
                case Device():
                    return device[0] if device else 'torch.device("cpu")'
            raise TypeError(type(leaf).__name__)

        printer = FunctionPrinter(outer, taken={"self", "torch", "nn", "F", "np", "math", "Tensor", *self._called(function)})
        arguments = []
        for var in function.arguments:
            name = printer.argument(var, pinned=root)
            if var.kind == "tensor" and not device:
                device.append(f"{name}.device")
            arguments.append(f"{name}: {_annotation(var.kind)}")
        lines = printer.function(function.block, function.results)
        results = ", ".join(printer.text(r) for r in function.results)
        returns = "Tensor" if len(function.results) == 1 and _is_tensor(function.results[0]) else "Any"
        header = wrap(f"def forward({', '.join(['self', *arguments])}) -> {returns}:")
        return [*header, *("    " + line for line in [*lines, *wrap(f"return {results}")])]

    def _called(self, function: Function) -> set[str]:
        """Names of helpers used in the function, so that no variable hides one."""
        found = set()
        for statement in function.block.body:
            for expr in expressions(statement):
                found |= {e._name for e in walk(expr) if isinstance(e, Helper)}
        return found

    def access(self, node: TreeNode, path: Scope) -> str:
        """How code in the class of `node` gets at what stands at `path` below it."""
        text, here = "self", node
        for part in path[len(node.path) :]:
            child = here.children.get(part)
            if here.is_list and part.isdigit():
                text += f"[{part}]"
            elif part.isdigit() and child is not None:
                text += f'["{part}"]'
            else:
                text += f".{part}"
            if child is None:
                break
            here = child
        return text


def _is_tensor(expr: Expr) -> bool:
    return not isinstance(expr, Ref) or expr._var.kind == "tensor"


def _annotation(kind: str) -> str:
    return {"tensor": "Tensor", "host": "int"}.get(kind, "Any")


def _declare(attribute: str, tensor: Tensor) -> str:
    shape = ", ".join(map(str, tensor.shape)) or "()"
    dtype = DTYPES[tensor.dtype]
    empty = f"torch.empty({shape})" if dtype == "float32" else f"torch.empty({shape}, dtype=torch.{dtype})"
    if attribute.isdigit():
        raise ValueError(f"a tensor cannot be called {attribute}")
    if tensor.parameter:
        return f"self.{attribute} = nn.Parameter({empty})"
    persistent = "" if tensor.persistent else ", persistent=False"
    return f'self.register_buffer("{attribute}", {empty}{persistent})'


def class_name(path: Scope) -> str:
    """`('layer1', '0')` → Layer1Block."""
    words = [p for p in path if not p.isdigit()]
    base = "".join(w[:1].upper() + w[1:] for w in identifier(words[-1] if words else "block").split("_") if w) or "Part"
    return base + "Block" if path and path[-1].isdigit() else base


def _no_leaf(leaf: Expr) -> tuple[str, int]:
    raise TypeError(f"{type(leaf).__name__} in a constructor")


from onward.backends.emit.expr import Name  # noqa: E402

_NP_ARRAY, _OBJECT = Name("np.array"), Name("object")
_ = variables
