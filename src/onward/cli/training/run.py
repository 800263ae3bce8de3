"""`onward train run`: train on ONNX Runtime, in one process or in several."""

from __future__ import annotations

import argparse
import copy
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from onward.cli.plugins import add_plugins
from onward.errors import OnwardError

if TYPE_CHECKING:
    from onward.training.parallel.workers import Reduce
    from onward.training.runtime.callbacks import Callback
    from onward.training.runtime.history import History

EXAMPLES = """examples:
  onward train run trainable.onnx --data train.npz --epochs 3 --out tuned.onnx
  onward train run trainable.onnx --data train.npz --val val.npz --epochs 50 --patience 5 --out tuned.onnx
  onward train run trainable.onnx --data train.npz --epochs 3 --out tuned.onnx --resume     go on after a break
  onward train run trainable.onnx --data test.npz --mode inference                          loss and accuracy, no step
  onward train run trainable.onnx --data train.npz --epochs 3 --out tuned.onnx --workers 4  in four processes
  torchrun --nnodes 2 --nproc-per-node 4 … -m onward train run trainable.onnx …            on two machines
  onward train run … --workers 8 --on ray://head:10001 --storage s3://bucket/run            on a Ray cluster

The .npz files hold an array for each input of the model and for the labels, samples along the first axis. Beside
tuned.onnx come tuned.csv and tuned.svg, the curve, and tuned.checkpoint, from which --resume goes on.

exit codes: 0 trained, 2 bad input or a loss that is not a number, 130 interrupted (Ctrl-C saves what was trained)"""
RESTARTS = 3


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "run",
        help="train a trainable file on ONNX Runtime",
        description="Train a model that `onward train prepare` made, or any ONNX file with training information.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    add_plugins(command)
    command.add_argument("model", help="the trainable .onnx file")
    command.add_argument("--data", required=True, metavar="NPZ", help="train on these arrays")
    command.add_argument(
        "--mode",
        choices=["training", "inference", "both"],
        default="training",
        help="training: make steps (default); inference: only evaluate --data, without dropout and with running "
        "statistics; both: make steps, and evaluate --data so after each epoch, unless --val is given",
    )
    command.add_argument("--val", metavar="NPZ", help="evaluate on these arrays after each epoch")
    command.add_argument("--epochs", type=int, default=1)
    command.add_argument("--batch", type=int, default=32, help="samples in each step, of all workers (default: 32)")
    command.add_argument("--drop-last", action="store_true", help="skip a smaller batch at the end of an epoch")
    command.add_argument("--out", metavar="FILE", help="the .onnx file to write, for inference; needed to train")
    command.add_argument(
        "--save-trainable", metavar="FILE", help="write the trainable file too, with the state at the end"
    )
    command.add_argument("--averaged", action="store_true", help="write the moving average of the weights to --out")
    command.add_argument(
        "--narrow-weights",
        action="store_true",
        help="store weights in --out in the dtype that they had before they became float32 to be trained",
    )
    command.add_argument("--lr", type=float, help="replace the learning rate of the file")
    command.add_argument("--seed", type=int, default=0, help="choose the order of the data and the dropout")
    command.add_argument(
        "--recompute",
        metavar="HOW",
        help='hold less and compute it anew on the way back: "layers", "sqrt", or a pattern of names that end a part',
    )
    command.add_argument(
        "--stash",
        metavar="DTYPE",
        help="hold values for the way back in half their size, as bfloat16: gradients are rounded, losses are not",
    )
    command.add_argument(
        "--threads", type=int, help="limit the threads of ONNX Runtime (default: all cores, divided among the workers)"
    )
    command.add_argument("--patience", type=int, metavar="N", help="stop after N evaluations without a lower loss")
    command.add_argument(
        "--checkpoint", metavar="FILE", help="keep the state of the run in this file (default: beside --out)"
    )
    command.add_argument(
        "--every", type=int, metavar="N", help="write the checkpoint every N batches, not only after epochs"
    )
    command.add_argument("--resume", action="store_true", help="go on from the checkpoint, if there is one")
    command.add_argument("--initialize", action="store_true", help="start with the file's initialization")
    command.add_argument("--index", type=int, metavar="N", help="choose the training info, if the file has several")
    command.add_argument("--quiet", action="store_true", help="hide the progress bar, or the line of each epoch")
    command.add_argument("--tensorboard", metavar="FOLDER", help="write the curves there as TensorBoard reads them")
    workers = command.add_argument_group("several processes")
    workers.add_argument(
        "--workers", type=int, metavar="N", help="train in N processes together, of this machine or of --on"
    )
    workers.add_argument(
        "--on",
        metavar="PLACE",
        help="train on a Ray cluster: ray (one that runs on this machine, else a new one), ray://local (a new one), or"
        " ray://HOST:PORT",
    )
    workers.add_argument(
        "--storage",
        metavar="PLACE",
        help="where Ray keeps checkpoints: a folder or URI that all machines of the cluster reach (default, on this"
        " machine: beside --out)",
    )
    workers.add_argument(
        "--restarts",
        type=int,
        default=RESTARTS,
        metavar="N",
        help=f"if a worker is killed, go on from the checkpoint, at most N times (default: {RESTARTS})",
    )
    workers.add_argument(
        "--worker-timeout",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="take a worker for lost that does not answer for so long (default: 600)",
    )


