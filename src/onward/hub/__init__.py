"""How a model gets in and out: reading what may be hostile, writing what must be exact."""
