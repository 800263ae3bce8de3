"""Names: how those of a file become Python identifiers and module paths."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from functools import lru_cache

import onnx_ir as ir

from onward.backends.emit.statements import Scope
from onward.graph.walk import all_nodes

MAX_DEPTH = 16
"""Deeper module paths are flattened: no person nests modules like that."""

_RESERVED = frozenset(keyword.kwlist) | frozenset(keyword.softkwlist) | frozenset(dir(builtins))


@lru_cache(maxsize=65536)
def identifier(name: str, fallback: str = "x") -> str:
    """A safe Python identifier that resembles `name`."""
    text = re.sub(r"[^0-9A-Za-z_]+", "_", name).strip("_")
    text = re.sub(r"__+", "_", text)[:60]
    if not text or not text.isascii():
        return fallback
    if text[0].isdigit():
        text = f"{fallback}_{text}"
    return text + "_" if text in _RESERVED else text


def singular(name: str) -> str:
    """What one member of a list is called: `layers` → `layer`, `blocks2` → `block2`."""
    if name == "h":
        return "block"
    return re.sub(r"(?<=[a-z]{2}[a-rt-z])s(\d*)$", r"\1", name)


@lru_cache(maxsize=65536)
def path_of(name: str) -> Scope:
    """`layer1.0.conv1.weight` as a module path; each part is an identifier or a number.

    Of the names that TensorFlow Lite joins with semicolons where it fuses ops, the first one counts.
    """
    parts = [p for p in re.split(r"[./]", name.lstrip(";").partition(";")[0]) if p]
    if len(parts) > MAX_DEPTH:
        parts = [*parts[:MAX_DEPTH], "_".join(parts[MAX_DEPTH:])]
    return tuple(p if _NUMBER.fullmatch(p) else attribute(p) for p in parts) or ("part",)


_NUMBER = re.compile(r"0|[1-9][0-9]{0,5}")
_PLAIN = re.compile(r"_?[A-Za-z][0-9A-Za-z_]{0,99}")

# fmt: off
MODULE_ATTRIBUTES = frozenset([
    "T_destination", "_apply", "_backward_hooks", "_backward_pre_hooks", "_buffers", "_call_impl",
    "_compiled_call_impl", "_forward_hooks", "_forward_hooks_always_called", "_forward_hooks_with_kwargs",
    "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_get_backward_hooks", "_get_backward_pre_hooks",
    "_get_name", "_is_full_backward_hook", "_load_from_state_dict", "_load_state_dict_post_hooks",
    "_load_state_dict_pre_hooks", "_maybe_warn_non_full_backward_hook", "_modules", "_named_members",
    "_non_persistent_buffers_set", "_parameters", "_register_load_state_dict_pre_hook", "_register_state_dict_hook",
    "_replicate_for_data_parallel", "_save_to_state_dict", "_slow_forward", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_version", "_wrapped_call_impl", "add_module", "apply", "bfloat16", "buffers",
    "call_super_init", "children", "compile", "cpu", "cuda", "double", "dump_patches", "eval", "extra_repr",
    "float", "forward", "get_buffer", "get_extra_state", "get_parameter", "get_submodule", "half", "ipu",
    "load_state_dict", "modules", "mtia", "named_buffers", "named_children", "named_modules", "named_parameters",
    "parameters", "register_backward_hook", "register_buffer", "register_forward_hook", "register_forward_pre_hook",
    "register_full_backward_hook", "register_full_backward_pre_hook", "register_load_state_dict_post_hook",
    "register_load_state_dict_pre_hook", "register_module", "register_parameter", "register_state_dict_post_hook",
    "register_state_dict_pre_hook", "requires_grad_", "set_extra_state", "set_submodule", "share_memory",
    "state_dict", "to", "to_empty", "train", "training", "type", "xpu", "zero_grad", "tie_weights",
])
# fmt: on
"""What every module has already: PyTorch's names, and those of methods we write."""


def attribute(name: str) -> str:
    """An attribute name that is safe: `name` itself if it can be, so that the original's state dict fits."""
    text = name if _PLAIN.fullmatch(name) else identifier(name, "part")
    return text + "_" if keyword.iskeyword(text) or text in MODULE_ATTRIBUTES else text


def class_names(graph: ir.Graph) -> dict[Scope, str]:
    """What the classes of the original modules were called, by module path, as far as the exporter wrote it down."""
    found: dict[Scope, str] = {}
    for node in all_nodes(graph):
        scopes = node.metadata_props.get("pkg.torch.onnx.name_scopes")
        classes = node.metadata_props.get("pkg.torch.onnx.class_hierarchy")
        if scopes and classes:
            for path, name in zip(strings(scopes)[:-1], strings(classes), strict=False):
                if path:
                    found[path_of(path)] = identifier(name.rpartition(".")[2], "Part")
    return found


@lru_cache(maxsize=65536)
def strings(text: str) -> tuple[str, ...]:
    """A list of strings as an exporter printed it; anything else is no list."""
    if len(text) > 10_000:
        return ()
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ()
    return tuple(s for s in found if isinstance(s, str)) if isinstance(found, list) else ()
