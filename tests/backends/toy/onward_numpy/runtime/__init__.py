"""Functions that NumPy does not have: generated code gets a copy of those that it calls."""
