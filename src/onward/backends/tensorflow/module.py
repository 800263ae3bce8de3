"""The classes of a generated TensorFlow model."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from onward.backends.emit.classes import ClassWriter, joined, no_leaf, plain_text
from onward.backends.emit.expr import lift, render
from onward.backends.emit.parameters import Pieces
from onward.backends.emit.statements import Scope
from onward.backends.emit.tree import TreeNode
from onward.backends.emit.weights import Array, Tensor

RESERVED = frozenset({"self", "tf", "np", "math", "Any", "Path", "load", "Weights"})
SHORTEST_RUN = 3
"""Two equal members of a list are written out; more are a comprehension."""
PLACE = "\0"
"""Stands for the number of a list's member, once for each list around it."""
COUNTERS = "ijk"
"""What counts the members of a list, of a list inside it, and so on."""

# fmt: off
OWN = frozenset([
    "_TF_MODULE_IGNORED_PROPERTIES", "_add_trackable_child", "_add_variable_with_custom_getter", "_checkpoint_adapter",
    "_checkpoint_dependencies", "_copy_trackable_to_cpu", "_deferred_dependencies", "_delete_tracking",
    "_deserialization_dependencies", "_deserialize_from_proto", "_export_to_saved_model_graph", "_flatten",
    "_gather_saveables_for_checkpoint", "_handle_deferred_dependencies", "_lookup_dependency",
    "_maybe_initialize_trackable", "_name", "_name_based_attribute_restore", "_name_based_restores", "_name_scope",
    "_no_dependency", "_object_identifier", "_preload_simple_restoration", "_restore_from_tensors",
    "_self_name_based_restores", "_self_saveable_object_factories", "_self_setattr_tracking",
    "_self_unconditional_checkpoint_dependencies", "_self_unconditional_deferred_dependencies",
    "_self_unconditional_dependency_names", "_self_update_uid", "_serialize_to_proto", "_serialize_to_tensors",
    "_setattr_tracking", "_tf_api_names", "_tf_api_names_v1", "_track_trackable", "_trackable_children",
    "_unconditional_checkpoint_dependencies", "_unconditional_dependency_names", "_update_uid", "name", "name_scope",
    "non_trainable_variables", "submodules", "trainable_variables", "variables", "with_name_scope",
])
# fmt: on
"""What every `tf.Module` has already."""


@dataclass
class ModuleWriter(ClassWriter):
    """Writes `tf.Module`s."""

    freeze: bool | list[str] = False
    """Which variables a training step leaves alone: all, none, or those of these names."""
    reserved: frozenset[str] = RESERVED
    init_arguments: tuple[str, ...] = ("weights: Weights",)
    window = slice(None, -2)

    def base(self, node: TreeNode) -> str:
        return "tf.Module"

    def declare(self, attribute: str, tensor: Tensor) -> Pieces:
        if tensor.running or tensor.is_held:
            return [f'self.{_attribute(attribute)} = weights.variable("{attribute}", trainable=False)']
        if not tensor.parameter:
            return [f'self.{_attribute(attribute)} = weights.constant("{attribute}")']
        frozen = self.freeze if isinstance(self.freeze, bool) else ".".join(tensor.path) in self.freeze
        fixed = ", trainable=False" if frozen else ""
        return [f'self.{_attribute(attribute)} = weights.variable("{attribute}"{fixed})']

    def declare_strings(self, attribute: str, array: Array) -> Pieces:
        return [f"self.{attribute} = tf.constant({render(lift(array.tolist()), no_leaf)})"]

    def child(self, attribute: str, child: TreeNode) -> Pieces:
        return [f"self.{_attribute(attribute)} = ", *self._construct(child, attribute)]

    def annotation(self, kind: str) -> str:
        return {"tensor": "tf.Tensor", "flag": "bool"}.get(kind, "Any")

    def argument(self, name: str, kind: str, is_root: bool) -> str:
        return super().argument(name, kind, is_root) + (" = False" if kind == "flag" and is_root else "")

    def access(self, node: TreeNode, path: Scope) -> str:
        text, here = "self", node
        for part in path[len(node.path) :]:
            child = here.children.get(part)
            if part.isdigit() and here.is_container:
                text += f"[{part}]" if here.is_numbered else f'["{part}"]'
            else:
                text += f".{_attribute(part)}"
            if child is None:
                break
            here = child
        return text

    def _construct(self, node: TreeNode, place: str, depth: int = 0) -> Pieces:
        """The expression that makes a child, whose weights are at `place`; `depth` counts the lists around it."""
        if self.is_class(node):
            return self.slotted(self._constructors[node.path], f'weights.at("{place}")')
        if not node.is_numbered:
            members = [[f'"{n}": ', *self._construct(c, f"{place}.{n}", depth)] for n, c in node.children.items()]
            return ["{", *joined(members), "}"]
        number = PLACE * (depth + 1)
        each = [
            self._construct(node.children[str(i)], f"{place}.<{number}>", depth + 1) for i in range(len(node.children))
        ]
        parts: list[Pieces] = []
        for _, group in itertools.groupby(enumerate(each), key=lambda item: plain_text(item[1])):
            run = list(group)
            first, last = run[0][0], run[-1][0] + 1
            if len(run) < SHORTEST_RUN or depth >= len(COUNTERS):
                parts += [_numbered(item, number, str(i)) for i, item in run]
                continue
            bounds = str(last) if first == 0 else f"{first}, {last}"
            counter = COUNTERS[depth]
            made = [*_numbered(run[0][1], number, f"{{{counter}}}"), f" for {counter} in range({bounds})"]
            parts.append(made if len(run) == len(each) else ["*(", *made, ")"])
        return ["[", *joined(parts), "]"]


def _attribute(part: str) -> str:
    """The attribute of a part of a path: the same, unless it is a number or one of `tf.Module`; each has its own."""
    if part.isdigit():
        return f"p{part}"
    return f"{part}_" if part.rstrip("_") in OWN or re.fullmatch(r"p\d+_*", part) else part


def _numbered(pieces: Pieces, place: str, number: str) -> Pieces:
    """With the number of a member in its place."""
    text = [p.replace(f"<{place}>", number) if isinstance(p, str) else p for p in pieces]
    if not number.isdigit():
        text = [p.replace('at("', 'at(f"') if isinstance(p, str) else p for p in text]
    return text
