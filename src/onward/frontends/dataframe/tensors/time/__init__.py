"""Dates, times and durations, which are ticks."""
