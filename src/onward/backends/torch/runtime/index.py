"""Picking, placing and counting elements by index. An index below zero counts from the end."""

import numpy as np
import torch
from torch import Tensor


def from_front(indices: Tensor, size: int) -> Tensor:
    """Indices counted from the front, as int64."""
    indices = indices.long()
    return torch.where(indices < 0, indices + size, indices)


def gather_elements(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """out[i][j] = x[indices[i][j]][j] for axis 0, and likewise for the others."""
    return x.gather(axis, from_front(indices, x.shape[axis]))


def gather_nd(x: Tensor, indices: Tensor, batch_dims: int) -> Tensor:
    """x[b, *indices[b, i]], where the first `batch_dims` axes of both belong together."""
    batch = [
        torch.arange(n, device=x.device).reshape([-1] + [1] * (indices.ndim - 2 - axis))
        for axis, n in enumerate(x.shape[:batch_dims])
    ]
    return x[(*batch, *indices.unbind(-1))]


def scatter_nd(x: Tensor, indices: Tensor, updates: Tensor, reduce: str) -> Tensor:
    """A copy of x in which updates[i] is combined with x[*indices[i]] by 'prod', 'amax' or 'amin'."""
    depth = indices.shape[-1]
    row = torch.zeros(indices.shape[:-1], dtype=torch.int64, device=x.device)
    for axis in range(depth):
        row = row * x.shape[axis] + from_front(indices[..., axis], x.shape[axis])
    flat = x.reshape(-1, *x.shape[depth:])
    row = row.reshape(-1, *[1] * (x.ndim - depth)).expand(-1, *x.shape[depth:])
    return flat.scatter_reduce(0, row, updates.reshape(row.shape), reduce).reshape(x.shape)


def write_cache(cache: Tensor, update: Tensor, start: Tensor | None, axis: int, circular: bool = False) -> Tensor:
    """A copy of `cache` with `update` written along `axis`, for each sample of the batch from its own start."""
    axis, size = axis % cache.ndim, cache.shape[axis]
    place = torch.arange(update.shape[axis], device=cache.device)[None]
    if start is not None:
        place = place + start[:, None]
    if circular:
        place = place % size
    shape = [1] * cache.ndim
    shape[0], shape[axis] = place.shape
    return cache.scatter(axis, place.reshape(shape).expand(update.shape), update)


def one_hot(indices: Tensor, depth: int, axis: int) -> Tensor:
    """Along a new axis, whether its position is the index; an index out of range is nowhere."""
    axis = axis % (indices.ndim + 1)
    place = torch.arange(depth, device=indices.device).reshape([-1] + [1] * (indices.ndim - axis))
    indices = indices.long().unsqueeze(axis)
    return (indices == place) | (indices == place - depth)


def unique(x: Tensor, axis: int | None, ascending: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Distinct values (or slices along `axis`), where each came first, which of them each element is, and how many."""
    values, inverse, counts = torch.unique(x, return_inverse=True, return_counts=True, dim=axis)
    inverse = inverse.reshape(-1)
    order = torch.arange(inverse.numel(), device=x.device)
    first = torch.full_like(counts, inverse.numel()).scatter_reduce(0, inverse, order, "amin")
    if ascending:
        return values, first, inverse, counts
    order = first.argsort()
    rank = torch.empty_like(order).scatter(0, order, torch.arange(order.numel(), device=x.device))
    return values.index_select(axis or 0, order), first[order], rank[inverse], counts[order]


def top_k(x: Tensor, k: int, axis: int, largest: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest or smallest elements in order, and their indices; of equal elements the first comes first."""
    values, indices = x.sort(dim=axis, descending=largest, stable=True)
    return values.narrow(axis, 0, k), indices.narrow(axis, 0, k)


def reverse_sequence(x: Tensor, lengths: Tensor, time_axis: int, batch_axis: int) -> Tensor:
    """The first lengths[i] steps of sequence i in reverse order, the others as they are."""
    step = torch.arange(x.shape[time_axis], device=x.device)[:, None]
    index = torch.where(step < lengths, lengths - 1 - step, step)
    index = index if time_axis < batch_axis else index.T
    return x.gather(time_axis, index.reshape(*index.shape, *[1] * (x.ndim - 2)).expand(x.shape))


def places(x: np.ndarray) -> Tensor:
    """The number of each element of an array, for ops that move elements: `strings_at(x, op(places(x)))`."""
    return torch.arange(x.size).reshape(x.shape)


def unique_strings(x: np.ndarray, axis: int | None, ascending: bool) -> tuple[np.ndarray, Tensor, Tensor, Tensor]:
    """`unique` for an array of strings."""
    words, codes = np.unique(x, return_inverse=True)
    values, first, inverse, counts = unique(torch.from_numpy(codes.reshape(x.shape)), axis, ascending)
    return words[values.numpy()], first, inverse, counts
