"""Which part of a graph a runtime can take, and where the rest runs."""
