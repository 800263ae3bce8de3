"""Transformations of gradients that optax lacks, as source for `train.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from onward.training.info.preview_ops import OnnxAdagrad, OnnxAdam, OnnxMomentum
from onward.training.recipe.optimizers import SGD, Adagrad


@dataclass(frozen=True)
class Own:
    """A transformation: of the gradient `g` of a weight and its state it makes a move and the next state."""

    name: str
    doc: str
    options: Mapping[str, str]
    """Of ours, which are arguments by the same names, with their types."""
    fields: tuple[str, ...]
    """Of the state, beside `count`."""
    body: str
    """Lines that make `move` and the fields anew; `count` is the number of the step, 1 at first."""

    @property
    def source(self) -> str:
        state = "".join(part.capitalize() for part in self.name.removeprefix("scale_by_").split("_")) + "State"
        arguments = ", ".join(f"{name}: {kind}" for name, kind in self.options.items())
        fields, body = ", ".join(self.fields), self.body.strip("\n").splitlines()
        return "\n".join(
            [
                f"class {state}(NamedTuple):",
                "    count: Array",
                *(f"    {field}: Any" for field in self.fields),
                "",
                "",
                f"def {self.name}({arguments}) -> optax.GradientTransformation:",
                f'    """{self.doc}"""',
                "",
                f"    def init(params: Any) -> {state}:",
                f"        zeros = [jax.tree.map(jnp.zeros_like, params) for _ in range({len(self.fields)})]",
                f"        return {state}(jnp.zeros([], jnp.int32), *zeros)",
                "",
                f"    def update(gradients: Any, state: {state}, params: Any = None) -> Any:",
                "        count = state.count + 1",
                "",
                f"        def of_one(g: Array, {', '.join(f'{field}: Array' for field in self.fields)}) -> Any:",
                *(f"            {line}" for line in body),
                f"            return move, {fields}",
                "",
                "        found = jax.tree.map(of_one, gradients, *state[1:])",
                f"        kinds = jax.tree.structure(tuple(range({1 + len(self.fields)})))",
                "        moves, *fields = jax.tree.transpose(jax.tree.structure(gradients), kinds, found)",
                f"        return moves, {state}(count, *fields)",
                "",
                "    return optax.GradientTransformation(init, update)",
            ]
        )


MOMENTS = """
mu = alpha * mu + (1 - alpha) * g
nu = beta * nu + (1 - beta) * g * g
"""
OWN: Mapping[type[Any], Own] = {
    SGD: Own(
        "scale_by_dampened_momentum",
        "Momentum to which each gradient but the first is added in part.",
        {"momentum": "float", "dampening": "float"},
        ("trace",),
        "move = trace = momentum * trace + jnp.where(count == 1, 1, 1 - dampening) * g",
    ),
    Adagrad: Own(
        "scale_by_adagrad",
        "Adagrad with epsilon beside the root, not in it.",
        {"lr_decay": "float", "eps": "float"},
        ("total",),
        "total = total + g * g\nmove = g / (1 + (count - 1) * lr_decay) / (jnp.sqrt(total) + eps)",
    ),
    OnnxAdam: Own(
        "scale_by_onnx_adam",
        "Adam as ai.onnx.preview.training defines it: epsilon is added before the correction.",
        {"first": "int", "alpha": "float", "beta": "float", "epsilon": "float"},
        ("mu", "nu"),
        MOMENTS
        + """
now = count + first - 1
rate = jnp.where(now > 0, jnp.sqrt(1 - beta ** jnp.maximum(now, 1)) / (1 - alpha ** jnp.maximum(now, 1)), 1)
move = rate * mu / (jnp.sqrt(nu) + epsilon)
""",
    ),
    OnnxAdagrad: Own(
        "scale_by_onnx_adagrad",
        "Adagrad as ai.onnx.preview.training defines it.",
        {"first": "int", "decay_factor": "float", "epsilon": "float"},
        ("total",),
        """
total = total + g * g
move = g / (1 + (count + first - 1) * decay_factor) / (jnp.sqrt(total) + epsilon)
""",
    ),
    OnnxMomentum: Own(
        "scale_by_onnx_momentum",
        "Momentum as ai.onnx.preview.training defines it.",
        {"first": "int", "alpha": "float", "beta": "float", "mode": "str"},
        ("trace",),
        """
trace = alpha * trace + jnp.where(count + first - 1 > 0, beta, 1) * g
move = g + alpha * trace if mode == "nesterov" else trace
""",
    ),
}
"""By optimizer; of SGD, what is dampened."""
OF_FILE = '''
class OfFileState(NamedTuple):
    count: Array
    FIELDS


def by_file() -> optax.GradientTransformation:
    """The optimizer of the file: optimizer.py has what it does to a weight."""

    def init(params: Any) -> OfFileState:
        first = [jax.tree.map(lambda w, n=number: jnp.full_like(w, n), params) for number in STARTS]
        return OfFileState(jnp.zeros([], jnp.int32), *first)

    def update(gradients: Any, state: OfFileState, params: Any = None) -> Any:
        count, slopes, held = state.count + 1, flat(gradients), [flat(tree) for tree in state[1:]]
        moves, slots = {}, [{} for _ in held]
        for name, w in flat(params).items():
            factor, decay = RULE
            now = jnp.float32(RATE * factor), jnp.float32(decay), count
            found = OPTIMIZER(w, slopes[name], *now, *(slot[name] for slot in held))
            after, *states = found if isinstance(found, tuple) else (found,)
            moves[name] = after - w
            for slot, tensor in zip(slots, states, strict=True):
                slot[name] = tensor
        return nested(moves), OfFileState(count, *map(nested, slots))

    return optax.GradientTransformation(init, update)
'''
"""A graph as an optimizer."""
CLIP = '''
def clip_by_norm(limit: float) -> optax.GradientTransformation:
    """Keeps the norm of all gradients together below a limit."""

    def clip(gradients: Any, params: Any) -> Any:
        factor = jnp.minimum(limit / (optax.tree.norm(gradients) + 1e-6), 1)
        return jax.tree.map(lambda g: g * factor, gradients)

    return optax.stateless(clip)
'''
