"""Loss curves of ONNX Runtime beside those of JAX with optax, in both directions, over 50 steps.

    python benchmarks/jax_curves.py                 all networks; writes to docs/measured/curves.md
    python benchmarks/jax_curves.py mlp lstm        some of them; only shown
    python benchmarks/jax_curves.py --kept FILE     rows are kept there: a run that was stopped goes on

From JAX: a loss of a Flax module and an optimizer of optax become a trainable model by `onward.from_jax`, which makes
the same steps on ONNX Runtime. To JAX: an ONNX file makes 25 steps on ONNX Runtime, then `to_jax_package` writes the
training as JAX source, and both go on for 50 steps. Beside each, how far JAX is from itself: from weights that are off
by one in the last bit, in several draws, and in float64.
"""

import argparse
import importlib
import itertools
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
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
from kept import table
from networks import CLASSES

import onward
from onward import training
from training import export

PAGE = Path(__file__).parent.parent / "docs/measured/curves.md"
BEGIN, END = "<!-- jax curves: written by benchmarks/jax_curves.py -->", "<!-- end of jax curves -->"
STEPS, BEFORE, BATCH = 50, 25, 32
DRAWS = 5
"""Of weights that are off by one in the last bit."""
NEAR = 1e-4
"""What curves have to be within."""
Curve = Sequence[float]
SIGNAL = 0.3
OPTIMIZERS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "sgd": (lambda: optax.sgd(0.05), lambda: training.SGD(lr=0.05)),
    "momentum": (lambda: optax.sgd(0.02, 0.9), lambda: training.SGD(lr=0.02, momentum=0.9)),
    "adamw": (lambda: optax.adamw(1e-3), lambda: training.AdamW(lr=1e-3)),
}
"""In optax, and on ONNX Runtime."""


def trained(loss: Callable[..., Any], optimizer: Any) -> Callable[[Any, Any, Any], Curve]:
    """What gives the curve of optax from params, the state of the model and batches; it is compiled once."""

    @jax.jit
    def step(params: Any, state: Any, model_state: Any, *batch: Any) -> Any:
        (value, model_state), gradients = jax.value_and_grad(loss, has_aux=True)(params, model_state, *batch)
        moves, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, moves), state, model_state, value

    def curve(params: Any, model_state: Any, batches: Any) -> Curve:
        state, losses = optimizer.init(params), []
        for batch in batches:
            params, state, model_state, value = step(params, state, model_state, *batch)
            losses.append(float(value))
        return losses

    return curve


def moved(tree: Any, seed: int) -> Any:
    draws = np.random.default_rng(seed)

    def one(w: Any) -> Any:
        w = np.asarray(w)
        return jnp.asarray(np.nextafter(w, w + draws.choice([-1, 1], w.shape).astype(w.dtype)))

    return jax.tree.map(one, tree)


def doubled(tree: Any) -> Any:
    """Floats in float64; to be called with x64 on."""
    return jax.tree.map(lambda a: jnp.asarray(a, jnp.float64) if jnp.issubdtype(a.dtype, jnp.floating) else a, tree)


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


def losses_of(network: Flax) -> Callable[..., Any]:
    """The loss of a Flax module, and its running statistics after it."""

    def loss(params: Any, running: Any, x: Any, labels: Any) -> Any:
        held = {"params": params, "batch_stats": running}
        logits, after = network.module.apply(held, x, True, mutable=["batch_stats"])
        value = optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()
        return value, after.get("batch_stats", {})

    return loss


def from_jax(name: str, optimizer: str) -> list[str]:
    network, how = FLAX[name], OPTIMIZERS[optimizer][0]()
    batches, loss = batches_of(network), losses_of(network)
    variables = network.module.init(jax.random.key(0), batches[0][0], False)
    params, running = variables["params"], variables.get("batch_stats", {})
    specs = [jax.ShapeDtypeStruct(("b", *array.shape[1:]), array.dtype) for array in batches[0]]
    made = onward.from_jax(loss, *specs, params=params, model_state=running, optimizer=how)
    trainer = training.Trainer(made)
    ours = [trainer.step({"x": x, "labels": y}) for x, y in batches]
    curve = trained(loss, how)
    theirs = curve(params, running, batches)
    others = [curve(moved(params, seed), running, batches) for seed in range(DRAWS)]
    with jax.enable_x64(True):
        exact = curve(*doubled((params, running, batches)))
    return compared(ours, theirs, others, exact)


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

    def curve(start: Callable[[Any], Any], other: Callable[[Any], Any] = lambda tree: tree) -> Curve:
        """From weights that `start` gives of the saved ones; `other` has all else."""
        params = start(module.load())
        more = [other(module.load_constants())] if trainer.buffers else []
        state = other(module.load_optimizer(params, module.load_progress()[0]))
        losses: Curve = module.train(params, state, *more, other(rest))[-1]
        return losses

    theirs = curve(lambda tree: tree)
    others = [curve(lambda tree, seed=seed: moved(tree, seed)) for seed in range(DRAWS)]
    with jax.enable_x64(True):
        exact = curve(doubled, doubled)
    return compared(ours, theirs, others, exact)


HEADS = [
    "direction",
    "network",
    "optimizer",
    "Onward, JAX",
    f"JAX, one bit off: median, largest of {DRAWS}",
    "Onward, JAX in float64",
    "JAX, JAX in float64",
    "apart by 1e-4 from step: Onward, JAX one bit off",
    "loss: first, last",
]


def compared(ours: Curve, theirs: Curve, others: Sequence[Curve], exact: Curve) -> list[str]:
    noise = sorted(apart(other, theirs) for other in others)
    own = min((parts(other, theirs) for other in others), key=lambda step: step or STEPS + 1)
    return [
        f"{apart(ours, theirs):.0e}",
        f"{statistics.median(noise):.0e}, {noise[-1]:.0e}",
        f"{apart(ours, exact):.0e}",
        f"{apart(theirs, exact):.0e}",
        f"{parts(ours, theirs) or 'never'}, {own or 'never'}",
        ends(theirs),
    ]


def apart(a: Curve, b: Curve) -> float:
    return max(abs(x - y) / abs(y) for x, y in zip(a, b, strict=True))


def parts(a: Curve, b: Curve) -> int | None:
    """The step from which two curves are not near each other."""
    pairs = enumerate(zip(a, b, strict=True), 1)
    return next((step for step, (x, y) in pairs if abs(x - y) / abs(y) > NEAR), None)


def ends(losses: Curve) -> str:
    return f"{losses[0]:.2f}, {losses[-1]:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", help=", ".join(FLAX))
    parser.add_argument("--kept", type=Path, metavar="FILE", help="keep rows there, for a run that is stopped")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ways = {"JAX to ONNX": from_jax, "ONNX to JAX": lambda *what: to_jax(*what, Path(folder))}
        every = itertools.product(args.networks or FLAX, OPTIMIZERS, ways)
        starts = ((way, name, optimizer) for name, optimizer, way in every)
        lines = table(HEADS, starts, lambda way, *what: ways[way](*what), args.kept)
    made = machine.describe("onward", "onnxruntime", "jax", "optax", "flax")
    text = "\n".join([BEGIN, *lines, "", made, END])
    print(text)
    if not args.networks:
        machine.put(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
