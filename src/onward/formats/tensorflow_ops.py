"""Ops of TensorFlow that do more than compute: they read and write files, talk to others or run Python.

Of ops without state, those are known by name, and others by the names of what they take. Of ops with state, only
those are taken that keep it inside the model: variables, tables, random numbers, lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

KEPT = re.compile(
    r"_Arg|_Retval|NoOp|Assert|Print|CheckNumerics(V2)?|Case|If|While|_If|_While|StatefulPartitionedCall|DeepCopy|Empty"
    r"|GuaranteeConst|Skipgram|Timestamp|VariableV?2?|TemporaryVariable|_?VarHandlesOp|VarHandleOp|VarIsInitializedOp"
    r"|_?ReadVariablesOp|ReadVariableOp|VariableShape|Assign(Add|Sub)?VariableOp|DestroyResourceOp|DisableCopyOnRead"
    r"|Resource(Gather(Nd)?|Scatter\w+|StridedSliceAssign|CountUpTo|(Sparse)?Apply\w+)"
    r"|(Anonymous)?(Mutable)?(Dense)?HashTable(OfTensors)?(V2)?|AnonymousMutableDenseHashTable"
    r"|LookupTable\w+|InitializeTable(V2)?|TensorArray\w*|Stack(V2|PushV2|PopV2|CloseV2)?"
    r"|Random(Uniform|UniformInt|StandardNormal|Shuffle|Gamma|Poisson|PoissonV2|Crop)|TruncatedNormal|Multinomial"
    r"|ParameterizedTruncatedNormal|Stateful(StandardNormal|StandardNormalV2|TruncatedNormal|Uniform|UniformInt)"
    r"|Stateful(UniformFullInt|RandomBinomial)|StatelessRandomGetAlg|NonDeterministicInts|Rng(ReadAndSkip|Skip)"
    r"|SampleDistortedBoundingBox(V2)?|\w+CandidateSampler|IsTensorFloat32Enabled|DeviceIndex|XlaDequantize|Xla(If|While)"
    r"|(Sparse)?ConditionalAccumulator|BoostedTrees\w+|IsBoostedTrees\w+|CudnnRNN\w*"
)
"""Ops with state that keep it inside the model."""
ELSEWHERE = re.compile(
    r"(Read|Write|Matching)Files?|ImmutableConst|Debug\w+|PyFunc\w*|EagerPyFunc|GenerateVocabRemapping|\w*Dataset\w*"
    r"|XlaCustomCall(V2)?|XlaLaunch|TPU\w*|Infeed\w*|Outfeed\w*|\w*Iterator\w*|Collective\w*|DTensor\w*|RemoteCall"
    r"|InitializeTableFromTextFile(V2)?|FixedUnigramCandidateSampler|LoadAndRemapMatrix|RecordInput|Rpc\w+|ShardedFilename"
)
"""Ops that reach out of the model, with state or without."""
OUTSIDE = re.compile(
    r"file(name|s|_path|_pattern|system)?|.*_(file|url|urls|path|dir)|path|address|token|memory_region_name"
)
"""What inputs and attributes of such ops are called, for those that TensorFlow adds."""
SAVERS = {
    "Save",
    "SaveSlices",
    "SaveV2",
    "Restore",
    "RestoreSlice",
    "RestoreV2",
    "MergeV2Checkpoints",
    "ShardedFilename",
}
"""What checkpoints are written and read by."""
TEXT_TABLES = {"InitializeTableFromTextFile", "InitializeTableFromTextFileV2"}
STREAM = re.compile(rb"stdout|stderr|log\((info|warning|error)\)")


@cache
def reaches_out(op: str) -> bool:
    """Whether an op does more than compute and keep state, as far as TensorFlow knows it."""
    if ELSEWHERE.fullmatch(op) or op in SAVERS:
        return True
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(op)
    if definition is None or KEPT.fullmatch(op) or op == "PrintV2":
        return False  # what TensorFlow does not know it does not run
    return bool(definition.is_stateful) or any(
        OUTSIDE.fullmatch(one.name) for one in (*definition.input_arg, *definition.attr)
    )


def dangers(nodes: Iterable[Any], allowed: Iterable[str] = (), known: frozenset[str] = frozenset()) -> Iterator[str]:
    """Which of these nodes reach out of the model; `allowed` are ops, and `known` names of nodes, that may."""
    allowed = set(allowed)
    for node in nodes:
        if node.op in allowed or node.name in known:
            continue
        if reaches_out(node.op):
            yield f"the node {node.name[:80]!r} in it is {node.op[:80]}, which reaches out of the model"
        elif node.op == "PrintV2" and "output_stream" in node.attr:
            stream = node.attr["output_stream"].s
            if not STREAM.fullmatch(stream):
                yield f"the node {node.name[:80]!r} in it prints to {stream[:80]!r}"


def functions_of(nodes: Iterable[Any]) -> set[str]:
    """The functions that nodes call."""
    found: set[str] = set()
    for node in nodes:
        for attr in node.attr.values():
            found.add(attr.func.name)
            found.update(one.name for one in attr.list.func)
    return found - {""}


def reached(nodes: Iterable[Any], library: dict[str, Any]) -> list[Any]:
    """Nodes, and those of all functions that they call."""
    nodes = list(nodes)
    waiting, seen = functions_of(nodes), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen or name not in library:
            continue
        seen.add(name)
        inside = list(library[name].node_def)
        nodes += inside
        waiting |= functions_of(inside) - seen
    return nodes
