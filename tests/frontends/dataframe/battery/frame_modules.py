"""All cases and refusals of the battery: importing it imports every module that registers some."""

import nw_frames
import pd_arithmetic
import pd_casts
import pd_choices
import pd_groups
import pd_maps
import pd_missing
import pd_order
import pd_refused
import pd_rows
import pd_shapes
import pd_text
import pd_times
import pl_expressions
import pl_frames
import pl_refused
from frame_cases import CASES, REFUSALS

__all__ = ["CASES", "MODULES", "REFUSALS"]

MODULES = (
    pd_arithmetic,
    pd_casts,
    pd_choices,
    pd_groups,
    pd_maps,
    pd_missing,
    pd_order,
    pd_rows,
    pd_shapes,
    pd_text,
    pd_times,
    pd_refused,
    pl_expressions,
    pl_frames,
    pl_refused,
    nw_frames,
)