def run(args: argparse.Namespace) -> int:
    from onward.training.parallel.transports import reduce_from_environment

    _check_mode(args)
    for path in filter(None, (args.out, args.save_trainable, args.checkpoint)):
        check_out(path)
    reduce = reduce_from_environment(args.worker_timeout)
    if reduce is not None and (args.workers is not None or args.on is not None):
        option = "--workers" if args.on is None else "--on"
        raise OnwardError(f"{option}: {reduce.size} processes were started already, by torchrun or mpirun")
    if args.on is not None:
        from onward.cli.training.on_ray import on_cluster

        code, said = on_cluster(args, checkpoint_of(args), worked)
    elif args.storage is not None:
        raise OnwardError("--storage is for a Ray cluster: say with --on where it is")
    else:
        code, said = trained(args, reduce) if args.workers is None else _on_workers(args)
    if reduce is not None:
        reduce.end()
    if said:
        print(said)
    return code


def _check_mode(args: argparse.Namespace) -> None:
    """Refuse options that the mode has no use for."""
    if args.mode != "inference":
        if args.out is None:
            raise OnwardError("say with --out where to write what is trained; --mode inference only evaluates")
        return
    written = ("out", "save_trainable", "averaged", "narrow_weights", "checkpoint", "every")
    for_training = (*written, "val", "patience", "resume", "lr")
    for_several = ("workers", "on")
    if given := [name for name in for_training + for_several if getattr(args, name)]:
        raise OnwardError(f"--{given[0].replace('_', '-')} is for training: --mode inference makes no steps")


def _on_workers(args: argparse.Namespace) -> tuple[int, str]:
    from onward.training.parallel.launch import on_workers

    before = _stamp(checkpoint_of(args))

    def again() -> partial[tuple[int, str]]:
        """From the checkpoint, if it is one of this run."""
        changed = copy.copy(args)
        changed.resume = args.resume or _stamp(checkpoint_of(args)) != before
        return partial(worked, changed)

    return on_workers(
        partial(worked, args),
        args.workers,
        restarts=args.restarts,
        again=again,
        timeout=args.worker_timeout,
        tell=lambda message: print(f"onward: {message}", file=sys.stderr),
    )


def _stamp(path: Path) -> tuple[int, int] | None:
    """What is another for every file that was at a path."""
    found = path.stat() if path.exists() else None
    return None if found is None else (found.st_ino, found.st_mtime_ns)


