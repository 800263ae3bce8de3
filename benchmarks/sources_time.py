"""Time of `onward convert … --to onnx --no-verify`, beside that of the converter that it calls, imports done.

python benchmarks/sources_time.py [NAME]... [--rounds N]

Both read the same file and write an ONNX file, in one process and in turns; the first round, which imports, is not
counted. Ratios are of CPU time.
"""

import argparse
import contextlib
import io
import logging
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import machine
import models
import torch

from onward.cli import main as onward

LIMIT = 1.15
Action = Callable[[], object]


def convert(source: Path, out: Path) -> None:
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = onward(["convert", str(source), "--to", "onnx", "--no-verify", "--out", str(out)])
    assert code == 0, said.getvalue()


def resnet50(folder: Path) -> tuple[Action, Action]:
    """A program of `torch.export`, and `torch.onnx.export` of it."""
    net, image = models.ResNet50().eval(), torch.randn(2, 3, 224, 224)
    source = folder / "resnet50.pt2"
    program = torch.export.export(net, (image,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    torch.export.save(program, source)

    def theirs() -> None:
        read = torch.export.load(source)
        torch.onnx.export(read, f=folder / "theirs.onnx", external_data=False, verbose=False)

    return partial(convert, source, folder / "ours.onnx"), theirs


def forest(folder: Path) -> tuple[Action, Action]:
    """A forest of 100 trees in a .skops file, and skl2onnx."""
    import skops.io
    from skl2onnx import to_onnx
    from sklearn.datasets import make_classification
    from sklearn.ensemble import RandomForestClassifier

    x, y = make_classification(2000, 20, n_informative=10, n_classes=3, random_state=0)
    source = folder / "forest.skops"
    skops.io.dump(RandomForestClassifier(100, random_state=0).fit(x, y), source)

    def theirs() -> None:
        read = skops.io.load(source, trusted=["sklearn.tree._tree.Tree"])
        made = to_onnx(read, x[:1], options={"zipmap": False}, target_opset={"": 21, "ai.onnx.ml": 3})
        (folder / "theirs.onnx").write_bytes(made.SerializeToString())

    return partial(convert, source, folder / "ours.onnx"), theirs


ROWS: dict[str, Callable[[Path], tuple[Action, Action]]] = {"resnet50": resnet50, "forest": forest}
"""By name: from a folder to work in, the two conversions."""


def ratio(ours: Action, theirs: Action, rounds: int) -> tuple[float, list[float]]:
    """The median of the ratios of CPU time, and the medians of the times."""
    times: list[list[float]] = [[], []]
    for number in range(rounds + 1):
        for kept, action in zip(times, (ours, theirs), strict=True):
            begin = time.process_time()
            action()
            if number:
                kept.append(time.process_time() - begin)
    ratios = [a / b for a, b in zip(*times, strict=True)]
    return statistics.median(ratios), [statistics.median(kept) for kept in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ROWS)} (default: all)")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    worst = 0.0
    for name in args.names or ROWS:
        with tempfile.TemporaryDirectory() as folder:
            found, (ours, theirs) = ratio(*ROWS[name](Path(folder)), args.rounds)
        worst = max(worst, found)
        print(f"{name}: onward {ours:.2f} s, the converter alone {theirs:.2f} s of CPU time: {found:.2f} times as much")
    print(machine.describe("onward", "torch", "onnxscript"))
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
