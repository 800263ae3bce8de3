"""Processes that train together: what they return, what they raise, and one that is killed."""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_models import model

from onward.errors import InvalidDataError
from onward.training.parallel.launch import on_workers
from onward.training.parallel.workers import LostWorkerError
from onward.training.recipe.optimizers import AdamW
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import prepare

RNG = np.random.default_rng(3)
DATA = {"x": RNG.standard_normal((40, 4)).astype(np.float32), "labels": RNG.integers(0, 3, 40)}


def trained(folder: Path, reduce: Any, killed_at: int = 0) -> list[float]:
    """Worker 1 is killed in a step, once."""
    trainer = Trainer(prepare(model(), optimizer=AdamW(lr=1e-2)), threads=1, kernels=False, reduce=reduce)
    mark = folder / "killed"

    def batches() -> Any:
        for number in range(5):
            if reduce is not None and reduce.rank == 1 and trainer.steps == killed_at and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield {name: array[8 * number :][:8] for name, array in DATA.items()}

    class Epochs:
        def __iter__(self) -> Any:
            return batches()

    return trainer.fit(Epochs(), 3, checkpoint=folder / "state", every=2, resume=mark.exists()).losses


def test_a_worker_is_killed_and_the_run_goes_on_to_the_same_curve(tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    expected = trained(tmp_path / "alone", None)
    told: list[str] = []
    losses = on_workers(partial(trained, tmp_path, killed_at=7), 2, restarts=1, tell=told.append)
    np.testing.assert_allclose(losses, expected, atol=5e-6)
    assert told == ["worker 1 was killed by SIGKILL; all workers start anew (1 of at most 1 times)"]


def lost(reduce: Any) -> None:
    if reduce.rank:
        os._exit(7)
    reduce(np.ones(3))


def bad(reduce: Any) -> None:
    if reduce.rank:
        raise InvalidDataError("no such row")
    reduce(np.ones(3))


def summed(reduce: Any) -> list[float]:
    given = np.arange(3.0) * 10**reduce.rank
    reduce(given)
    return given.tolist()


def test_results_and_errors_reach_the_caller() -> None:
    assert on_workers(summed, 3) == [0.0, 111.0, 222.0]
    with pytest.raises(InvalidDataError, match=r"^worker 1: no such row$"):
        on_workers(bad, 2, restarts=3)
    with pytest.raises(LostWorkerError, match=r"^worker 1 ended with the code 7$"):
        on_workers(lost, 2)
