"""Speed of models converted to JAX, beside the same networks written by hand in Flax; all under jax.jit.

    python benchmarks/speed_jax.py                      writes docs/measured/speed-jax.md
    python benchmarks/speed_jax.py --networks bert --layers 2 --out /tmp/page.md

Both run in one process, in turns, with the same weights; their outputs are compared first. The networks are ResNet-50
at 224 x 224, BERT-base with 128 words, and ViT-B/16 at 224 x 224; --layers makes the last two smaller. Flax's images
are channels last, as one writes them there; those of the files are channels first.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flax_models
import jax
import jax.numpy as jnp
import machine
import models
import numpy as np
import speed
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from speed import in_turns, markdown, quiet, ratio
from torch import Tensor, nn

import onward

PAGE = Path(__file__).parent.parent / "docs" / "measured" / "speed-jax.md"
NAMES = {"resnet50": "ResNet-50", "bert": "BERT-base", "vit": "ViT-B/16"}


class ViTBlock(nn.Module):
    """Pre-norm, every patch sees every other one."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = models.BertAttention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x), None)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class ViT(nn.Module):
    """ViT-B/16: 12 blocks of width 768, 12 heads, and a token for the class."""

    def __init__(self, width: int = 768, layers: int = 12) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 1 + 14 * 14, width))
        self.blocks = nn.ModuleList(ViTBlock(width, width // 64) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.positions
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))


def networks(layers: int) -> dict[str, Callable[[], nn.Module]]:
    return {
        "resnet50": models.ResNet50,
        "bert": lambda: models.BertEncoder(layers=layers),
        "vit": lambda: ViT(layers=layers),
    }


def contestants(name: str, how: str, layers: int, batch: int, folder: Path) -> dict[str, Callable[[], Any]]:
    """The converted and the hand-written network, compiled, on the same inputs; an error where they differ."""
    path = folder / f"{name}-{how}.onnx"
    net = models.build(name)
    if not path.exists():
        models.export(name, path, how, net)
    inputs = [jnp.asarray(x.numpy()) for x in models.example_inputs(name, batch).values()]
    with quiet():
        apply, params = onward.to_jax(path, check=False)
    made = flax_models.NETWORKS[name](**({} if name == "resnet50" else {"layers": layers}))
    variables = flax_models.variables(net.state_dict())
    images = [x.transpose(0, 2, 3, 1) if x.ndim == 4 else x for x in inputs]
    converted, by_hand = jax.jit(apply), jax.jit(made.apply)
    runs = {
        "onward": lambda: jax.block_until_ready(converted(params, *inputs)),
        "flax": lambda: jax.block_until_ready(by_hand(variables, *images)),
    }
    one, other = (np.asarray(run()) for run in runs.values())
    if name == "bert":  # what stands for padding need not be the same
        kept = np.asarray(inputs[1]) > 0
        one, other = one[kept], other[kept]
    error = np.abs(one - other).max() / np.abs(other).max()
    if error > 1e-3:
        raise SystemExit(f"{name}: the two differ by {error:.0e}")
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--exporters", nargs="+", choices=models.EXPORTERS, default=["default", "unoptimized"])
    parser.add_argument("--models", type=Path, help="folder that keeps the exported networks for the next run")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30, help="time for each row")
    parser.add_argument("--processor-time", action="store_true", help="instead of time on the wall")
    parser.add_argument("--out", type=Path, default=PAGE)
    args = parser.parse_args()
    if args.processor_time:
        speed.CLOCK = time.process_time

    for name, build in networks(args.layers).items():
        models.NETWORKS[name] = models.Network(build, models.NETWORKS["bert" if name == "bert" else "resnet50"].inputs)
    table = Table(title=f"Forward pass under `jax.jit`, batch {args.batch}: converted ÷ written in Flax")
    for number, heading in enumerate(["network", "PyTorch's exporter", "Flax", "onward ÷ Flax"]):
        table.add_column(heading, justify="left" if number < 2 else "right")
    with tempfile.TemporaryDirectory(prefix="onward-speed-") as scratch:
        home = args.models or Path(scratch)
        home.mkdir(parents=True, exist_ok=True)
        for name in args.networks:
            title = NAMES[name] if args.layers == 12 or name == "resnet50" else f"{NAMES[name]}, {args.layers} layers"
            for how in args.exporters:
                times = in_turns(contestants(name, how, args.layers, args.batch, home), args.seconds, least=10)
                usual = f"{1000 * statistics.median(times['flax']):.1f} ms"
                table.add_row(title, how, usual, ratio(times, "onward", "flax"))
                jax.clear_caches()
    Console().print(table)
    clock = "Processor time" if args.processor_time else "Time on the wall"
    about = f"{clock}. {machine.describe('onward', 'jax', 'flax', 'torch')}"
    args.out.write_text(page(table, about), encoding="utf-8")


def page(table: Table, about: str) -> str:
    return f"""# JAX: speed of converted models

Written by `python benchmarks/speed_jax.py`. Each network is exported by PyTorch and converted to JAX, and written by
hand in Flax (linen, channels last, `nn.MultiHeadDotProductAttention`) with the same weights. Both run in one process,
in turns, compiled by `jax.jit`; outputs are compared first. ResNet-50 and ViT-B/16 get images of 224 x 224, BERT-base
gets 128 words. PyTorch's *default* exporter folds batch norms into convolutions, the *unoptimized* one keeps them.

{markdown(table)}
The median over rounds of one time divided by the other, in brackets the fastest by the fastest. {about}
"""


if __name__ == "__main__":
    main()
