"""How a `train.py` of PyTorch trains in several processes, as torchrun starts them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from onward.training.parallel.counting import BY_ROWS, way
from onward.training.recipe.losses import TOKENS, CausalLM, Term


def counted(terms: Sequence[Term], batch: Callable[[str], str], rows: str) -> str | None:
    """What says how much the rows of a process count in the loss of all; None where no one number does.

    `rows` is a tensor with a row for each sample.
    """
    losses: list[Any] = [term.loss for term in terms]
    if not losses:
        return None
    first = losses[0]
    for loss in losses:
        is_mean = isinstance(loss, (*BY_ROWS, CausalLM)) and getattr(loss, "reduction", "mean") == "mean"
        if not is_mean or way(loss) != way(first):
            return None
    if way(first) is None:
        return f"len({rows})"
    labels = batch(first.labels or TOKENS)
    if isinstance(first, CausalLM):
        labels = f"{labels}[:, 1:]"
        unlike = [f"({labels} != {number})" for number in (first.ignore_index, first.pad) if number is not None]
        return f"({' & '.join(unlike)}).sum()" if len(unlike) > 1 else f"{unlike[0]}.sum()"
    if first.weight is None:
        return f"({labels} != {first.ignore_index}).sum()"
    weights = f"torch.tensor({list(first.weight)!r}, device={labels}.device)"
    if first.ignore_index is not None:
        labels = f"{labels}[{labels} != {first.ignore_index}]"
    return f"{weights}[{labels}].sum()"


SEVERAL = '''
def start_processes(device: str) -> tuple[int, int]:
    """The number of this process, and how many torchrun has started; they find each other."""
    rank, count = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if count > 1:
        dist.init_process_group("nccl" if device.startswith("cuda") else "gloo")
        if rank == 0:
            load_progress()  # there may be files to move first
        dist.barrier()
    elif os.environ.get("OMPI_COMM_WORLD_SIZE", os.environ.get("PMI_SIZE", "1")) != "1":
        raise SystemExit("mpirun would train a copy in each process: start several by torchrun")
    return rank, count
'''
SHARED = '''
def shared(loss: Tensor, batch: Batch) -> Tensor:
    """Weighted so that the mean over processes is the loss of all of their rows."""
    if not dist.is_initialized():
        return loss
    own = torch.as_tensor({counted}, dtype=loss.dtype, device=loss.device)
    total = own.clone()
    dist.all_reduce(total)
    return torch.where(own > 0, loss, 0) * own / total * dist.get_world_size()
'''
GATHERED = '''
def gathered(tensor: Tensor) -> Tensor:
    """The rows of all processes; a mean over processes of gradients of this one's is the gradient of all."""
    if not dist.is_initialized():
        return tensor
    count, rank = dist.get_world_size(), dist.get_rank()
    sizes = [torch.zeros(1, dtype=torch.int64, device=tensor.device) for _ in range(count)]
    dist.all_gather(sizes, torch.tensor([len(tensor)], device=tensor.device))
    rows = [int(size) for size in sizes]
    padded = tensor.new_zeros(max(rows), *tensor.shape[1:])
    padded[: len(tensor)] = tensor.detach()
    parts = [torch.empty_like(padded) for _ in rows]
    dist.all_gather(parts, padded)
    parts = [part[:size] for part, size in zip(parts, rows, strict=True)]
    parts[rank] = tensor.view_as(tensor)
    if tensor.requires_grad:
        parts[rank].register_hook(lambda gradient: gradient * count)
    return torch.cat(parts)
'''
"""For a loss of which nothing is known: every process computes that of the whole batch."""
