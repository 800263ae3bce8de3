"""Networks of Flax as large as people convert, as cases of the battery: ResNet-50, BERT and ViT of 3, 6 and 12 layers.

Their weights are drawn: what a conversion takes does not depend on them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests/frontends/jax/battery"))

import flax_models
import jax
from jax_data import structs
from jax_models import Given, Network, drawn

IMAGE = ("f32[1,224,224,3]",)
WORDS = ("i32[1,128] 0..30000", "i32[1,128] 0..1", "i32[1,128] 0..1")
LAYERS = (3, 6, 12)


def given(make: Callable[[], Any], specs: tuple[str, ...]) -> Given:
    module = make()
    variables = drawn(jax.eval_shape(module.init, jax.random.key(0), *structs(specs)))
    return Given((module, variables), lambda *inputs: module.apply(variables, *inputs))


def network(name: str, make: Callable[[], Any], specs: tuple[str, ...]) -> Network:
    return Network("flax", name, partial(given, make, specs), specs)


NETWORKS = [
    network("ResNet-50", flax_models.ResNet50, IMAGE),
    *(network(f"BERT-{n}", partial(flax_models.BertEncoder, layers=n), WORDS) for n in LAYERS),
    *(network(f"ViT-{n}", partial(flax_models.ViT, layers=n), IMAGE) for n in LAYERS),
]
