"""Text in numpy object arrays, and what is counted in it as tensors."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from onward.backends.shared.runtime.string import matches, ngram_counts, parts_of_text


def split_text(x: np.ndarray, delimiter: str | None, limit: int = -1, device: Any = None) -> tuple[np.ndarray, Tensor]:
    """The parts of each string along a new last axis, and how many there are: see `parts_of_text`."""
    parts, counts = parts_of_text(x, delimiter, limit)
    return parts, torch.from_numpy(counts).to(device)


def full_match(x: np.ndarray, pattern: str, device: Any = None) -> Tensor:
    """Whether each string as a whole matches a regular expression."""
    return torch.from_numpy(matches(x, pattern)).to(device)


def count_ngrams(x: Any, *table: Any, device: Any = None) -> Tensor:
    """How often each n-gram of a pool occurs in each row of words: see `ngram_counts`."""
    return torch.from_numpy(ngram_counts(x, *table)).to(device)
