"""Adapters of a quantised language model go on in other frameworks: the same losses, step by step."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from decoders import decoder

from onward.training import (
    SGD,
    CausalLM,
    Trainer,
    lora,
    prepare,
    to_jax_package,
    to_keras_package,
    to_tensorflow_package,
    to_torch_package,
)

WRITE = {
    "torch": to_torch_package,
    "jax": to_jax_package,
    "tensorflow": to_tensorflow_package,
    "keras": to_keras_package,
}
IDS = np.random.default_rng(0).integers(0, 48, (4, 6))


@pytest.mark.parametrize(("to", "write"), WRITE.items())
def test_next_tokens(
    to: str,
    write: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    loss = CausalLM(pad=3, ignore_index=-1, labels="labels")
    trainer = Trainer(prepare(decoder(layers=1), loss, SGD(lr=0.5), lora=lora(4)), kernels=False)
    labels = IDS.copy()
    labels[:, 1] = -1
    batch = {"input_ids": IDS, "attention_mask": np.ones_like(IDS), "labels": labels}
    trainer.step(batch)
    write(trainer, tmp_path / f"words_{to}")
    np.savez(tmp_path / "data.npz", **batch)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train", str(tmp_path / "data.npz"), "--epochs", "3", "--batch", "4"])
    importlib.import_module(f"words_{to}.train").main()
    losses = [float(line.rpartition(" ")[2]) for line in capsys.readouterr().out.splitlines()]
    assert losses == pytest.approx([trainer.step(batch) for _ in range(3)], abs=1e-4)
