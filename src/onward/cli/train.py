"""`onward train`: make a model trainable, train it on ONNX Runtime, see what a trainable file holds."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.cli.plugins import add_plugins
from onward.cli.streams import output
from onward.cli.training import export as train_export
from onward.cli.training import run as train_run
from onward.cli.training import verify as train_verify
from onward.cli.training.run import check_out
from onward.cli.trust import add_trust
from onward.errors import OnwardError

if TYPE_CHECKING:
    from rich.console import Console

    from onward.training.trainable import Trainable

Commands = Any
EPILOG = """examples:
  onward train prepare model.onnx --loss cross_entropy --optimizer adamw --lr 1e-3 --out trainable.onnx
  onward train inspect trainable.onnx
  onward train run trainable.onnx --data train.npz --val val.npz --epochs 3 --batch 64 --out tuned.onnx
  onward train export trainable.onnx --to torch --out net/
  onward train verify trainable.onnx --on onnxruntime,torch,jax"""
PREPARE = """examples:
  onward train prepare model.onnx --trainable "head.*" --out trainable.onnx          fine-tune a part
  onward train prepare model.onnx --loss mse --optimizer sgd --set momentum=0.9 --lr 0.1 --out trainable.onnx
  onward train prepare model.onnx --lora rank=8 --out trainable.onnx                 train low-rank adapters
  onward train prepare model.onnx --scratch --out trainable.onnx                     start from random weights
  onward train prepare net.keras --out trainable.onnx                                as the model was compiled

losses: cross_entropy, nll, causal_lm, bce_with_logits, mse, l1, huber, kl, ctc
optimizers: sgd, momentum, nesterov, adagrad, rmsprop, adam, adamw, adafactor, muon, lamb"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "train",
        help="make a model trainable, and train it on ONNX Runtime",
        description="Make a model trainable, and train it on plain ONNX Runtime.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = command.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_prepare(actions)
    train_run.add(actions)
    _add_inspect(actions)
    train_export.add(actions)
    train_verify.add(actions)


def _action(actions: Commands, name: str, run: Callable[[argparse.Namespace], int], **texts: str) -> Any:
    made = actions.add_parser(name, formatter_class=argparse.RawDescriptionHelpFormatter, **texts)
    made.set_defaults(run=run)
    add_plugins(made)
    return made


