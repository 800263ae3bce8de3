"""Columns of a table in a graph: a value, where it is null, its type, and the rows that it has."""
