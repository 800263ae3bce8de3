"""Rows of a table: in order, in groups, in windows, and found in other tables."""
