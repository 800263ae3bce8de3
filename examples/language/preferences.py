"""A loss of one's own, written in PyTorch: of two answers, the better one becomes likelier (DPO), by adapters.

    python examples/language/tune.py --out build/language
    python examples/language/preferences.py --model build/language/bits.onnx

The first half of a batch are the better answers, the second half the worse ones, in the same order. How likely the
model took each before it was tuned is an input of the step, `reference`: it is computed once, by the frozen model.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from torch import Tensor, nn

import onward
from onward import training


def likelihood(logits: Tensor, labels: Tensor) -> Tensor:
    """The logarithm of each answer's probability; labels below 0 are the question, and do not count."""
    following = labels[:, 1:]
    each = logits[:, :-1].log_softmax(-1).gather(2, following.clamp(min=0).unsqueeze(2)).squeeze(2)
    return (each * (following >= 0)).sum(1)


class Preference(nn.Module):
    """Rafailov and others, 'Direct Preference Optimization', 2023, equation 7."""

    def __init__(self, beta: float = 0.1) -> None:
        super().__init__()
        self.beta = beta

    def forward(self, logits: Tensor, labels: Tensor, reference: Tensor) -> Tensor:
        gain = likelihood(logits, labels) - reference
        half = gain.shape[0] // 2
        return -nn.functional.logsigmoid(self.beta * (gain[:half] - gain[half:])).mean()


def loss_model(words: int) -> onward.Model:
    """The loss as an ONNX model: its first input is the prediction, the others become inputs of a step."""
    shapes = torch.zeros(4, 6, words), torch.zeros(4, 6, dtype=torch.int64), torch.zeros(4)
    return onward.from_torch(Preference(), shapes, dynamic_batch=False)


def before(path: Path, batch: dict[str, np.ndarray]) -> np.ndarray:
    """How likely the model takes the answers as it is."""
    session = onnxruntime.InferenceSession(path)
    rows = len(batch["input_ids"])
    caches = [value for value in session.get_inputs() if value.name.startswith("past")]
    empty = {value.name: np.zeros((rows, value.shape[1], 0, value.shape[3]), np.float32) for value in caches}
    feeds = {name: batch[name] for name in ("input_ids", "attention_mask")} | empty
    logits = torch.from_numpy(session.run(["logits"], feeds)[0])
    return likelihood(logits, torch.from_numpy(batch["labels"])).numpy()


def main(arguments: list[str] | None = None) -> list[float]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path("build/language/bits.onnx"))
    parser.add_argument("--steps", type=int, default=20)
    args = parser.parse_args(arguments)
    words = int(onward.load(args.model).ir.graph.outputs[0].shape[-1])
    ids = np.random.default_rng(0).integers(0, words, (4, 6))
    ids[2:, :3] = ids[:2, :3]  # the question is the same
    labels = ids.copy()
    labels[:, :3] = -1
    batch = {"input_ids": ids, "attention_mask": np.ones_like(ids), "labels": labels}
    batch["reference"] = before(args.model, batch)
    trainable = training.prepare(args.model, loss_model(words), training.AdamW(lr=1e-2), lora=training.lora(rank=4))
    trainer = training.Trainer(trainable)
    losses = [trainer.step(batch) for _ in range(args.steps)]
    print(f"loss {losses[0]:.3f} to {losses[-1]:.3f}")
    return losses


if __name__ == "__main__":
    main()
