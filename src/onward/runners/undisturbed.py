"""Leaves everything as it was: what a check runs, and what it draws, is not for the program around it to notice."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

Restore = Callable[[], None]


@contextmanager
def undisturbed() -> Iterator[None]:
    """The generators of random numbers of Python, numpy and the frameworks that are loaded stand where they stood."""
    with ExitStack() as stack:
        for restore in (*_python(), *_torch(), *_tensorflow()):
            stack.callback(restore)
        yield


def _python() -> Iterator[Restore]:
    drawn, own = np.random.get_state(), random.getstate()
    yield lambda: np.random.set_state(drawn)
    yield lambda: random.setstate(own)


def _torch() -> Iterator[Restore]:
    torch = sys.modules.get("torch")
    if torch is None:
        return
    state = torch.get_rng_state()
    yield lambda: torch.set_rng_state(state)
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        states = torch.cuda.get_rng_state_all()
        yield lambda: torch.cuda.set_rng_state_all(states)


def _tensorflow() -> Iterator[Restore]:
    """Seeds of ops in eager mode come from a generator of the context; `tf.random` and Keras have one more each."""
    if "tensorflow" not in sys.modules:
        return
    from tensorflow.python.eager import context
    from tensorflow.python.ops import stateful_random_ops

    drawn = getattr(context.context(), "_rng", None)
    if drawn is not None:
        seeds = drawn.getstate()
        yield lambda: drawn.setstate(seeds)
    generators = [stateful_random_ops.global_generator]
    if "keras" in sys.modules:
        from keras.src.backend.common import global_state

        generators.append(global_state.get_global_attribute("global_seed_generator"))
    yield from _variables([generator.state for generator in generators if generator is not None])


def _variables(variables: Sequence[Any]) -> Iterator[Restore]:
    for variable in variables:
        held = np.array(variable.numpy())
        yield lambda variable=variable, held=held: variable.assign(held)  # type: ignore[misc]


@contextmanager
def variables_kept(variables: Sequence[Any]) -> Iterator[None]:
    """Variables of TensorFlow or Keras hold what they held."""
    with ExitStack() as stack:
        for restore in _variables(variables):
            stack.callback(restore)
        yield


@contextmanager
def evaluated(module: torch.nn.Module) -> Iterator[None]:
    """All of a module in the mode of evaluation, without gradients; then each part has the mode and buffers it had."""
    import torch

    parts = [(part, part.training, dict(part._buffers)) for part in module.modules()]
    held = [(buffer, buffer._version, buffer.clone()) for buffer in module.buffers()]
    try:
        for part, _, _ in parts:
            part.training = False
        with torch.no_grad():
            yield
    finally:
        for part, mode, buffers in parts:
            part.training = mode
            part._buffers.update(buffers)
        with torch.no_grad():
            for buffer, version, value in held:
                if buffer._version != version:
                    buffer.copy_(value)