def checkpoint_of(args: argparse.Namespace) -> Path:
    return Path(args.checkpoint or Path(args.out).with_suffix(".checkpoint"))


def worked(
    args: argparse.Namespace,
    reduce: Reduce,
    callbacks: Sequence[Callback] = (),
    saved: Callable[[Path], None] = lambda path: None,
) -> tuple[int, str]:
    """What a process that is started for it does; `saved` is told of each checkpoint."""
    if args.plugin:
        from onward.plugins.find import load

        load(*args.plugin)
    return trained(args, reduce, callbacks, saved)


def trained(
    args: argparse.Namespace,
    reduce: Reduce | None,
    callbacks: Sequence[Callback] = (),
    saved: Callable[[Path], None] = lambda path: None,
) -> tuple[int, str]:
    """The exit code and the line about the run, which only worker 0 has."""
    from onward.training.info.read import load
    from onward.training.parallel.transports import workers_here
    from onward.training.recipe.narrow_weights import check_narrow
    from onward.training.runtime.tensorboard import TensorBoard
    from onward.training.runtime.trainer import Trainer, npz

    threads = args.threads
    if threads is None and reduce is not None:
        threads = max(1, (os.cpu_count() or 1) // workers_here(reduce.size))
    data, val = npz(args.data), npz(args.val) if args.val else None
    if args.mode == "both" and val is None:
        val = data
    trainable = load(args.model, index=args.index, initialize=args.initialize)
    if args.averaged:
        trainable.average()
    if args.narrow_weights:
        check_narrow(trainable.original)
    trainer = Trainer(
        trainable,
        lr=args.lr,
        threads=threads,
        seed=args.seed,
        reduce=reduce,
        recompute=args.recompute,
        stash=args.stash,
    )
    if args.mode == "inference":
        found = trainer.evaluate(data, args.batch)
        said = ", ".join(f"{key} {number:.4g}" for key, number in found.items())
        return 0, f"{args.model}: {said}" if trainer.workers.lead else ""
    history = trainer.fit(
        data,
        args.epochs,
        args.batch,
        val=val,
        seed=args.seed,
        drop_last=args.drop_last,
        patience=args.patience,
        checkpoint=checkpoint_of(args),
        every=args.every,
        resume=args.resume,
        progress=False if args.quiet else None,
        callbacks=[*callbacks, *([TensorBoard(args.tensorboard)] if args.tensorboard else [])],
        on_checkpoint=saved,
    )
    code = 130 if history.stopped == "interrupted" else 0
    if not trainer.workers.lead:
        return code, ""
    out = Path(args.out)
    trainer.save(out, average=args.averaged, narrow_weights=args.narrow_weights)
    if args.save_trainable:
        trainer.continued().save(args.save_trainable, durable=True)
    history.csv(out.with_suffix(".csv"))
    history.plot(out.with_suffix(".svg"))
    return code, summary(history, out)


def summary(history: History, out: Path) -> str:
    """One line about a run."""
    words = {"finished": "", "early": ", stopped early", "interrupted": ", interrupted: --resume goes on"}
    parts = [f"{len(history.losses)} batches{words[history.stopped]}"]
    if history.losses:
        first, last = (history.mean_loss(epoch) for epoch in (history.epochs[0], history.epochs[-1]))
        parts.append(f"mean loss of an epoch {first:.4g} to {last:.4g}")
    if history.evaluations:
        best = min(history.evaluations, key=lambda found: found["loss"])
        kept = best if history.stopped == "early" else history.evaluations[-1]
        parts.append(", ".join(f"val {key} {kept[key]:.4g}" for key in ("loss", "accuracy") if key in kept))
    return f"{out}: {'; '.join(parts)}"


def check_out(path: str) -> None:
    """Refuse before the work is done what could not be written after it."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise OnwardError(f"{path}: there is no folder {folder} to write to")
