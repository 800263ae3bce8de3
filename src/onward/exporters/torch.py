"""Modules of PyTorch as ONNX models."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, Unpack, overload

from onward.advice.extras import require
from onward.errors import OnwardError
from onward.model import Model
from onward.passes.unsigned_bytes import unsigned_bytes
from onward.verification.check import prove_source

if TYPE_CHECKING:
    import torch

    from onward.frontends.torch.names import Dynamic
    from onward.training.trainable import Options, Trainable

    Program: TypeAlias = torch.nn.Module | torch.export.ExportedProgram | str | os.PathLike[str]


@overload
def from_torch(
    module: Program,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic: Dynamic | None = None,
    dynamic_batch: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int | None = None,
    translations: Mapping[Any, Callable[..., Any]] | None = None,
    cache: bool = False,
    trust: bool = False,
    check: bool = True,
) -> Model: ...


@overload
def from_torch(
    module: torch.nn.Module,
    args: Any,
    loss: Any,
    optimizer: Any = None,
    *,
    dynamic_batch: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Trainable: ...


@overload
def from_torch(
    module: torch.nn.Module,
    args: Any,
    *,
    optimizer: Any,
    dynamic_batch: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    **options: Unpack[Options],
) -> Trainable: ...


def from_torch(
    module: Program,
    args: Any = (),
    loss: Any = None,
    optimizer: Any = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    dynamic: Dynamic | None = None,
    dynamic_batch: bool = True,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset: int | None = None,
    translations: Mapping[Any, Callable[..., Any]] | None = None,
    cache: bool = False,
    trust: bool = False,
    check: bool = True,
    **options: Unpack[Options],
) -> Model | Trainable:
    """A PyTorch module as a model for inference; given a loss or an optimizer, as a trainable one.

    `args` and `kwargs` are inputs such as the module is called with. `dynamic` names the dimensions that are open, by
    input: `{"x": {0: "batch"}}`; parts of a nested input are called as in the ONNX file (`pair_0`, `state_h`). Without
    it the first axis of every tensor is the batch, unless `dynamic_batch` is off. An `ExportedProgram`, or a `.pt2`
    file of one, has its inputs and open dimensions already; `dynamic` then gives these names. `trust` lets such a file
    hold code; without it, one that does is refused.

    `translations` says how ops are written that neither PyTorch's exporter nor Onward knows: by overload
    (`torch.ops.mylib.op.default`), an onnxscript function, or one that calls `onnxscript` opsets.

    With `cache`, a language model of transformers becomes one step of decoding, without args: of `input_ids`,
    `attention_mask`, `past_key_values.0.key` and so on it makes `logits`, `present.0.key` and so on. How many tokens
    there are is open, and how many the cache holds, which may be none. A model with a recurrent state, such as Mamba,
    takes one token a call. One with an encoder, such as T5, takes `encoder_hidden_states`, what its encoder made; the
    encoder is a module of its own, `model.get_encoder()`.

    Unless `check` is false, the model is run beside the module, on the inputs given and where dimensions are open on
    others, and `VerificationError` is raised if they differ.

    Of training, with its `options`, `onward.training.from_torch` says more; the loss is `cross_entropy` and the
    optimizer `adamw` where only one of them is given. The module stays as it is.

    >>> import onward, torch
    >>> model = onward.from_torch(torch.nn.Linear(3, 2), torch.zeros(1, 3), input_names=["x"])
    >>> model.save("linear.onnx")
    """
    if loss is not None or optimizer is not None:
        from onward.training.capture.torch import from_torch as captured

        if kwargs or dynamic is not None or opset is not None or translations or cache:
            raise OnwardError("kwargs, dynamic, opset, translations and cache are for inference, not for training")
        return captured(
            module,  # type: ignore[arg-type]
            args,
            loss or "cross_entropy",
            optimizer or "adamw",
            input_names=input_names,
            output_names=output_names,
            dynamic_batch=dynamic_batch,
            **options,
        )
    if options:
        raise OnwardError(f"{sorted(options)[0]} is an option of training: give a loss or an optimizer as well")
    require("torch")
    if cache:
        if len(args) or any(given is not None for given in (kwargs, dynamic, input_names, output_names)):
            raise OnwardError("with cache=True inputs, names and open dimensions follow from the model: leave them out")
        from onward.frontends.torch.decoder import decoder_of

        decoder = decoder_of(module)
        step = decoder.exported(opset, translations)
        if check:
            for data in decoder.data():
                prove_source(step, lambda: decoder.run, "PyTorch", data)
        return step
    from onward.frontends.opset import brought_to
    from onward.frontends.torch.export import exported, opened, positional
    from onward.frontends.torch.original import Original

    program = opened(module, trust)
    given, named = positional(args), dict(kwargs or {})
    model = exported(
        program,
        given,
        named,
        inputs=input_names,
        outputs=output_names,
        dynamic=dynamic,
        dynamic_batch=dynamic_batch,
        opset=opset,
        translations=translations,
    )
    unsigned_bytes(model.ir)
    if opset is not None:
        model = brought_to(opset, model)
    if check:
        original = Original(program, given, named, input_names)
        for data in original.data(model):
            prove_source(model, original.opened, "PyTorch", data)
    return model
