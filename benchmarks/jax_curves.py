"""Loss curves of ONNX Runtime beside those of JAX with optax, in both directions, over 50 steps.

    python benchmarks/jax_curves.py                 all networks; writes to docs/measured/curves.md
    python benchmarks/jax_curves.py mlp lstm        some of them; only shown

From JAX: a loss of a Flax module and an optimizer of optax become a trainable model by `onward.from_jax`, which makes
the same steps on ONNX Runtime. To JAX: an ONNX file makes 25 steps on ONNX Runtime, then `to_jax_package` writes the
training as JAX source, and both go on for 50 steps. Beside each, JAX from weights that are off by one in the last bit.
"""

import argparse
import importlib
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import machine
import numpy as np
import optax
import torch
from curves import labelled
from flax import linen as nn
from networks import NETWORKS as TORCH_NETWORKS

import onward
from onward import training
from training import OPTIMIZERS as RECIPES
from training import export

PAGE = Path(__file__).parent.parent / "docs/measured/curves.md"
BEGIN, END = "<!-- jax curves: written by benchmarks/jax_curves.py -->", "<!-- end of jax curves -->"
STEPS, BEFORE, BATCH, CLASSES = 50, 25, 32, 10
SIGNAL = 0.3
OPTIMIZERS: dict[str, Callable[[], Any]] = {"sgd": lambda: optax.sgd(0.05), "adamw": lambda: optax.adamw(1e-3)}


class Mlp(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(CLASSES)(nn.relu(nn.Dense(256)(nn.relu(nn.Dense(256)(x)))))


class Cnn(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        for width in (16, 32):
            x = nn.max_pool(nn.relu(nn.Conv(width, (3, 3))(x)), (2, 2), (2, 2))
        return nn.Dense(CLASSES)(x.reshape(x.shape[0], -1))


class Lstm(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        return nn.Dense(CLASSES)(nn.RNN(nn.OptimizedLSTMCell(64))(x)[:, -1])


class Transformer(nn.Module):
    @nn.compact
    def __call__(self, x: Any) -> Any:
        h = nn.Dense(64)(x)
        for _ in range(2):
            h = nn.LayerNorm()(h + nn.MultiHeadDotProductAttention(4)(h))
            h = nn.LayerNorm()(h + nn.Dense(64)(nn.gelu(nn.Dense(256)(h))))
        return nn.Dense(CLASSES)(h.mean(1))


FLAX: dict[str, tuple[Any, tuple[int, ...]]] = {
    "mlp": (Mlp(), (784,)),
    "cnn": (Cnn(), (28, 28, 1)),
    "lstm": (Lstm(), (28, 28)),
    "transformer": (Transformer(), (16, 28)),
}


def stepped(loss: Callable[..., Any], optimizer: Any, params: Any, batches: Any) -> list[float]:
    """The curve of optax."""

    @jax.jit
    def step(params: Any, state: Any, *batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        moves, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, moves), state, value

    state, losses = optimizer.init(params), []
    for batch in batches:
        params, state, value = step(params, state, *batch)
        losses.append(float(value))
    return losses


def moved(tree: Any) -> Any:
    draws = np.random.default_rng(1)

    def one(w: Any) -> Any:
        w = np.asarray(w)
        return jnp.asarray(np.nextafter(w, w + draws.choice([-1, 1], w.shape).astype(w.dtype)))

    return jax.tree.map(one, tree)


def from_jax(name: str, optimizer: str) -> list[str]:
    module, shape = FLAX[name]
    draws = np.random.default_rng(0)
    y = draws.integers(0, CLASSES, (STEPS, BATCH)).astype(np.int32)
    own, x = draws.random((CLASSES, *shape)), draws.random((STEPS, BATCH, *shape))
    x = (x + SIGNAL * (own[y] - x)).astype(np.float32)
    params = module.init(jax.random.key(0), x[0])

    def loss(params: Any, x: Any, labels: Any) -> Any:
        return optax.softmax_cross_entropy_with_integer_labels(module.apply(params, x), labels).mean()

    how = OPTIMIZERS[optimizer]()
    specs = jax.ShapeDtypeStruct(("b", *shape), jnp.float32), jax.ShapeDtypeStruct(("b",), jnp.int32)
    trainer = training.Trainer(onward.from_jax(loss, *specs, params=params, optimizer=how))
    ours = [trainer.step({"x": a, "labels": b}) for a, b in zip(x, y, strict=True)]
    batches = list(zip(x, y, strict=True))
    theirs, other = (stepped(loss, how, tree, batches) for tree in (params, moved(params)))
    return ["JAX to ONNX", name, optimizer, *compared(ours, theirs, other)]


def to_jax(name: str, optimizer: str, folder: Path) -> list[str]:
    torch.manual_seed(0)
    data = [{"x": x.numpy(), "labels": y.numpy()} for x, y in labelled(name, BEFORE + STEPS)]
    path = folder / f"{name}.onnx"
    if not path.exists():
        export(TORCH_NETWORKS[name].make(), torch.from_numpy(data[0]["x"]), path)
    trainer = training.Trainer(training.prepare(path, optimizer=RECIPES[optimizer][0]()))
    for batch in data[:BEFORE]:
        trainer.step(batch)
    package = training.to_jax_package(trainer, folder / f"{name}_{optimizer}")
    sys.path.insert(0, str(folder))
    module: Any = importlib.import_module(f"{package.name}.train")
    rest = data[BEFORE:]
    ours = [trainer.step(batch) for batch in rest]

    def curve(params: Any) -> list[float]:
        more = [module.load_constants()] if trainer.buffers else []
        state = module.load_optimizer(params, module.load_progress()[0])
        losses: list[float] = module.train(params, state, *more, rest)[-1]
        return losses

    return ["ONNX to JAX", name, optimizer, *compared(ours, curve(module.load()), curve(moved(module.load())))]


def compared(ours: list[float], theirs: list[float], other: list[float]) -> list[str]:
    pairs = zip(ours, theirs, strict=True)
    beyond = next((i for i, (a, b) in enumerate(pairs, 1) if abs(a - b) / abs(b) > 1e-4), None)
    return [f"{apart(ours, theirs):.0e}", f"{apart(other, theirs):.0e}", str(beyond or "never"), ends(theirs)]


def apart(a: list[float], b: list[float]) -> float:
    return max(abs(x - y) / abs(y) for x, y in zip(a, b, strict=True))


def ends(losses: list[float]) -> str:
    return f"{losses[0]:.2f}, {losses[-1]:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", help=", ".join({**FLAX, **TORCH_NETWORKS}))
    args = parser.parse_args()
    heads = ["direction", "network", "optimizer", "Onward, JAX", "JAX, one bit off", "apart by 1e-4 from step"]
    rows = [[*heads, "loss: first, last"], ["---"] * (len(heads) + 1)]
    with tempfile.TemporaryDirectory() as folder:
        for optimizer in OPTIMIZERS:
            for name in FLAX:
                if not args.networks or name in args.networks:
                    rows.append(from_jax(name, optimizer))
                    print(*rows[-1], flush=True)
            for name in TORCH_NETWORKS:
                if not args.networks or name in args.networks:
                    rows.append(to_jax(name, optimizer, Path(folder)))
                    print(*rows[-1], flush=True)
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    made = machine.describe("onward", "onnxruntime", "jax", "optax", "flax")
    text = "\n".join([BEGIN, *lines, "", made, END])
    print(text)
    if not args.networks:
        machine.put(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