def _add_prepare(actions: Commands) -> None:
    command = _action(
        actions,
        "prepare",
        prepare,
        help="add a loss and an optimizer to a model",
        description="Write a model with its training step beside it: a valid ONNX file that still runs as it did.",
        epilog=PREPARE,
    )
    command.add_argument("model", help="the .onnx file, or a Keras file with the loss and the optimizer in it")
    command.add_argument("--out", required=True, metavar="FILE", help="the trainable .onnx file to write")
    add_trust(command)
    command.add_argument("--loss", help="choose the loss: a name, or an .onnx file (default: cross_entropy)")
    command.add_argument("--optimizer", help="choose the optimizer: a name, or an .onnx file (default: adamw)")
    command.add_argument("--lr", type=float, help="set the learning rate (default: the optimizer's own)")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set an option of the optimizer, such as weight_decay=0.1 (repeatable)",
    )
    command.add_argument(
        "--set-loss",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set an option of the loss, such as label_smoothing=0.1 (repeatable)",
    )
    command.add_argument(
        "--sample-weight", action="store_true", help="weight each sample by an input of that name, sample_weight"
    )
    command.add_argument(
        "--class-weight",
        action="append",
        default=[],
        metavar="CLASS=WEIGHT",
        help="for a Keras file: weight the samples of a class, as fit does (repeatable)",
    )
    command.add_argument(
        "--output", metavar="NAME", help="choose the output that the loss is computed from (default: the first)"
    )
    command.add_argument(
        "--trainable",
        action="append",
        metavar="PATTERN",
        help='train only weights whose name matches, such as "head.*" (repeatable)',
    )
    command.add_argument(
        "--lora",
        metavar="rank=N",
        help="train adapters of this rank: merged into matrices at the end, or kept beside quantised ones",
    )
    command.add_argument(
        "--no-train-mode", action="store_true", help="leave dropout off and running statistics as they are"
    )
    steps = command.add_argument_group("steps")
    steps.add_argument("--clip-norm", type=float, metavar="X", help="limit the norm of all gradients together")
    steps.add_argument("--clip-value", type=float, metavar="X", help="limit each element of a gradient")
    steps.add_argument(
        "--accumulate", type=int, default=1, metavar="N", help="add up the gradients of N batches for one step"
    )
    steps.add_argument("--average", type=float, metavar="X", help="keep a moving average of the weights, such as 0.999")
    steps.add_argument(
        "--no-decay",
        action="append",
        metavar="PATTERN",
        help='leave weights whose name matches, or all "vectors", without weight decay (repeatable)',
    )
    steps.add_argument(
        "--schedule",
        metavar="NAME:OPTIONS",
        help="change the learning rate over time: cosine:steps=1000,warmup=100, steps or linear",
    )
    steps.add_argument(
        "--mixed-precision", metavar="DTYPE", help="compute in float16 or bfloat16 where there are kernels"
    )
    form = command.add_argument_group("file")
    form.add_argument("--scratch", action="store_true", help="start from random weights")
    form.add_argument("--symbolic", action="store_true", help="keep Gradient and the standard's optimizers as ops")
    form.add_argument(
        "--dense-gradients",
        action="store_true",
        help="for a Keras file: add up the gradients of an embedding's rows before the optimizer, as PyTorch does",
    )


OWN = frozenset(
    [
        "loss",
        "optimizer",
        "lr",
        "set",
        "set_loss",
        "output",
        "trainable",
        "lora",
        "no_train_mode",
        "clip_norm",
        "clip_value",
        "average",
        "no_decay",
        "schedule",
        "mixed_precision",
    ]
)
"""What a compiled Keras model says itself."""


def prepare(args: argparse.Namespace) -> int:
    from onward.formats.keras import recognise
    from onward.training.recipe.wide_floats import before

    check_out(args.out)
    trainable = _of_keras(args) if recognise(Path(args.model)) else _of_onnx(args)
    trainable.save(args.out, symbolic=args.symbolic, scratch=args.scratch)
    count = sum(array.size for array in trainable.parameters.values())
    print(
        f"{args.out}: {len(trainable.parameters)} weights, {count:,} numbers, are trained; labels: {_labels(trainable)}"
    )
    if were := before(trainable.original.ir):
        dtypes = " and ".join(sorted(set(were.values())))
        print(
            f"{len(were)} weights of {dtypes} became float32, to be trained in small steps: "
            "`onward train run --narrow-weights` stores them so again"
        )
    return 0


def _of_keras(args: argparse.Namespace) -> Trainable:
    from onward.backends.backend import backend, require
    from onward.exporters import from_keras

    given = [name for name in sorted(OWN) if getattr(args, name)] + (["accumulate"] if args.accumulate != 1 else [])
    if given:
        option = given[0].replace("_", "-")
        raise OnwardError(
            f"--{option} is for .onnx files: a Keras file has the loss and the optimizer it was saved with"
        )
    require(backend("keras"))
    return from_keras(
        args.model,
        training=True,
        dense_gradients=args.dense_gradients,
        sample_weight=args.sample_weight,
        class_weight=_class_weight(args.class_weight),
    )


def _class_weight(pairs: list[str]) -> dict[int, float]:
    """`1=5.0` as {1: 5.0}."""
    try:
        return {int(name): float(value) for name, value in options(pairs, "--class-weight").items()}
    except (TypeError, ValueError) as error:
        raise OnwardError("--class-weight: write it as CLASS=WEIGHT, two numbers, such as 1=5.0") from error


