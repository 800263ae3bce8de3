"""Training goes on in PyTorch: a package of model, loss, optimizer with its state, and a training loop as source."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from onward.training.export.plan import planned, write
from onward.training.export.state import NotInWords
from onward.training.export.torch.classes import OWN
from onward.training.export.torch.script import Script
from onward.training.export.torch.whole_step import target
from onward.training.export.torch.words import OPTIMIZERS
from onward.training.export.whole_step import write_whole_step

if TYPE_CHECKING:
    from onward.training.runtime.trainer import Trainer
    from onward.training.trainable import Trainable


def to_torch_package(trainable: Trainable | Trainer, out: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Write a package as `onward convert` does, with a `train.py` that goes on where the training is.

    `trainable` is prepared or was read from a file; a trainer is taken as it is now. The package holds model.py, the
    weights, ops.py if it is needed, train.py, progress.json and, once a step was made, optimizer.safetensors and
    average.safetensors. Adapters are merged in the weights, and apart in adapters.safetensors. Of a training that
    PyTorch has no words for, the graphs are converted, train.py calls them, and README.md says so. `force` writes over
    files that were edited, or trained, since Onward wrote them.
    """
    to = target()
    try:
        source, script, files = planned(trainable, to.model, [*OPTIMIZERS, *OWN], Script, to.graphs)
        text = script.text()
    except NotInWords as why:
        return write_whole_step(trainable, to, str(why), out, force=force)
    source = script.modules.with_helpers(source, to.runtime, to.about)
    return write(source, script, text, files, out, force=force)
