"""Texts: what follows `.str` of a column, and texts joined, compared, read as numbers and written."""

from onward.registry import import_files

import_files(__name__)