def _of_onnx(args: argparse.Namespace) -> Trainable:
    from onward.training.recipe.adapters import lora
    from onward.training.recipe.losses import loss_named
    from onward.training.recipe.optimizer_names import optimizer_named
    from onward.training.trainable import prepare as made

    how = options(args.set, "--set") | ({} if args.lr is None else {"lr": args.lr})
    wanted = options(args.set_loss, "--set-loss") | ({"sample_weight": "sample_weight"} if args.sample_weight else {})
    named, wish = args.optimizer or "adamw", args.loss or "cross_entropy"
    optimizer = named if is_file(named, how, "--set") else optimizer_named(named, **how)
    loss = wish if is_file(wish, wanted, "--set-loss") else loss_named(wish, **wanted)
    if args.dense_gradients:
        raise OnwardError("--dense-gradients is for Keras files")
    if args.class_weight:
        raise OnwardError("--class-weight is for Keras files: use --set-loss weight=[…]")
    return made(
        args.model,
        loss,
        optimizer,
        args.trainable,
        output=args.output,
        train_mode=not args.no_train_mode,
        clip_norm=args.clip_norm,
        clip_value=args.clip_value,
        accumulate=args.accumulate,
        average=args.average,
        no_decay="vectors" if args.no_decay == ["vectors"] else args.no_decay or (),
        schedule=schedule(args.schedule) if args.schedule else None,
        lora=lora(**_lora(args.lora)) if args.lora else None,
        mixed_precision=args.mixed_precision,
    )


def _labels(trainable: Trainable) -> str:
    return ", ".join(trainable.labels) or "none"


def is_file(name: str, given: dict[str, Any], option: str) -> bool:
    """Whether a loss or an optimizer is a model of the user's, which has no options."""
    if name.endswith(".onnx") and given:
        raise OnwardError(f"{option}: {name} is a model, and has no options")
    return name.endswith(".onnx")


def options(pairs: list[str], where: str) -> dict[str, Any]:
    """`momentum=0.9` as {"momentum": 0.9}."""
    found: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not name or not equals:
            raise OnwardError(f"{where} {pair}: write it as NAME=VALUE")
        try:
            value = json.loads(text.lower() if text in ("True", "False") else text)
        except ValueError:
            value = text
        found[name.replace("-", "_")] = tuple(value) if isinstance(value, list) else value
    return found


def schedule(text: str) -> Any:
    from onward.training.recipe.schedules import schedule_named

    name, _, rest = text.partition(":")
    return schedule_named(name, **options(rest.split(",") if rest else [], "--schedule"))


def _lora(text: str) -> dict[str, Any]:
    found = options(text.split(","), "--lora")
    if unknown := found.keys() - {"rank", "alpha", "patterns", "seed"}:
        raise OnwardError(f"--lora has no option {sorted(unknown)[0]!r}; it has rank, alpha, patterns, seed")
    return found


def _add_inspect(actions: Commands) -> None:
    command = _action(
        actions,
        "inspect",
        inspect,
        help="show what a trainable file holds, or whether a model could be trained",
        description="Show what is trained, the loss, the optimizer, what a step updates, and which ops have gradients.",
        epilog="example: onward train inspect trainable.onnx --json",
    )
    command.add_argument("model", help="an .onnx file, trainable or not")
    command.add_argument("--json", action="store_true", help="print one JSON object")


def inspect(args: argparse.Namespace) -> int:

    found = described(args.model)
    if args.json:
        print(json.dumps(found, indent=2))
    else:
        show(found, output())
    return 0


