"""Hypothesis tries numbers and texts that it finds in the code: in that of data frames, not in all of Onward.

To read all of it takes seconds, in every process of the tests.
"""

from hypothesis.internal.conjecture import providers

is_local = getattr(providers, "is_local_module_file", None)
if is_local is not None:
    providers.is_local_module_file = lambda path: "/onward/frontends/dataframe/" in path and is_local(path)
