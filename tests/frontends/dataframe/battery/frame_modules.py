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
from more import (
    pd_more_arrays,
    pd_more_below,
    pd_more_changes,
    pd_more_code,
    pd_more_groups,
    pd_more_kinds,
    pd_more_labels,
    pd_more_looks,
    pd_more_nullable,
    pd_more_odd,
    pd_more_order,
    pd_more_rows,
    pd_more_single,
    pd_more_tables,
)

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
    pd_more_arrays,
    pd_more_below,
    pd_more_changes,
    pd_more_code,
    pd_more_groups,
    pd_more_kinds,
    pd_more_labels,
    pd_more_looks,
    pd_more_nullable,
    pd_more_odd,
    pd_more_order,
    pd_more_rows,
    pd_more_single,
    pd_more_tables,
    pd_refused,
    pl_expressions,
    pl_frames,
    pl_refused,
    nw_frames,
)