def described(path: str) -> dict[str, Any]:
    """A trainable file, or a model as it is, in plain words and numbers."""
    from onward.canon.lower import key_of
    from onward.graph.walk import all_nodes
    from onward.model import load
    from onward.training.autodiff.coverage import gradient_status
    from onward.training.info.read import load as load_trainable
    from onward.training.recipe.facts import facts

    model = load(path)
    ops = {key_of(node) for node in all_nodes(model.ir.graph)} - {"Constant"}
    found: dict[str, Any] = {
        "file": str(path),
        "trainable": bool(model.training_info),
        "ops": {op: str(gradient_status(op)) for op in sorted(ops)},
    }
    if not model.training_info:
        return found
    trainable = load_trainable(model)
    names = {**trainable.parameters, **trainable.buffers, **trainable.state}
    return found | {
        "optimizer": {
            "name": trainable.optimizer.name,
            "about": str(trainable.optimizer),
            "lr": trainable.optimizer.lr,
        },
        "steps": trainable.step,
        "inputs": [v.name for v in trainable.gradients.graph.inputs if v.name not in (*names, *trainable.labels)],
        "labels": list(trainable.labels),
        "loss": loss_of(trainable),
        "facts": facts(trainable),
        "parameters": {name: list(array.shape) for name, array in trainable.parameters.items()},
        "buffers": {name: list(array.shape) for name, array in trainable.buffers.items()},
        "state": list(trainable.state),
        "clip_norm": trainable.clip_norm,
        "accumulate": trainable.accumulate,
        "schedule": str(trainable.schedule) if trainable.schedule else None,
        "bindings": [
            {
                "initialization": {entry.key: entry.value for entry in info.initialization_binding},
                "update": {entry.key: entry.value for entry in info.update_binding},
            }
            for info in model.training_info
        ],
    }


def loss_of(trainable: Trainable) -> str:
    """The loss in words, or, if it is known as a graph only, the ops that were put behind the model."""
    from onward.training.autodiff.derivatives import named
    from onward.training.recipe.described import loss_words, penalty_words
    from onward.training.runtime.divergence import before
    from onward.training.step_graphs import LOSS

    if trainable.loss is not None:
        return " + ".join([*map(loss_words, trainable.loss), *map(penalty_words, trainable.penalties)])
    nodes = before(named(trainable.gradients.graph, LOSS))
    return " → ".join(node.op_type for node in nodes if (node.name or "").startswith("loss/"))


def show(found: dict[str, Any], console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    from onward.report.wording import printable

    def say(*words: str) -> None:
        console.print(Text(printable(" ".join(words), 1000)), soft_wrap=True)

    say(found["file"])
    if found["trainable"]:
        count = sum(_size(shape) for shape in found["parameters"].values())
        say(f"trained: {len(found['parameters'])} weights, {count:,} numbers")
        table = Table("weight", "shape", box=None)
        for name, shape in found["parameters"].items():
            table.add_row(Text(printable(name, 100)), "×".join(map(str, shape)) or "1")
        console.print(table)
        if found["buffers"]:
            say(f"running statistics: {', '.join(found['buffers'])}")
        say(f"a step takes {', '.join(found['inputs'])}; labels: {', '.join(found['labels']) or 'none'}")
        lines = {"loss": found["loss"], **found["facts"], "steps made": str(found["steps"])}
        for name, words in lines.items():
            if words and name != "weights":
                say(f"{name}: {words}")
        for number, bound in enumerate(found["bindings"]):
            say(
                f"training info {number}: {len(bound['update'])} values are updated by a step,",
                f"{len(bound['initialization'])} are initialized",
            )
    else:
        say("no training information: onward train prepare adds it")
    missing = [op for op, status in found["ops"].items() if status.startswith("missing")]
    table = Table("op", "gradient", box=None)
    for op, status in found["ops"].items():
        table.add_row(Text(printable(op, 100)), Text(status))
    console.print(table)
    say(
        f"without a gradient rule: {', '.join(missing)}" if missing else "every op is differentiated where it has to be"
    )


def _size(shape: list[int]) -> int:
    size = 1
    for length in shape:
        size *= length
    return size
