"""Ops that are no builtin ones, but that many files have and the interpreter knows."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.rules.conv import transposed
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.like_tensorflow import custom_options
from onward.frontends.tflite.registry import rule
from onward.frontends.tflite.translate import turned
from onward.graph.build import Tensor


@rule("CUSTOM Convolution2DTransposeBias")
def transpose_conv_bias(op: Writer, x: Tensor, filters: Tensor, bias: Tensor) -> Tensor:
    """Options are three numbers: how borders are treated, and strides by width and height."""
    kind, across, down = struct.unpack("<3i", bytes(op.operation.custom)[:12])
    if filters.sizes is None or op.operation.outputs[0].shape is None:
        raise UnsupportedError("the size of a transposed convolution is not known")
    taps = filters.sizes[1:3]
    sizes = op.ints([int(n) for n in op.operation.outputs[0].shape])
    weight = turned(op, filters, [3, 0, 1, 2])
    padding = {1: "SAME", 2: "VALID"}[kind]
    return transposed(op, sizes, weight, x, taps, 1, [1, down, across, 1], padding, (), "NHWC", ()) + bias


@rule("CUSTOM TFLite_Detection_PostProcess")
def detections(op: Writer, encoded: Tensor, scores: Tensor, anchors: Tensor) -> list[Tensor]:
    """Boxes relative to anchors, made absolute; of those that overlap, the best."""
    options = custom_options(op)
    boxes = _decoded(op, op.squeeze(encoded, [0]), anchors, options)
    classes = options["num_classes"]
    if scores.dims is None or not isinstance(scores.dims[2], int):
        raise UnsupportedError("the number of classes is not known")
    offset = scores.dims[2] - classes
    by_class = op.Slice(op.squeeze(scores, [0]), op.ints([offset]), op.ints([offset + classes]), op.ints([1]))
    pick = _by_class if options.get("use_regular_nms", False) else _by_anchor
    return [op.unsqueeze(part, [0]) for part in pick(op, boxes, by_class, options)]


def _decoded(op: Writer, encoded: Tensor, anchors: Tensor, options: dict[str, Any]) -> Tensor:
    dy, dx, dh, dw = op.many("Split", 4, encoded, op.ints([1] * 4), axis=1)
    y, x, h, w = op.many("Split", 4, anchors, op.ints([1] * 4), axis=1)
    middle_y, middle_x = dy / options["y_scale"] * h + y, dx / options["x_scale"] * w + x
    half_h, half_w = (
        op.Exp(size / options[f"{name}_scale"]) * of * 0.5 for size, of, name in ((dh, h, "h"), (dw, w, "w"))
    )
    return op.Concat(middle_y - half_h, middle_x - half_w, middle_y + half_h, middle_x + half_w, axis=1)


def _suppressed(op: Writer, boxes: Tensor, scores: Tensor, count: int, options: dict[str, Any]) -> Tensor:
    """Class and box of each that is left; scores have a row a class."""
    found = op.NonMaxSuppression(
        op.unsqueeze(boxes, [0]),
        op.unsqueeze(scores, [0]),
        op.ints([count]),
        op.constant(np.asarray([options["nms_iou_threshold"]], np.float32)),
        op.constant(np.asarray([options["nms_score_threshold"]], np.float32)),
    )
    return op.Slice(found, op.ints([1]), op.ints([3]), op.ints([1]))


def _by_anchor(op: Writer, boxes: Tensor, scores: Tensor, options: dict[str, Any]) -> list[Tensor]:
    """Each anchor by its best classes."""
    many, most = options["max_classes_per_detection"], options["max_detections"]
    best, classes = op.many("TopK", 2, scores, op.ints([many]), axis=1)
    first = op.Slice(best, op.ints([0]), op.ints([1]), op.ints([1]))
    left = _suppressed(op, boxes, op.transpose(first, [1, 0]), most, options)
    kept = op.squeeze(op.Slice(left, op.ints([1]), op.ints([2]), op.ints([1])), [1])
    repeated = op.Reshape(op.Expand(op.unsqueeze(kept, [1]), op.ints([1, many])), op.ints([-1]))
    parts = [op.Gather(boxes, repeated, axis=0), *(op.flat(op.Gather(p, kept, axis=0)) for p in (classes, best))]
    return [*_filled(op, parts, op.Shape(repeated), most * many), _number(op, op.Shape(kept))]


def _by_class(op: Writer, boxes: Tensor, scores: Tensor, options: dict[str, Any]) -> list[Tensor]:
    """Each class by itself, and of them all the best."""
    most = options["max_detections"]
    by_class = op.transpose(scores, [1, 0])
    left = _suppressed(op, boxes, by_class, options.get("detections_per_class", 100), options)
    values = op.GatherND(by_class, left)
    count = op.Min(op.Shape(values), op.ints([most]))
    best, order = op.many("TopK", 2, values, count, axis=0)
    classes, kept = (op.squeeze(op.Gather(left, op.ints([i]), axis=1), [1]) for i in (0, 1))
    parts = [op.Gather(boxes, op.Gather(kept, order), axis=0), op.Gather(classes, order), best]
    return [*_filled(op, parts, count, most * options["max_classes_per_detection"]), _number(op, count)]


def _number(op: Writer, count: Tensor) -> Tensor:
    return op.squeeze(count, [0]).cast(ir.DataType.FLOAT)


def _filled(op: Writer, parts: list[Tensor], count: Tensor, size: int) -> list[Tensor]:
    """With zeros behind, as many as there can be."""
    missing = op.ints([size]) - count
    filled = []
    for part in parts:
        numbers = part.cast(ir.DataType.FLOAT)
        pads = [op.ints([0, 0]), missing, op.ints([0])] if part.rank == 2 else [op.ints([0]), missing]
        filled.append(op.Pad(numbers, op.Concat(*pads, axis=0)))
    return filled
