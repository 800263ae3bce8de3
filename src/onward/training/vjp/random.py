"""What is drawn at random has no gradient."""

from __future__ import annotations

from onward.training.vjp import no_gradient

no_gradient("drawn at random: its output depends on the shape alone", "RandomNormalLike", "RandomUniformLike")
no_gradient("drawn at random", "RandomNormal", "RandomUniform")
no_gradient("draws of zero or one, constant between their steps", "Bernoulli")
no_gradient("integers", "Multinomial")
