"""Gradients through random ops: there are none."""

from __future__ import annotations

from onward.training.autodiff.vjp import no_gradient

no_gradient("drawn at random", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike")
no_gradient("drawn at random", "Bernoulli", "Multinomial")
