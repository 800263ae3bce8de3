"""Texts: found, cut, joined, read and written."""
