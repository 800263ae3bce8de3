"""A language model of transformers as one step of decoding, with its cache as inputs and outputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.advice.options import option
from onward.errors import OnwardError, UnsupportedError
from onward.frontends.opset import brought_to
from onward.model import Model
from onward.passes.unsigned_bytes import unsigned_bytes
from onward.runners.calls import Inputs, Outputs

if TYPE_CHECKING:
    import torch

    from onward.frontends.torch.names import Dynamic

BATCH, LENGTH, PAST, TOTAL = "batch", "sequence_length", "past_length", "total_length"
SOURCE, READ = "encoder_length", "encoder_past_length"
DECODER, ENCODER = "decoder", "encoder"
SIZES = ((2, 3, 4, 5, 2), (1, 5, 0, 4, 0), (3, 1, 6, 7, 7))
"""Of example inputs: texts, tokens of each, and tokens that the cache holds of each; then how long each encoded text or
sound is, and how much of it the cache holds. The first is what is traced."""
ATTENTION = ("key", "value")
STATES = {"conv": "conv_states", "recurrent": "recurrent_states"}
"""What a layer without attention keeps instead, of one size for any number of tokens."""


@dataclass(frozen=True)
class Slot:
    """A tensor of the cache."""

    layer: int
    kind: str
    shape: tuple[int, ...]
    """For one text; that of keys and values has the number of tokens as its last but one."""
    dtype: torch.dtype
    side: str = ""
    """With an encoder, what keys and values are of: `decoder`, the text so far, or `encoder`, what is encoded."""

    @property
    def name(self) -> str:
        return ".".join([str(self.layer), *([self.side] if self.side else []), self.kind])

    def example(self, batch: int, past: int, generator: torch.Generator) -> torch.Tensor:
        import torch

        shape = [batch, *self.shape]
        if self.kind in ATTENTION:
            shape[-2] = past
        return torch.randn(shape, generator=generator).to(self.dtype)


class Decoder:
    """How a causal model is exported: what it is called with, and what that is called in the file."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.parameters = inspect.signature(model.forward).parameters
        self.cache_argument = next(
            (name for name in ("past_key_values", "cache_params") if name in self.parameters), None
        )
        if self.cache_argument is None:
            raise UnsupportedError(f"{type(model).__name__} takes no cache: leave out {option('cache', True)}")
        self.slots = self._slots()
        if not self.slots:
            raise UnsupportedError(
                f"{type(self.model).__name__} keeps nothing in a cache: leave out {option('cache', True)}"
            )
        self.is_recurrent = any(slot.kind in STATES for slot in self.slots)
        """Whether each call takes one token: a layer that goes on from a state does so by one."""
        self.has_mask = any(slot.kind in ATTENTION for slot in self.slots) and "attention_mask" in self.parameters
        self.has_positions = self.has_mask and "position_ids" in self.parameters

    def _slots(self) -> list[Slot]:
        import torch
        from transformers import DynamicCache

        from onward.runners.undisturbed import evaluated

        cache = DynamicCache(config=self.model.config)
        tokens = torch.ones(1, 2, dtype=torch.int64, device=self.model.device)
        with evaluated(self.model), torch.no_grad():
            self.model(tokens, **{str(self.cache_argument): cache}, use_cache=True)
        return [slot for i, layer in enumerate(cache.layers) for slot in _of_layer(i, layer)]

    @cached_property
    def step(self) -> torch.nn.Module:
        """The module that is exported; its state dict is the model's."""
        import torch

        outer = self

        class Step(torch.nn.Module):
            def forward(self, tokens: Any, encoded: Any, mask: Any, past: Sequence[Any]) -> tuple[Any, ...]:
                return outer.called(tokens, encoded, mask, past)

        made = Step()
        for table in ("_modules", "_parameters", "_buffers", "_non_persistent_buffers_set"):
            made.__dict__[table] = self.model.__dict__[table]
        return made

    def called(self, tokens: Any, encoded: Any, mask: Any, past: Sequence[Any]) -> tuple[Any, ...]:
        """The logits and the new cache; nothing is encoded here."""
        cache = _filled(self.model.config, zip(self.slots, past, strict=True))
        more = {}
        if mask is not None:
            more["attention_mask"] = mask
        if self.has_positions:  # as `generate` counts them, so that texts may be padded on the left
            places = (mask.long().cumsum(-1) - 1).masked_fill(mask == 0, 0)
            more["position_ids"] = places[:, -tokens.shape[1] :]
        logits = self.model(tokens, **{str(self.cache_argument): cache}, **more, use_cache=True).logits
        return logits, *(_read(cache.layers[slot.layer], slot.kind) for slot in self.slots)

    @property
    def opened(self) -> dict[str, dict[int, str]]:
        """The inputs before the cache, in their order, each with the dimensions that are open."""
        tokens = {0: BATCH} if self.is_recurrent else {0: BATCH, 1: LENGTH}
        return {"input_ids": tokens} | ({"attention_mask": {0: BATCH, 1: TOTAL}} if self.has_mask else {})

    @property
    def input_names(self) -> list[str]:
        return [*self.opened, *(f"past_key_values.{slot.name}" for slot in self.slots)]

    @property
    def output_names(self) -> list[str]:
        return ["logits", *(f"present.{slot.name}" for slot in self.slots)]

    @property
    def dynamic(self) -> Dynamic:
        opened = self.opened
        for slot in self.slots:
            axes = {len(slot.shape) - 1: READ if slot.side == ENCODER else PAST} if slot.kind in ATTENTION else {}
            opened[f"past_key_values.{slot.name}"] = {0: BATCH, **axes}
        return opened

    def examples(self) -> Iterator[tuple[Any, ...]]:
        """Arguments of the step."""
        import torch

        device, drawn = self.model.device, torch.Generator().manual_seed(0)
        vocabulary = self.model.config.get_text_config(decoder=True).vocab_size
        for batch, length, past, source, read in SIZES:
            length = 1 if self.is_recurrent else length
            tokens = torch.randint(0, vocabulary, (batch, length), generator=drawn).to(device)
            held = [
                slot.example(batch, read if slot.side == ENCODER else past, drawn).to(device) for slot in self.slots
            ]
            yield tokens, *self._context(batch, past + length, source, drawn), held

    def _context(self, batch: int, total: int, source: int, drawn: torch.Generator) -> tuple[Any, Any]:
        """What is encoded, which is nothing here, and the mask."""
        import torch

        mask = torch.ones(batch, total, dtype=torch.int64, device=self.model.device)
        return None, mask if self.has_mask else None

    def exported(self, opset: int | None = None, translations: Mapping[Any, Callable[..., Any]] | None = None) -> Model:
        """The step as an ONNX model."""
        from onward.frontends.torch.export import exported
        from onward.runners.undisturbed import evaluated

        with evaluated(self.model):
            made = exported(
                self.step,
                next(self.examples()),
                {},
                inputs=self.input_names,
                outputs=self.output_names,
                dynamic=self.dynamic,
                opset=opset,
                translations=translations,
            )
        unsigned_bytes(made.ir)
        for slot, value in zip(self.slots, made.ir.graph.outputs[1:], strict=True):
            if slot.side == ENCODER and value.shape is not None:  # all of what is encoded, by whatever formula
                value.shape = ir.Shape([SOURCE if axis == 2 else size for axis, size in enumerate(value.shape)])
        return made if opset is None else brought_to(opset, made)

    def run(self, inputs: Inputs) -> Outputs:
        """What PyTorch makes of inputs with these names."""
        from onward.frontends.torch.original import Original
        from onward.runners.undisturbed import evaluated

        with evaluated(self.model):
            return Original(self.step, next(self.examples()), {}, self.input_names).opened()(inputs)

    def data(self) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """The same by the names of inputs, to compare on: what is made up has no mask that fits the cache."""
        from onward.backends.torch.values import to_numpy

        for tokens, encoded, mask, past in self.examples():
            values = [value for value in (tokens, encoded, mask) if value is not None]
            yield {
                name: np.asarray(to_numpy(value))
                for name, value in zip(self.input_names, [*values, *past], strict=True)
            }


