"""One trainable file goes on in four frameworks: how far their loss curves are from ONNX Runtime's, over 50 steps.

    python benchmarks/continued_curves.py                 all networks; writes to docs/measured/curves.md
    python benchmarks/continued_curves.py mlp lstm        some of them; only shown
    python benchmarks/continued_curves.py --kept FILE     rows are kept there: a run that was stopped goes on

A file makes 25 steps on ONNX Runtime. `onward train export` then writes it for PyTorch, Keras, TensorFlow and JAX, and
all five go on with the same batches. Beside that, how far PyTorch is from itself when its weights start one bit off.
"""

import argparse
import importlib
import itertools
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import machine
import numpy as np
import torch
from curves import labelled
from jax_networks import TORCH
from kept import table

from onward import training
from training import export

PAGE = Path(__file__).parent.parent / "docs/measured/curves.md"
BEGIN, END = "<!-- continued curves: written by benchmarks/continued_curves.py -->", "<!-- end of continued curves -->"
STEPS, BEFORE = 50, 25
DRAWS = 3
"""Of weights that are off by one in the last bit."""
Curve = Sequence[float]
Batch = dict[str, np.ndarray]
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: training.SGD(lr=0.05),
    "momentum": lambda: training.SGD(lr=0.02, momentum=0.9),
    "adamw": lambda: training.AdamW(lr=1e-3),
}
HEADS = ["network", "optimizer", "PyTorch", "Keras", "TensorFlow", "JAX", f"PyTorch, one bit off: largest of {DRAWS}"]
HEADS += ["loss: first, last"]


def in_torch(module: Any, batches: Sequence[Batch], seed: int | None = None) -> Curve:
    net = module.load()
    if seed is not None:
        draws = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for w in net.parameters():
                away = torch.randint(0, 2, w.shape, generator=draws) * 2 - 1
                w.copy_(torch.nextafter(w, w + away))
    given = [{name: torch.from_numpy(array) for name, array in batch.items()} for batch in batches]
    losses: Curve = module.train(net, module.load_optimizer(net), given)
    return losses


def in_keras(module: Any, batches: Sequence[Batch]) -> Curve:
    net = module.load()
    module.prepare(net, module.load_progress()[0])
    losses: Curve = module.train(net, batches)
    return losses


def in_tensorflow(module: Any, batches: Sequence[Batch]) -> Curve:
    net = module.load()
    weights = module.trained_in(net)
    losses: Curve = module.train(net, weights, module.load_state(weights, module.load_progress()[0]), batches)
    return losses


def in_jax(module: Any, batches: Sequence[Batch]) -> Curve:
    params = module.load()
    more = [module.load_constants()] if hasattr(module, "STATISTICS") else []
    state = module.load_optimizer(params, module.load_progress()[0])
    losses: Curve = module.train(params, state, *more, batches)[-1]
    return losses


GO_ON = {"torch": in_torch, "keras": in_keras, "tensorflow": in_tensorflow, "jax": in_jax}


def apart(a: Curve, b: Curve) -> float:
    return max(abs(x - y) / abs(y) for x, y in zip(a, b, strict=True))


def row_of(name: str, optimizer: str, folder: Path) -> list[str]:
    torch.manual_seed(0)
    data = [{"x": x.numpy(), "labels": y.numpy()} for x, y in labelled(TORCH[name], BEFORE + STEPS)]
    path = folder / f"{name}.onnx"
    if not path.exists():
        export(TORCH[name].make(), torch.from_numpy(data[0]["x"]), path)
    trainer = training.Trainer(training.prepare(path, optimizer=OPTIMIZERS[optimizer]()))
    for batch in data[:BEFORE]:
        trainer.step(batch)
    made = {}
    for framework in GO_ON:
        write = getattr(training, f"to_{framework}_package")
        package = write(trainer, folder / f"{name}_{optimizer}_{framework}".replace("-", "_"))
        made[framework] = importlib.import_module(f"{package.name}.train")
    rest = data[BEFORE:]
    ours = [trainer.step(batch) for batch in rest]
    found = {framework: go_on(made[framework], rest) for framework, go_on in GO_ON.items()}
    noise = max(apart(in_torch(made["torch"], rest, seed), found["torch"]) for seed in range(DRAWS))
    return [
        *(f"{apart(found[framework], ours):.0e}" for framework in GO_ON),
        f"{noise:.0e}",
        f"{ours[0]:.2f}, {ours[-1]:.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", help=", ".join(TORCH))
    parser.add_argument("--kept", type=Path, metavar="FILE", help="keep rows there, for a run that is stopped")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        starts = itertools.product(args.networks or TORCH, OPTIMIZERS)
        lines = table(HEADS, starts, lambda *what: row_of(*what, Path(folder)), args.kept)
    text = "\n".join(
        [BEGIN, *lines, "", machine.describe("onward", "onnxruntime", "torch", "keras", "tensorflow-cpu", "jax"), END]
    )
    print(text)
    if not args.networks:
        machine.put(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
