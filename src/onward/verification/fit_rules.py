"""What each op says about the sizes of its inputs, see `fit`."""

from onward.verification import fit_layers, fit_shapes, fit_special
from onward.verification.fit import Rule

RULES: dict[str, Rule] = {**fit_layers.TABLE, **fit_shapes.TABLE, **fit_special.TABLE}
