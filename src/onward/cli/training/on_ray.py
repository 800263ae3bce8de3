"""`onward train run --on ray`: what of the command's files goes to a cluster, and what comes back."""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from onward.errors import InvalidDataError, OnwardError
from onward.gate import ordinary

if TYPE_CHECKING:
    from onward.training.parallel.on_ray import Desk
    from onward.training.parallel.workers import Reduce

Files = dict[str, dict[str, bytes]]
"""Of each folder that a worker writes to: the bytes of files by their names."""


def on_cluster(args: argparse.Namespace, checkpoint: Path, work: Callable[..., tuple[int, str]]) -> tuple[int, str]:
    """Train on a Ray cluster, where each worker does `work`, and write here what worker 0 has written there."""
    from onward.training.parallel.on_ray import on_ray

    if args.workers is None:
        raise OnwardError(f"--on {args.on}: say with --workers how many workers train")
    if args.tensorboard:
        raise OnwardError("--tensorboard is written by the machine that trains: with --on, plot the .csv file instead")
    files, given = _sent(args)
    try:
        code, said, written = on_ray(
            partial(_worked, work, given),
            args.workers,
            args.on,
            args.storage,
            files=files,
            kept=Path(args.out).with_suffix(".ray"),
            start=checkpoint if args.resume and checkpoint.exists() else None,
            resume=args.resume,
            restarts=args.restarts,
            timeout=args.worker_timeout,
            tell=lambda message: print(message, file=sys.stderr, flush=True),
        )
    except KeyboardInterrupt:
        return 130, f"{args.out}: interrupted: --resume goes on from the last checkpoint"
    _bring(written, {"out": args.out, "trainable": args.save_trainable, "checkpoint": checkpoint})
    return code, f"{args.out}{said}"


def _sent(args: argparse.Namespace) -> tuple[dict[str, Path], argparse.Namespace]:
    """Files by their names in a worker's folder, and the options as they are there."""
    from onward.model import load

    model = Path(args.model)
    files = {f"model/{model.name}": model}
    for path in load(model).data_files:
        files[f"model/{path.relative_to(model.absolute().parent).as_posix()}"] = path
    given = copy.copy(args)
    given.model = f"model/{model.name}"
    for name in ("data", "val"):
        if path := getattr(args, name):
            files[f"{name}.npz"] = ordinary(Path(path), InvalidDataError)
            setattr(given, name, f"{name}.npz")
    given.plugin = []
    for number, plugin in enumerate(args.plugin):
        is_file = Path(plugin).is_file()
        given.plugin.append(f"plugin{number}/{Path(plugin).name}" if is_file else plugin)
        if is_file:
            files[given.plugin[-1]] = Path(plugin)
    given.out = f"out/{Path(args.out).name}"
    given.save_trainable = args.save_trainable and f"trainable/{Path(args.save_trainable).name}"
    given.resume = True
    return files, given


def _worked(
    work: Callable[..., tuple[int, str]], args: argparse.Namespace, reduce: Reduce, desk: Desk
) -> tuple[int, str, Files]:
    """What a worker does: the command, in its folder."""
    from onward.training.runtime.callbacks import Lines

    given = copy.copy(args)
    for name in ("model", "data", "val", "out", "save_trainable"):
        if getattr(args, name):
            setattr(given, name, str(desk.folder / getattr(args, name)))
    given.plugin = [str(desk.folder / name) if (desk.folder / name).is_file() else name for name in args.plugin]
    given.checkpoint, given.quiet = str(desk.checkpoint), True
    outs = [desk.folder / "out", desk.folder / "trainable"]
    for path in outs:
        path.mkdir()
    lines = [] if args.quiet else [Lines(args.epochs, desk.tell)]
    code, said = work(given, reduce, lines, desk.saved)
    if reduce.rank:
        return code, "", {}
    outs.append(desk.checkpoint.parent)
    written = {path.name: {file.name: file.read_bytes() for file in path.iterdir()} for path in outs}
    return code, said.removeprefix(given.out), written


def _bring(written: Files, places: Mapping[str, str | Path | None]) -> None:
    """Write to each place what was written for it."""
    from onward.writing import new_file, new_files

    for name, place in places.items():
        files = written.get(name, {})
        if place is None or not files:
            continue
        if name == "checkpoint":
            with new_file(place, durable=True) as file:
                file.write(files["state"])
            continue
        with new_files(Path(place).parent, list(files), durable=True) as folder:
            for each, data in files.items():
                (folder / each).write_bytes(data)
