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
from jax_networks import FLAX, TORCH, Flax
from networks import CLASSES

import onward
from onward import training
from training import export

PAGE = Path(__file__).parent.parent / "docs/measured/curves.md"
BEGIN, END = "<!-- jax curves: written by benchmarks/jax_curves.py -->", "<!-- end of jax curves -->"
STEPS, BEFORE, BATCH = 50, 25, 32
SIGNAL = 0.3
OPTIMIZERS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "sgd": (lambda: optax.sgd(0.05), lambda: training.SGD(lr=0.05)),
    "momentum": (lambda: optax.sgd(0.02, 0.9), lambda: training.SGD(lr=0.02, momentum=0.9)),
    "adamw": (lambda: optax.adamw(1e-3), lambda: training.AdamW(lr=1e-3)),
}
"""In optax, and on ONNX Runtime."""


def stepped(loss: Callable[..., Any], optimizer: Any, params: Any, model_state: Any, batches: Any) -> list[float]:
    """The curve of optax."""

    @jax.jit
    def step(params: Any, state: Any, model_state: Any, *batch: Any) -> Any:
        (value, model_state), gradients = jax.value_and_grad(loss, has_aux=True)(params, model_state, *batch)
        moves, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, moves), state, model_state, value

    state, losses = optimizer.init(params), []
    for batch in batches:
        params, state, model_state, value = step(params, state, model_state, *batch)
        losses.append(float(value))
    return losses


def moved(tree: Any) -> Any:
    draws = np.random.default_rng(1)

    def one(w: Any) -> Any:
        w = np.asarray(w)
        return jnp.asarray(np.nextafter(w, w + draws.choice([-1, 1], w.shape).astype(w.dtype)))

    return jax.tree.map(one, tree)


def batches_of(network: Flax) -> list[Any]:
    """Of classes that can be told apart: by numbers that are mixed in, or by words that are theirs."""
    draws, shape = np.random.default_rng(0), network.shape
    y = draws.integers(0, CLASSES, (STEPS, BATCH)).astype(np.int32)
    if network.words is None:
        own, x = draws.random((CLASSES, *shape)), draws.random((STEPS, BATCH, *shape))
        x = (x + SIGNAL * (own[y] - x)).astype(np.float32)
    else:
        own, x = (draws.integers(0, network.words, size) for size in ((CLASSES, *shape), (STEPS, BATCH, *shape)))
        x = np.where(draws.random(x.shape) < SIGNAL, own[y], x).astype(np.int32)
    return list(zip(x, y, strict=True))


def from_jax(name: str, optimizer: str) -> list[str]:
    network, how = FLAX[name], OPTIMIZERS[optimizer][0]()
    batches = batches_of(network)
    variables = network.module.init(jax.random.key(0), batches[0][0], False)
    params, running = variables["params"], variables.get("batch_stats", {})

    def loss(params: Any, running: Any, x: Any, labels: Any) -> Any:
        held = {"params": params, "batch_stats": running}
        logits, after = network.module.apply(held, x, True, mutable=["batch_stats"])
        value = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return value, after.get("batch_stats", {})

    specs = [jax.ShapeDtypeStruct(("b", *array.shape[1:]), array.dtype) for array in batches[0]]
    made = onward.from_jax(loss, *specs, params=params, model_state=running, optimizer=how)
    trainer = training.Trainer(made)
    ours = [trainer.step({"x": x, "labels": y}) for x, y in batches]
    theirs, other = (stepped(loss, how, tree, running, batches) for tree in (params, moved(params)))
    return ["JAX to ONNX", name, optimizer, *compared(ours, theirs, other)]


def to_jax(name: str, optimizer: str, folder: Path) -> list[str]:
    torch.manual_seed(0)
    data = [{"x": x.numpy(), "labels": y.numpy()} for x, y in labelled(TORCH[name], BEFORE + STEPS)]
    path = folder / f"{name}.onnx"
    if not path.exists():
        export(TORCH[name].make(), torch.from_numpy(data[0]["x"]), path)
    trainer = training.Trainer(training.prepare(path, optimizer=OPTIMIZERS[optimizer][1]()))
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
    parser.add_argument("networks", nargs="*", metavar="network", help=", ".join(FLAX))
    args = parser.parse_args()
    heads = ["direction", "network", "optimizer", "Onward, JAX", "JAX, one bit off", "apart by 1e-4 from step"]
    rows = [[*heads, "loss: first, last"], ["---"] * (len(heads) + 1)]
    with tempfile.TemporaryDirectory() as folder:
        for name in args.networks or FLAX:
            for optimizer in OPTIMIZERS:
                for row in (from_jax(name, optimizer), to_jax(name, optimizer, Path(folder))):
                    rows.append(row)
                    print(*row, flush=True)
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    made = machine.describe("onward", "onnxruntime", "jax", "optax", "flax")
    text = "\n".join([BEGIN, *lines, "", made, END])
    print(text)
    if not args.networks:
        machine.put(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
