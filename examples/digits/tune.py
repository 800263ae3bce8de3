"""Trains digits.onnx on ONNX Runtime: all of it from random weights, and its head alone for another task.

    python examples/digits/tune.py --out build/digits

Writes the data (train.npz, val.npz), a trainable file and a tuned model for each of the two, with their curves.
PyTorch is not needed.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from onward import training

MODEL = Path(__file__).parent / "digits.onnx"
BATCH = 64
REQUIRED_ACCURACY = 0.95
Data = dict[str, np.ndarray]


def load_data(seed: int) -> tuple[Data, Data]:
    """Images and labels to train on, and held-out ones."""
    digits = load_digits()
    images = (digits.images / 16.0).astype(np.float32)[:, None]
    split = train_test_split(images, digits.target, test_size=0.25, random_state=seed, stratify=digits.target)
    return {"image": split[0], "labels": split[2]}, {"image": split[1], "labels": split[3]}


def from_scratch(train: Data, val: Data, epochs: int, seed: int, out: Path) -> float:
    """All weights, from random ones; the learning rate goes up for a while, then down."""
    steps = epochs * (len(train["labels"]) // BATCH)
    schedule = training.Warmup(steps // 4, training.Cosine(steps - steps // 4))
    trainable = training.prepare(MODEL, "cross_entropy", training.AdamW(lr=1e-2), schedule=schedule)
    trainable.save(out / "scratch.trainable.onnx", scratch=True)
    trainer = training.Trainer(training.load(out / "scratch.trainable.onnx", initialize=True))
    history = trainer.fit(train, epochs, BATCH, val=val, seed=seed, drop_last=True)
    trainer.save(out / "scratch.onnx")
    history.csv(out / "scratch.csv")
    history.plot(out / "scratch.svg")
    return trainer.evaluate(val)["accuracy"]


def head_only(train: Data, val: Data, epochs: int, seed: int, out: Path) -> tuple[float, float]:
    """The head learns to read digits backwards, 9 for 0; the rest stays as it is."""
    train, val = ({**data, "labels": 9 - data["labels"]} for data in (train, val))
    trainable = training.prepare(MODEL, "cross_entropy", training.AdamW(lr=3e-2), ["head.*"], train_mode=False)
    trainable.save(out / "head.trainable.onnx")
    trainer = training.Trainer(trainable)
    before = trainer.evaluate(val)["accuracy"]
    trainer.fit(train, epochs, BATCH, val=val, seed=seed, checkpoint=out / "head.checkpoint")
    trainer.save(out / "head.onnx")
    return before, trainer.evaluate(val)["accuracy"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/digits"), help="folder for what is written")
    args = parser.parse_args()

    args.out.mkdir(parents=True, exist_ok=True)
    train, val = load_data(args.seed)
    np.savez(args.out / "train.npz", **train)
    np.savez(args.out / "val.npz", **val)
    scratch = from_scratch(train, val, args.epochs, args.seed, args.out)
    print(f"from scratch: held-out accuracy {scratch:.2%} on {len(val['labels'])} images")
    before, head = head_only(train, val, args.epochs, args.seed, args.out)
    print(f"head alone, backwards: held-out accuracy {before:.2%} before, {head:.2%} after")
    if min(scratch, head) < REQUIRED_ACCURACY:
        sys.exit(f"below {REQUIRED_ACCURACY:.0%}")


if __name__ == "__main__":
    main()
