"""What a model of a framework leaves open, for every command that reads one."""

from __future__ import annotations

import argparse
from typing import Any


def add_source(command: argparse.ArgumentParser) -> None:
    source = command.add_argument_group("what the source leaves open")
    source.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="SPEC",
        help='declare an input that the model leaves open: "x:float32[batch,3,224,224]"; for a TensorFlow graph a '
        "name is enough (repeatable)",
    )
    source.add_argument(
        "--output", action="append", metavar="NAME", help="name an output of a TensorFlow graph (repeatable)"
    )
    source.add_argument(
        "--spec",
        action="append",
        default=[],
        metavar="SPEC",
        help='say what a function of JAX takes, one for each input in order: "f32[b,224,224,3]", a size may be a name'
        " (repeatable)",
    )
    source.add_argument(
        "--params",
        metavar="FILE",
        help="give the first argument of a function of JAX, a tree of weights, from a .safetensors or .npz file; dots"
        " in names are levels",
    )
    source.add_argument(
        "--sample",
        metavar="DATA",
        help="give rows of data for scikit-learn, and for functions on data frames, in a .csv, .feather, .parquet,"
        " .npy or .npz file",
    )
    add_library(source)
    source.add_argument(
        "--checkpoint", metavar="PATH", help="read the variables of a TensorFlow graph that is not frozen from here"
    )
    source.add_argument("--signature", metavar="NAME", help="choose the function of a SavedModel or tflite file")
    source.add_argument(
        "--cache",
        action="store_true",
        help="convert a language model of transformers as one step of decoding, with its cache as inputs and outputs",
    )


def add_library(command: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    command.add_argument(
        "--library",
        choices=["pandas", "polars", "narwhals"],
        help="choose what reads the sample of a function on data frames (default: what the function is annotated with,"
        " or its file imports)",
    )


def source_options(args: argparse.Namespace) -> dict[str, Any]:
    """What was given of these, by the names that Python calls them."""
    return {
        "input": args.input,
        "outputs": args.output,
        "spec": args.spec,
        "params": args.params,
        "sample": args.sample,
        "library": args.library,
        "checkpoint": args.checkpoint,
        "signature": args.signature,
        "cache": args.cache,
    }
