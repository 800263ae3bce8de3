"""Many jobs at a time, each in a process of its own with limits, on this machine or on a Ray cluster.

An engine has one method, `map`: jobs to what became of them, in the order in which they are done. `store.py` keeps
that on disk, so that a run that was stopped goes on.
"""
