"""Strings, and what is made from them, has no gradient."""

from __future__ import annotations

from onward.training.autodiff.vjp import no_gradient

no_gradient("strings", "StringConcat", "StringSplit", "StringNormalizer", "RegexFullMatch")
no_gradient("counts of strings or integers", "TfIdfVectorizer")
