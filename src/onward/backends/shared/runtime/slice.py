"""Borders around tensors."""


def clamped_sides(size: int, before: int, after: int) -> tuple[int, int]:
    """What to add to both ends of an axis, where it may be to cut more than there is and to add it at the other end."""
    total = size + before + after
    if total < 0:
        raise ValueError(f"padding by {before} and {after} cuts more than the {size} elements of an axis")
    return (-size, total) if before < -size else (total, -size) if after < -size else (before, after)
