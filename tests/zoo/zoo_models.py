"""Small models, and a package of them without a network."""

import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

import onnx
from onnx import TensorProto, helper

HEADER = "name,package,source,path_inside,format,size_bytes,task,opset,licence,sha256\n"


def net(path: Path, op: str = "Relu", weight: float = 2.0, domain: str = "") -> Path:
    """Multiplies, and applies an op."""
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"]), helper.make_node(op, ["y"], ["z"], domain=domain, name="last")]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 3]) for name in "xz"]
    held = [helper.make_tensor("w", TensorProto.FLOAT, [3], [weight, 1.0, -1.0])]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:], held)
    opsets = [helper.make_opsetid("", 17), *([helper.make_opsetid(domain, 1)] if domain else [])]
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def wheel(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def tarball(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
