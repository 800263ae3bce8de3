"""`onward plugins`: custom ops that are known, whether they are right, and how a new one begins."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from onward.errors import OnwardError

if TYPE_CHECKING:
    from onward.plugins import CustomOp, Plugin

EPILOG = """examples:
  onward plugins list --plugin mylab.py                        what is known, and in which ways
  onward plugins check mylab.py                                every way compared with every other
  onward plugins new com.acme::FancyGelu --from model.onnx     a plugin to fill in

exit codes: 0 all right, 1 a plugin contradicts itself, 2 bad input"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    command = commands.add_parser(
        "plugins",
        help="list, check and begin plugins: ops that ONNX does not define",
        description="Ops that ONNX does not define are known by plugins, each of which is one Python module.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = command.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list the plugins that are there, and what their ops have")
    add_plugins(listing)
    listing.set_defaults(run=run_list)
    checking = actions.add_parser("check", help="compare what a plugin says in one way with every other")
    checking.add_argument("names", nargs="+", metavar="plugin", help="a module, a .py file, or a domain with a plugin")
    checking.add_argument("--op", action="append", metavar="NAME", help="check only this op of it (repeatable)")
    checking.add_argument("--seed", type=int, default=0, help="choose the random data")
    checking.set_defaults(run=run_check)
    new = actions.add_parser("new", help="print a plugin for an op, to be filled in")
    new.add_argument("op", help="the op, as domain::Name")
    new.add_argument(
        "--from", dest="model", metavar="MODEL", help="take its inputs and attributes from a model that has it"
    )
    new.set_defaults(run=run_new)


def add_plugins(command: argparse.ArgumentParser) -> None:
    """`--plugin`, for every command that reads models."""
    command.add_argument(
        "--plugin",
        action="append",
        default=[],
        metavar="PLUGIN",
        help="load custom ops from a module or a .py file, which runs its code; what is installed for a domain of the"
        " model is loaded anyway (repeatable)",
    )


def run_list(args: argparse.Namespace) -> int:
    from onward.plugins.find import installed, load, loaded

    for domain in installed():
        load(domain)
    for plugin in loaded():
        print(plugin)
        for op in plugin.ops:
            print(f"  {op.key}-{op.version}: {', '.join(ways(op))}")
    return 0


def ways(op: CustomOp) -> list[str]:
    """What a plugin has of an op."""
    on_runtime = "body" if op.functions else "library" if op.libraries else ""
    known = ["numpy" if op.reference else "", on_runtime, *sorted(op.sources.keys() | op.rules.keys())]
    known.append("gradient" if op.gradient or op.functions else "no gradient" if op.without_gradient else "")
    frameworks = (("torch", op.torch_names), ("tensorflow", op.tensorflow_names))
    return [word for word in known if word] + [f"from {one} {name}" for one, names in frameworks for name in names]


def run_check(args: argparse.Namespace) -> int:
    from onward.plugins.check import check
    from onward.plugins.find import load

    wrong = 0
    for plugin in load(*args.names):
        for finding in check(_chosen(plugin, args.op), args.seed):
            print(finding, flush=True)
            wrong += finding.ok is False
    return 1 if wrong else 0


def _chosen(plugin: Plugin, names: list[str] | None) -> list[CustomOp]:
    if not names:
        return plugin.ops
    if unknown := set(names) - {name for op in plugin.ops for name in (op.name, op.key)}:
        raise OnwardError(f"{plugin.name} has no op {min(unknown)!r}; it has {', '.join(op.name for op in plugin.ops)}")
    return [op for op in plugin.ops if op.name in names or op.key in names]


def run_new(args: argparse.Namespace) -> int:
    from onward.model import load
    from onward.plugins.skeleton import skeleton

    print(skeleton(args.op, None if args.model is None else load(args.model)), end="")
    return 0
