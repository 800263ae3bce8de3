"""Sums over workers that others started: by torch.distributed under torchrun, by MPI under mpirun."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from onward.advice.extras import require
from onward.errors import OnwardError
from onward.training.parallel.workers import LostWorkerError

Array = np.ndarray[Any, np.dtype[Any]]
NO_ANSWER = "a worker has ended, or did not answer"
"""What is said of others that are waited for."""
TIMEOUT = 600.0
"""Seconds that a worker waits for the others."""
MPI_SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


@dataclass(frozen=True)
class ReduceBy:
    """A function of your own that puts the sum over workers in the place of a flat array."""

    add: Callable[[Array], Any]
    rank: int
    size: int
    end: Callable[[], Any] = lambda: None
    """Called once all workers have done their work: one that ends without it has failed."""

    def __call__(self, flat: Array) -> None:
        self.add(flat)


def reduce_by_torch(timeout: float = TIMEOUT) -> ReduceBy:
    """By torch.distributed: the process group that is there, or one of gloo, as torchrun's variables say."""
    require("torch", what="workers that torchrun starts")
    import torch
    import torch.distributed as dist

    try:
        if not dist.is_initialized():
            dist.init_process_group("gloo", timeout=timedelta(seconds=timeout))
    except (RuntimeError, ValueError) as error:
        raise OnwardError(f"the workers that torchrun started do not find each other: {error}") from error

    def add(flat: Array) -> None:
        try:
            dist.all_reduce(torch.from_numpy(flat))
        except RuntimeError as error:
            raise LostWorkerError(f"{NO_ANSWER} for {timeout:g} s: {str(error).splitlines()[0]}") from error

    return ReduceBy(add, dist.get_rank(), dist.get_world_size(), dist.destroy_process_group)


def reduce_by_mpi(comm: Any = None) -> ReduceBy:
    """By mpi4py, over all processes unless a communicator is given. If a process ends, MPI ends the others."""
    require("mpi4py", what="workers that mpirun starts")
    from mpi4py import MPI

    among = MPI.COMM_WORLD if comm is None else comm
    return ReduceBy(lambda flat: among.Allreduce(MPI.IN_PLACE, flat), among.Get_rank(), among.Get_size(), MPI.Finalize)


def reduce_from_environment(timeout: float = TIMEOUT) -> ReduceBy | None:
    """What fits how this process was started: by torchrun, by mpirun, or alone (None)."""
    if int(os.environ.get("WORLD_SIZE") or 1) > 1:
        return reduce_by_torch(timeout)
    if any(int(os.environ.get(name) or 1) > 1 for name in MPI_SIZES):
        return reduce_by_mpi()
    return None


def workers_here(size: int) -> int:
    """How many of the workers share this machine, as whoever started them says; else all."""
    names = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")
    return next((int(os.environ[name]) for name in names if os.environ.get(name)), size)
