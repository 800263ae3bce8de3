"""Which ops want their channels in one place, and which of them a target has for channels last only."""

from dataclasses import dataclass
from typing import NamedTuple

import onnx_ir as ir

from onward.layout.orders import RANKS
from onward.spec.meaning import CHANNELS_LAST

DOMAIN = CHANNELS_LAST
"""The domain of ops that take and give their images channels last, and are as in ONNX in everything else: attributes,
weights, and the sizes and scales of Resize, which stay in the order N, C, spatial axes."""


class Images(NamedTuple):
    """The inputs and outputs of an op that are images: N, C, spatial axes."""

    inputs: tuple[int, ...] = (0,)
    outputs: tuple[int, ...] = (0,)


CONV = {
    "Conv": Images(),
    "ConvInteger": Images(),
    "ConvTranspose": Images(),
    "DeformConv": Images((0, 2, 4)),
    "QLinearConv": Images(),
}
POOL = {
    "AveragePool": Images(),
    "GlobalAveragePool": Images(),
    "GlobalLpPool": Images(),
    "GlobalMaxPool": Images(),
    "LpPool": Images(),
    "MaxPool": Images(outputs=(0, 1)),
    "MaxRoiPool": Images(),
    "MaxUnpool": Images((0, 1)),
    "RoiAlign": Images(),
}
NORM = {
    "BatchNormalization": Images(),
    "GroupNormalization": Images(),
    "InstanceNormalization": Images(),
    "LRN": Images(),
}
SAMPLE = {
    "DepthToSpace": Images(),
    "GridSample": Images(),
    "Resize": Images(),
    "SpaceToDepth": Images(),
    "Upsample": Images(),
}
IMAGE_OPS: dict[str, Images] = CONV | POOL | NORM | SAMPLE
"""Ops whose definition says that the second axis is the channels. Indices of MaxPool and MaxUnpool count as in ONNX,
wherever their tensor's channels are."""


@dataclass(frozen=True)
class Roles:
    """What a target has: the image ops that it computes channels last only, and those that it computes `either` way;
    the others it has channels first only.
    """

    channels_last: frozenset[str]
    either: frozenset[str] = frozenset()


ONNX = Roles(frozenset())
TENSORFLOW = Roles(frozenset(IMAGE_OPS))
JAX = Roles(
    frozenset({"Conv", "ConvTranspose"}),
    frozenset(
        {
            *("AveragePool", "BatchNormalization", "DepthToSpace", "GlobalAveragePool", "GlobalMaxPool"),
            *("GroupNormalization", "InstanceNormalization", "LRN", "MaxPool", "Resize", "SpaceToDepth"),
        }
    ),
)


def images_of(node: ir.Node) -> Images | None:
    """The images of a node that is an image op, on tensors that have a layout."""
    found = IMAGE_OPS.get(node.op_type) if node.domain == "" else None
    if found is None:
        return None
    inputs = tuple(i for i in found.inputs if i < len(node.inputs) and node.inputs[i] is not None)
    outputs = tuple(i for i in found.outputs if i < len(node.outputs) and node.outputs[i].name)
    values = [*(node.inputs[i] for i in inputs), *(node.outputs[i] for i in outputs)]
    ranks = {None if v is None or v.shape is None else len(v.shape) for v in values}
    return Images(inputs, outputs) if len(ranks) == 1 and ranks <= set(RANKS) else None
