"""A tiny language model learns one text with all its weights, is quantised to 4 bits, and learns another by adapters.

    python examples/language/tune.py --out build/language

Tokens are characters. The tuned model is written as `tuned.onnx`: the matrices of `bits.onnx`, bit by bit, with
adapters beside them. It needs ONNX Runtime and Onward, and no other framework. What the second text is as tokens is
written as `kitchen.npz`, so that `onward train` can do the same on the command line.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from decoder import decoder, quantised

from onward import training

HERE = Path(__file__).parent
LENGTH, BATCH = 64, 8
Array = np.ndarray


def batches(text: str, letters: str, steps: int, seed: int = 0) -> list[dict[str, Array]]:
    """Pieces of a text as numbers."""
    ids = np.array([letters.index(letter) for letter in text])
    starts = np.random.default_rng(seed).integers(0, len(ids) - LENGTH, (steps, BATCH))
    pieces = [ids[row[:, None] + np.arange(LENGTH)] for row in starts]
    return [{"input_ids": piece, "attention_mask": np.ones_like(piece)} for piece in pieces]


def learned(trainer: training.Trainer, data: list[dict[str, Array]]) -> tuple[float, float]:
    """The mean loss of the first and of the last five steps."""
    losses = [trainer.step(batch) for batch in data]
    return float(np.mean(losses[:5])), float(np.mean(losses[-5:]))


def continued(path: Path, letters: str, start: str, count: int) -> str:
    """What a model writes behind a text: the likeliest letter each time, with the keys and values of those before."""
    session = onnxruntime.InferenceSession(path)
    new = np.array([[letters.index(letter) for letter in start]])
    caches = [value for value in session.get_inputs() if value.name.startswith("past")]
    state = {value.name: np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32) for value in caches}
    seen, text = 0, start
    for _ in range(count):
        seen += new.shape[1]
        logits, *present = session.run(
            None, {"input_ids": new, "attention_mask": np.ones((1, seen), np.int64), **state}
        )
        state = dict(zip(state, present, strict=True))
        new = logits[:, -1:].argmax(-1)
        text += letters[int(new[0, 0])]
    return text


def main(arguments: list[str] | None = None) -> dict[str, tuple[float, float]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("build/language"))
    parser.add_argument("--steps", type=int, default=150, help="steps of each of the two trainings")
    args = parser.parse_args(arguments)
    args.out.mkdir(parents=True, exist_ok=True)
    weather, kitchen = ((HERE / f"{name}.txt").read_text(encoding="utf-8") for name in ("weather", "kitchen"))
    letters = "".join(sorted(set(weather + kitchen)))

    whole = training.Trainer(training.prepare(decoder(len(letters)), "causal_lm", training.AdamW(lr=3e-3)))
    found = {"weather, all weights": learned(whole, batches(weather, letters, args.steps))}
    onnx.save(quantised(whole.tuned().to_proto()), args.out / "bits.onnx")

    trainable = training.prepare(
        args.out / "bits.onnx", "causal_lm", training.AdamW(lr=1e-2), lora=training.lora(rank=8, patterns="layers.*")
    )
    adapters = training.Trainer(trainable)
    pieces = batches(kitchen, letters, args.steps)
    np.savez(args.out / "kitchen.npz", **{name: np.concatenate([one[name] for one in pieces]) for name in pieces[0]})
    found["kitchen, adapters beside 4 bits"] = learned(adapters, pieces)
    adapters.save(args.out / "tuned.onnx")
    for title, (first, last) in found.items():
        print(f"{title}: loss {first:.2f} to {last:.2f}")
    for name in ("bits", "tuned"):
        print(f"{name}.onnx writes: {continued(args.out / f'{name}.onnx', letters, 'the edge ', 40)!r}")
    return found


if __name__ == "__main__":
    main()