class EncodedDecoder(Decoder):
    """The decoder of a model with an encoder: what that made is an input.

    Keys and values of what is encoded are in the cache, too. A call reads what the cache does not hold yet, which is
    all of it at first and nothing later.
    """

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        if {slot.side for slot in self.slots} != {DECODER, ENCODER} or self.is_recurrent:
            raise UnsupportedError(
                f"{type(model).__name__} keeps no keys and values of what is encoded: leave out {option('cache', True)}"
            )
        self.has_mask = model.main_input_name == "input_ids" and "attention_mask" in self.parameters
        """Whether what is encoded is a text, which may be padded; sounds and images are taken as a whole."""

    def _slots(self) -> list[Slot]:
        import torch
        from transformers import DynamicCache, EncoderDecoderCache

        from onward.runners.undisturbed import evaluated

        config = self.model.config
        cache = EncoderDecoderCache(DynamicCache(config=config), DynamicCache(config=config))
        drawn = torch.Generator().manual_seed(0)
        tokens = torch.ones(1, 2, dtype=torch.int64, device=self.model.device)
        with evaluated(self.model), torch.no_grad():
            self._logits(tokens, self._encoded(1, 3, drawn), None, cache)
        sides = {DECODER: cache.self_attention_cache, ENCODER: cache.cross_attention_cache}
        count = max(len(held.layers) for held in sides.values())
        return [
            slot
            for i in range(count)
            for side, held in sides.items()
            if i < len(held.layers)
            for slot in _of_layer(i, held.layers[i], side)
        ]

    def _encoded(self, batch: int, length: int, drawn: torch.Generator) -> Any:
        import torch

        size = getattr(getattr(self.model.get_encoder(), "config", None), "hidden_size", None)
        if size is None:
            name = type(self.model).__name__
            raise UnsupportedError(
                f"{name} does not say how large what it encodes is: leave out {option('cache', True)}"
            )
        return torch.randn(batch, length, size, generator=drawn).to(self.model.device, self.model.dtype)

    def _logits(self, tokens: Any, encoded: Any, mask: Any, cache: Any) -> Any:
        from transformers.modeling_outputs import BaseModelOutput

        more = {} if mask is None else {"attention_mask": mask}
        made = BaseModelOutput(last_hidden_state=encoded)
        return self.model(
            decoder_input_ids=tokens, encoder_outputs=made, past_key_values=cache, **more, use_cache=True
        ).logits

    def called(self, tokens: Any, encoded: Any, mask: Any, past: Sequence[Any]) -> tuple[Any, ...]:
        import torch
        from transformers import EncoderDecoderCache

        config = self.model.config
        given = list(zip(self.slots, past, strict=True))
        held = {side: _filled(config, [one for one in given if one[0].side == side]) for side in (DECODER, ENCODER)}
        cache = EncoderDecoderCache(*(type(one)(config=config) for one in held.values()))  # empty: nothing is read yet
        cache.self_attention_cache, cache.cross_attention_cache = held.values()
        known = next(tensor for slot, tensor in given if slot.side == ENCODER).shape[-2]
        last = encoded.shape[1] - 1  # is read each time: models do not take none at all
        read = torch.sym_min(known, last)  # type: ignore[no-untyped-call]
        for layer in cache.cross_attention_cache.layers:
            layer.keys, layer.values = layer.keys[:, :, :read], layer.values[:, :, :read]
        if mask is not None:  # of all that is encoded, as the model adds it to the products of queries and keys
            hidden = torch.zeros_like(mask, dtype=encoded.dtype).masked_fill(mask == 0, torch.finfo(encoded.dtype).min)
            mask = hidden[:, None, None, :].expand(-1, 1, tokens.shape[1], -1)
        logits = self._logits(tokens, encoded[:, read:], mask, cache)
        return logits, *(_read(held[slot.side].layers[slot.layer], slot.kind) for slot in self.slots)

    @property
    def opened(self) -> dict[str, dict[int, str]]:
        given = {"input_ids": {0: BATCH, 1: LENGTH}, "encoder_hidden_states": {0: BATCH, 1: SOURCE}}
        return given | ({"encoder_attention_mask": {0: BATCH, 1: SOURCE}} if self.has_mask else {})

    def _context(self, batch: int, total: int, source: int, drawn: torch.Generator) -> tuple[Any, Any]:
        import torch

        mask = torch.ones(batch, source, dtype=torch.int64, device=self.model.device)
        mask[0, -1] = 0
        return self._encoded(batch, source, drawn), mask if self.has_mask else None


