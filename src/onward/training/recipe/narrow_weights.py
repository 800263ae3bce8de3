"""A tuned model with its weights as small again as they were before they became float32."""

from __future__ import annotations

from dataclasses import replace

from onward.errors import OnwardError
from onward.model import Model
from onward.training.recipe.quantised_weights import quantise_again
from onward.training.recipe.wide_floats import RECORD, before, store_halves


def check_narrow(model: Model) -> None:
    """Refuse a model none of whose weights were made wider."""
    if not before(model.ir):
        raise OnwardError(
            "no weights of the model became float32 when it was prepared: `onward convert tuned.onnx --to onnx`, with "
            "--float16 or --quantize, makes a model in fewer bits of any other"
        )


def with_narrow_weights(model: Model) -> Model:
    """A copy with weights of the dtypes that they had; biases of integers stay float32."""
    check_narrow(model)
    made = replace(model.copy(), path=model.path)
    store_halves(made.ir)
    quantise_again(made.ir)
    del made.ir.metadata_props[RECORD]
    return made
