"""A causal language model of transformers as one step of decoding, with its cache as inputs and outputs."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from onward.errors import OnwardError, UnsupportedError

if TYPE_CHECKING:
    import torch

    from onward.frontends.torch.names import Dynamic

BATCH, LENGTH, PAST, TOTAL = "batch", "sequence_length", "past_length", "total_length"
SIZES = ((2, 3, 4), (1, 5, 0), (3, 1, 6))
"""Of example inputs: texts, tokens of each, and tokens that the cache holds of each; the first is what is traced."""
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

    @property
    def name(self) -> str:
        return f"{self.layer}.{self.kind}"

    def example(self, batch: int, past: int, generator: torch.Generator) -> torch.Tensor:
        import torch

        shape = [batch, *self.shape]
        if self.kind in ATTENTION:
            shape[-2] = past
        return torch.randn(shape, generator=generator).to(self.dtype)


class Decoder:
    """How a model is exported: what it is called with, and what that is called in the file."""

    def __init__(self, model: Any) -> None:
        _refuse_others(model)
        self.model = model
        parameters = inspect.signature(model.forward).parameters
        self.cache_argument = next((name for name in ("past_key_values", "cache_params") if name in parameters), None)
        if self.cache_argument is None:
            raise UnsupportedError(f"{type(model).__name__} takes no cache: leave out cache=True")
        self.slots = self._slots()
        self.is_recurrent = any(slot.kind in STATES for slot in self.slots)
        """Whether each call takes one token: a layer that goes on from a state does so by one."""
        self.has_mask = any(slot.kind in ATTENTION for slot in self.slots) and "attention_mask" in parameters
        self.has_positions = self.has_mask and "position_ids" in parameters

    def _slots(self) -> list[Slot]:
        import torch
        from transformers import DynamicCache

        from onward.runners.undisturbed import evaluated

        cache = DynamicCache(config=self.model.config)
        tokens = torch.ones(1, 2, dtype=torch.int64, device=self.model.device)
        with evaluated(self.model), torch.no_grad():
            self.model(tokens, **{str(self.cache_argument): cache}, use_cache=True)
        found = [slot for i, layer in enumerate(cache.layers) for slot in _of_layer(i, layer)]
        if not found:
            raise UnsupportedError(f"{type(self.model).__name__} keeps nothing in a cache: leave out cache=True")
        return found

    @cached_property
    def step(self) -> torch.nn.Module:
        """The module that is exported; its state dict is the model's."""
        import torch

        outer = self

        class Step(torch.nn.Module):
            def forward(self, input_ids: Any, attention_mask: Any, past: Sequence[Any]) -> tuple[Any, ...]:
                return outer.called(input_ids, attention_mask, past)

        made = Step()
        for table in ("_modules", "_parameters", "_buffers", "_non_persistent_buffers_set"):
            made.__dict__[table] = self.model.__dict__[table]
        return made

    def called(self, input_ids: Any, attention_mask: Any, past: Sequence[Any]) -> tuple[Any, ...]:
        """The logits and the new cache."""
        cache = _filled(self.model.config, self.slots, past)
        more = {}
        if attention_mask is not None:
            more["attention_mask"] = attention_mask
        if self.has_positions:  # as `generate` counts them, so that texts may be padded on the left
            places = (attention_mask.long().cumsum(-1) - 1).masked_fill(attention_mask == 0, 0)
            more["position_ids"] = places[:, -input_ids.shape[1] :]
        logits = self.model(input_ids, **{str(self.cache_argument): cache}, **more, use_cache=True).logits
        return logits, *(_read(cache.layers[slot.layer], slot.kind) for slot in self.slots)

    @property
    def input_names(self) -> list[str]:
        mask = ["attention_mask"] if self.has_mask else []
        return ["input_ids", *mask, *(f"past_key_values.{slot.name}" for slot in self.slots)]

    @property
    def output_names(self) -> list[str]:
        return ["logits", *(f"present.{slot.name}" for slot in self.slots)]

    @property
    def dynamic(self) -> Dynamic:
        opened = {"input_ids": {0: BATCH} if self.is_recurrent else {0: BATCH, 1: LENGTH}}
        if self.has_mask:
            opened["attention_mask"] = {0: BATCH, 1: TOTAL}
        for slot in self.slots:
            axes = {len(slot.shape) - 1: PAST} if slot.kind in ATTENTION else {}
            opened[f"past_key_values.{slot.name}"] = {0: BATCH, **axes}
        return opened

    def examples(self) -> Iterator[tuple[Any, ...]]:
        """Arguments of the step."""
        import torch

        device, drawn = self.model.device, torch.Generator().manual_seed(0)
        vocabulary = self.model.config.get_text_config().vocab_size
        for batch, length, past in SIZES:
            length = 1 if self.is_recurrent else length
            tokens = torch.randint(0, vocabulary, (batch, length), generator=drawn).to(device)
            mask = torch.ones(batch, past + length, dtype=torch.int64, device=device) if self.has_mask else None
            yield tokens, mask, [slot.example(batch, past, drawn).to(device) for slot in self.slots]

    def data(self) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """The same by the names of inputs, to compare on: what is made up has no mask that fits the cache."""
        from onward.backends.torch.values import to_numpy

        for tokens, mask, past in self.examples():
            values = [tokens, *([] if mask is None else [mask]), *past]
            yield {name: np.asarray(to_numpy(value)) for name, value in zip(self.input_names, values, strict=True)}


def _refuse_others(model: Any) -> None:
    """Raise unless it is a causal language model; told without an import of transformers."""
    packages = {kind.__module__.partition(".")[0] for kind in type(model).__mro__}
    if "transformers" not in packages or not hasattr(model, "config"):
        raise OnwardError("cache=True takes a causal language model of transformers: give the cache of others in args")
    if model.config.is_encoder_decoder or not hasattr(model, "generate"):
        raise UnsupportedError(f"{type(model).__name__} is no causal language model with a cache: leave out cache=True")


def _of_layer(index: int, layer: Any) -> Iterator[Slot]:
    found = {kind: _read(layer, kind) for kind in (*ATTENTION, *STATES)}
    held = {kind: tensor for kind, tensor in found.items() if tensor is not None}
    if not (held.keys() <= {*ATTENTION} or held.keys() <= STATES.keys()):
        raise UnsupportedError("layers with attention and a state are not supported: leave out cache=True")
    for kind, tensor in held.items():
        yield Slot(index, kind, tuple(tensor.shape[1:]), tensor.dtype)


def _read(layer: Any, kind: str) -> Any:
    if kind in ATTENTION:
        return getattr(layer, f"{kind}s", None)
    states = getattr(layer, STATES[kind], None)
    if not states:
        return None
    known = {place: state for place, state in states.items() if state is not None}
    if len(known) > 1:
        raise UnsupportedError("several states of a kind in one layer are not supported: leave out cache=True")
    return next(iter(known.values()), None)


def _filled(config: Any, slots: Sequence[Slot], past: Sequence[Any]) -> Any:
    """A cache that holds these tensors. Layers with a window keep all tokens: what lies before it is masked."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer

    class Past(DynamicLayer):  # type: ignore[misc]
        def get_seq_length(self) -> int:
            length: int = self.keys.shape[-2]
            return length

    cache = DynamicCache(config=config)
    for slot, tensor in zip(slots, past, strict=True):
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