def decoder_of(model: Any) -> Decoder:
    """How a model of transformers is exported; others are refused."""
    _refuse_others(model)
    return EncodedDecoder(model) if model.config.is_encoder_decoder else Decoder(model)


def _refuse_others(model: Any) -> None:
    """Raise unless it is a language model; told without an import of transformers."""
    word = option("cache", True)
    packages = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    if "transformers" not in packages or not hasattr(model, "config"):
        raise OnwardError(f"{word} takes a language model of transformers: give the cache of others in args")
    if not hasattr(model, "generate"):
        raise UnsupportedError(f"{type(model).__name__} is no language model with a cache: leave out {word}")


def _of_layer(index: int, layer: Any, side: str = "") -> Iterator[Slot]:
    found = {kind: _read(layer, kind) for kind in (*ATTENTION, *STATES)}
    held = {kind: tensor for kind, tensor in found.items() if tensor is not None}
    if not (held.keys() <= {*ATTENTION} or held.keys() <= STATES.keys()):
        raise UnsupportedError(
            f"layers with attention and a state are not supported: leave out {option('cache', True)}"
        )
    for kind, tensor in held.items():
        yield Slot(index, kind, tuple(tensor.shape[1:]), tensor.dtype, side)


def _read(layer: Any, kind: str) -> Any:
    if kind in ATTENTION:
        return getattr(layer, f"{kind}s", None)
    states = getattr(layer, STATES[kind], None)
    if not states:
        return None
    known = {place: state for place, state in states.items() if state is not None}
    if len(known) > 1:
        raise UnsupportedError(
            f"several states of a kind in one layer are not supported: leave out {option('cache', True)}"
        )
    return next(iter(known.values()), None)


def _filled(config: Any, held: Iterable[tuple[Slot, Any]]) -> Any:
    """A cache that holds these tensors. Layers with a window keep all tokens: what lies before it is masked."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    class Past(DynamicLayer):  # type: ignore[misc]
        def get_seq_length(self) -> int:
            length: int = self.keys.shape[-2]
            return length

    cache = DynamicCache(config=config)
    for slot, tensor in held:
        if slot.kind in STATES:
            layer = cache.layers[slot.layer]
            getattr(layer, STATES[slot.kind])[0] = tensor.clone()
            getattr(layer, f"is_{STATES[slot.kind]}_initialized")[0] = True
            layer.has_previous_state[0] = True
            if slot.kind == "conv":
                layer.conv_kernel_size[0] = tensor.shape[-1]
            layer.dtype, layer.device = tensor.dtype, tensor.device
            continue
        if not isinstance(cache.layers[slot.layer], Past):
            cache.layers[slot.layer] = Past()
        layer = cache.layers[slot.layer]
        setattr(layer, f"{slot.kind}s", tensor)
        layer.dtype, layer.device, layer.is_initialized = tensor.dtype, tensor.device, True
    return cache
