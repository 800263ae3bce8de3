"""What each op says about the sizes of its inputs, see `linked_sizes`."""

from onward.verification.data import language, linked_layers, linked_shapes, linked_special
from onward.verification.data.linked_sizes import Rule

RULES: dict[str, Rule] = {**linked_layers.TABLE, **linked_shapes.TABLE, **linked_special.TABLE, **language.TABLE}
