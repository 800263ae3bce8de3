"""Speed of MATLAB source in GNU Octave beside ONNX Runtime, on one thread.

    python benchmarks/speed_matlab.py                   writes docs/measured/speed-matlab.md
    python benchmarks/speed_matlab.py --networks resnet18 --rounds 5 --out /tmp/page.md

Each network is exported by PyTorch, converted and verified. Octave and ONNX Runtime then compute the same image in
turns, each in a process of its own; what is measured is processor time, so that a busy machine does not matter much.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import machine
import models
import numpy as np
import onnxruntime
from rich.console import Console
from rich.table import Table
from speed import markdown, ratio
from torch import Tensor, nn

import onward

PAGE = Path(__file__).parent.parent / "docs" / "measured" / "speed-matlab.md"
NAMES = {"resnet18": "ResNet-18", "mobilenetv2": "MobileNetV2"}
START = """
warning('off', 'all'); addpath('{folder}'); params = net.load();
x = single(reshape(mod(0:224 * 224 * 3 - 1, 255) / 255, 224, 224, 3));
"""
TURN = "t = cputime; y = net.model(params, x); printf('%.6f\\n', cputime - t); fflush(stdout);\n"


class Block(nn.Module):
    """Two convolutions of 3 x 3 and a shortcut."""

    def __init__(self, in_channels: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(in_channels, channels, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1:
            self.shortcut = nn.Sequential(
                nn.Conv2d(in_channels, channels, 1, stride, bias=False), nn.BatchNorm2d(channels)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
        sizes = [(64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1)]
        blocks = [Block(*size) for size in [*sizes, (256, 512, 2), (512, 512, 1)]]
        self.layers = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))

    def forward(self, image: Tensor) -> Tensor:
        return self.layers(image)


class Octave:
    """A process that computes with a package of MATLAB source, turn by turn."""

    def __init__(self, folder: Path) -> None:
        one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            ["octave-cli", "--norc", "--quiet", "--no-history"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | one,
        )
        self.tell(START.format(folder=folder))

    def tell(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text)
        self.process.stdin.flush()

    def turn(self) -> float:
        """Seconds of processor time for one image."""
        assert self.process.stdout is not None
        self.tell(TURN)
        return float(self.process.stdout.readline())

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def onnx_runtime(path: Path) -> Callable[[], float]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    image = (np.arange(224 * 224 * 3, dtype=np.float32) % 255 / 255).reshape(1, 3, 224, 224)

    def turn() -> float:
        begin = time.process_time()
        session.run(None, {session.get_inputs()[0].name: image})
        return time.process_time() - begin

    return turn


def measured(path: Path, folder: Path, rounds: int) -> dict[str, list[float]]:
    """Times of both, a round at a time; the first two rounds are not counted."""
    onward.convert(path, to="matlab", out=folder / "+net", force=True)
    octave, other = Octave(folder), onnx_runtime(path)
    times: dict[str, list[float]] = {"octave": [], "onnxruntime": []}
    try:
        for i in range(rounds + 2):
            turns = octave.turn(), other()
            if i >= 2:
                for seen, seconds in zip(times.values(), turns, strict=True):
                    seen.append(seconds)
    finally:
        octave.end()
    return times


def blas() -> str:
    """What Octave says of the library that multiplies its matrices."""
    program = shutil.which("octave-cli")
    if program is None:
        raise SystemExit("GNU Octave is not installed: apt-get install octave libopenblas0")
    said = subprocess.run(
        [program, "--norc", "--quiet", "--eval", "disp(OCTAVE_VERSION); disp(version('-blas'))"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    words = said[1].split()
    version = next((word for word in words if word[0].isdigit()), "")
    kernels = next((word for word, after in pairwise(words) if after.startswith("MAX_THREADS")), "")
    return f"Octave {said[0]}, {words[0]} {version}" + (f" with its kernels for {kernels}" if kernels else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=NAMES, default=list(NAMES))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, default=PAGE)
    args = parser.parse_args()
    models.NETWORKS["resnet18"] = models.Network(ResNet18, models.NETWORKS["resnet50"].inputs)
    table = Table(title="One image of 224 x 224 on one thread: Octave ÷ ONNX Runtime")
    for number, heading in enumerate(["network", "Octave", "ONNX Runtime", "Octave ÷ ONNX Runtime"]):
        table.add_column(heading, justify="right" if number else "left")
    with tempfile.TemporaryDirectory(prefix="onward-speed-") as scratch:
        for name in args.networks:
            path = Path(scratch) / f"{name}.onnx"
            models.export(name, path)
            times = measured(path, Path(scratch) / name, args.rounds)
            usual = [f"{1000 * statistics.median(seen):.0f} ms" for seen in times.values()]
            table.add_row(NAMES[name], *usual, ratio(times, "octave", "onnxruntime"))
    Console().print(table)
    args.out.write_text(page(table, f"{blas()} · {machine.describe('onward', 'onnxruntime')}"), encoding="utf-8")


def page(table: Table, about: str) -> str:
    return f"""# MATLAB source: speed in Octave

Written by `python benchmarks/speed_matlab.py`. Each network is exported by PyTorch, converted to MATLAB source and
verified; then Octave and ONNX Runtime compute the same image in turns, on one thread each. Convolutions are products
of matrices, so the BLAS that Octave uses decides: with Debian's reference BLAS it is several times slower.
OpenBLAS takes kernels for AVX2 on some processors that have AVX-512; `OPENBLAS_CORETYPE=SkylakeX` in the environment
chooses faster ones there.

{markdown(table)}
The median over rounds of processor time, and of one divided by the other; in brackets the fastest by the fastest.
{about}
"""


if __name__ == "__main__":
    main()
