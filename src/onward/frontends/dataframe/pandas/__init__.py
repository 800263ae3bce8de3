"""Functions of pandas, followed as they run."""
