"""Random generators."""

import torch


def seeded_generator(seed: float, device: torch.device) -> torch.Generator:
    """A new generator, so that every call draws the same numbers."""
    return torch.Generator(device).manual_seed(int(seed))
