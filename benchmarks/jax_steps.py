"""Gradients of ONNX Runtime and of JAX beside JAX in float64, from the same weights at every step of a training.

    python benchmarks/jax_steps.py                  of the network whose curves part; writes to docs/measured/curves.md
    python benchmarks/jax_steps.py mlp lstm         of others; only shown

JAX trains in float32, as in `jax_curves.py`. At every step its weights, running statistics and batch are given to the
converted gradient on ONNX Runtime and to JAX in float64. So nothing piles up: what is measured is one step.
"""

import argparse
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import machine
import numpy as np
import onnxruntime
import optax
from jax_curves import NEAR, OPTIMIZERS, STEPS, batches_of, doubled, losses_of
from jax_networks import FLAX, Flax

import onward

PAGE = Path(__file__).parent.parent / "docs/measured/curves.md"
BEGIN, END = "<!-- jax gradients: written by benchmarks/jax_steps.py -->", "<!-- end of jax gradients -->"
HEADS = ["network", "optimizer", "median: Onward, JAX", "largest: Onward, JAX", "steps beyond 1e-4: Onward, JAX"]
Named = Mapping[str, Any]


def errors(network: Flax, how: Any) -> Iterator[tuple[float, float]]:
    """Of each step, how far the gradients of Onward and of JAX are from those in float64."""
    batches, loss = batches_of(network), losses_of(network)
    variables = network.module.init(jax.random.key(0), batches[0][0], False)
    params, running = variables["params"], variables.get("batch_stats", {})

    def gradients(params: Any, running: Any, x: Any, labels: Any) -> Any:
        return jax.grad(loss, has_aux=True)(params, running, x, labels)

    compiled, converted = jax.jit(gradients), on_onnxruntime(gradients, params, running, *batches[0])
    update, state = jax.jit(how.update), how.init(params)
    for batch in batches:
        found, after = compiled(params, running, *batch)
        ours = converted(params, running, *batch)
        with jax.enable_x64(True):
            exact = leaves(compiled(*doubled((params, running, *batch)))[0])
        yield worst(ours, exact), worst(leaves(found), exact)
        moves, state = update(found, state, params)
        params, running = optax.apply_updates(params, moves), after


def on_onnxruntime(gradients: Any, *example: Any) -> Any:
    """The function, converted; it gives the leaves of its first result, in order."""
    specs = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), example)
    count = len(jax.tree.leaves(example[0]))
    model = onward.from_jax(gradients, *specs, check=False)
    session = onnxruntime.InferenceSession(model.to_proto().SerializeToString())

    def run(*arguments: Any) -> list[Any]:
        names = [given.name for given in session.get_inputs()]
        return session.run(None, dict(zip(names, leaves(arguments), strict=True)))[:count]  # type: ignore[no-any-return]

    return run


def leaves(tree: Any) -> list[Any]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def worst(found: list[Any], exact: list[Any]) -> float:
    """The largest error of a tensor's gradient, by norms; of the whole where its own is only rounding."""
    whole = np.sqrt(sum(np.sum(b * b) for b in exact))
    pairs = zip(found, exact, strict=True)
    return max(float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-6 * whole)) for a, b in pairs)


def row(name: str, optimizer: str) -> list[str]:
    found = list(zip(*errors(FLAX[name], OPTIMIZERS[optimizer][0]()), strict=True))
    measures = [
        [f"{statistics.median(side):.0e}" for side in found],
        [f"{max(side):.0e}" for side in found],
        [str(sum(error > NEAR for error in side)) for side in found],
    ]
    return [name, optimizer, *(", ".join(both) for both in measures)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", help=", ".join(FLAX))
    args = parser.parse_args()
    rows = [HEADS, ["---"] * len(HEADS)]
    for name in args.networks or ("cnn-bn",):
        for optimizer in OPTIMIZERS:
            rows.append(row(name, optimizer))
            print(*rows[-1], flush=True)
    lines = ["| " + " | ".join(cells) + " |" for cells in rows]
    made = machine.describe("onward", "onnxruntime", "jax", "optax", "flax")
    text = "\n".join([BEGIN, *lines, "", f"{STEPS} steps · {made}", END])
    print(text)
    if not args.networks:
        machine.put(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
