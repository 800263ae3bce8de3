"""Training goes on in PyTorch: a package of model, loss, optimizer with its state, and a training loop as source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from onward.backends.backend import backend
from onward.backends.torch.convert import RUNTIME
from onward.training.export.plan import planned, write
from onward.training.export.torch.classes import OWN
from onward.training.export.torch.script import Script
from onward.training.export.torch.words import OPTIMIZERS

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable


def to_torch_package(trainable: Trainable | Trainer, out: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a package as `onward convert` does, with a `train.py` that goes on where the training is.

    `trainable` is prepared or was read from a file; a trainer is taken as it is now. The package holds model.py, the
    weights, ops.py if it is needed, train.py, progress.json and, once a step was made, optimizer.safetensors and
    average.safetensors. Adapters are merged in the weights, and apart in adapters.safetensors. `force` writes over
    files that were edited, or trained, since Onward wrote them.
    """
    torch = backend("torch")
    source, script, files = planned(trainable, torch, [*OPTIMIZERS, *OWN], Script, torch)
    source = script.modules.with_helpers(source, RUNTIME, "Functions that PyTorch itself does not have.")
    return write(source, script, script.text(), files, out, force=force)
