"""How JAX calls the graphs of a training."""

from __future__ import annotations

import onnx_ir as ir

from onward.backends.backend import backend
from onward.backends.emit.package import Source
from onward.backends.jax.convert import ASKING, RUNTIME, generate
from onward.model import Model
from onward.training.export.graphs import Graphs
from onward.training.export.whole_script import Framework
from onward.training.export.whole_step import Target

ABOUT = "Functions that JAX itself does not have."
JAX = Framework(
    title="JAX",
    tensor="Array",
    imports={
        "jax": "import jax",
        "jnp": "import jax.numpy as jnp",
        "Array": "from jax import Array",
        "load_file": "from safetensors.numpy import load_file",
        "save_file": "from safetensors.numpy import save_file",
    },
    loaded="{{name: jnp.asarray(array) for name, array in load_file({path}).items()}}",
    traced=("@jax.jit",),
    compiled="jax.jit",
    scalars=("jnp.float32({})", "jnp.int32({})"),
    key="jax.random.fold_in(jax.random.key(0), {})",
)


class JaxGraphs(Graphs):
    """As functions, which are given their constants."""

    def source(self, graph: ir.Model, name: str, draws: bool = False) -> Source:
        graph.graph.name = name
        return generate(Model(graph), draws=draws, part=name)

    def traceable(self, source: Source) -> bool:
        """Not where it asks for numbers that `jax.jit` does not know."""
        return not any(f"ops.{name}(" in source.model for name in ASKING)

    def instance(self, name: str, source: Source) -> tuple[list[str], str]:
        lines, constants = [f"from .{name} import apply as apply_{name}"], ""
        if "def load_constants(" in source.model:
            lines.append(f"from .{name} import load_constants as load_{name}_constants")
            constants = f", constants=load_{name}_constants()"
        return lines, f"{name.upper()} = partial(apply_{name}, {{}}{constants})"


def target() -> Target:
    jax = backend("jax")
    return Target(jax, JaxGraphs(jax), JAX, RUNTIME, ABOUT)
