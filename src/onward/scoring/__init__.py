"""Batch scoring: a table of any length goes through a model batch by batch, in bounded memory, here or on Ray."""
