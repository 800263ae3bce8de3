"""Rules for dates, times and durations: one file a family of methods."""

from onward.registry import import_files

import_files(__name__)
