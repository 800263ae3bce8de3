"""What `tf_versions.py` runs in another environment: TensorFlow, numpy and safetensors, no Onward and no ONNX.

python tf_worker.py FOLDER ANSWERS KINDS    runs every model in FOLDER, and writes what each gives to ANSWERS
"""

import importlib
import json
import os
import pickle
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import tensorflow as tf

Run = Callable[..., Any]


def fed(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [fed(item) for item in value]
    return value if value is None or isinstance(value, dict) else tf.constant(value)


def given(value: Any) -> Any:
    if isinstance(value, tf.experimental.Optional):
        return given(value.get_value()) if value.has_value() else None
    if isinstance(value, list | tuple | tf.RaggedTensor | tf.experimental.ExtensionType):
        return [given(item) for item in value]
    if isinstance(value, dict):
        return {key: given(item) for key, item in value.items()}
    if not tf.is_tensor(value):
        return value
    array = np.asarray(value.numpy())
    if value.dtype != tf.string:
        return array
    return np.array([text.decode() for text in array.reshape(-1).tolist()], object).reshape(array.shape)


def outputs(found: Any) -> list[Any]:
    """Several come as a tuple."""
    return [given(value) for value in (found if isinstance(found, tuple) else (found,))]


def package(folder: Path) -> Run:
    """The generated source, called as its reader would."""
    return importlib.import_module(f"{folder.name}.net.model").load()


def traced(folder: Path) -> Run:
    """The same in a function, with all dimensions open."""
    net = package(folder)
    function = tf.function(lambda *inputs: net(*inputs), autograph=False)

    def open_dims(x: Any) -> Any:
        return None if x is None else tf.TensorSpec([None] * len(x.shape), x.dtype)

    return lambda *inputs: function.get_concrete_function(*tf.nest.map_structure(open_dims, inputs))(*inputs)


def saved_model(folder: Path) -> Run:
    signature = tf.saved_model.load(str(folder / "saved_model")).signatures["serving_default"]
    names = json.loads((folder / "names.json").read_text())

    def run(*inputs: Any) -> Any:
        found = signature(**dict(zip(names["inputs"], inputs, strict=True)))
        return tuple(found[name] for name in names["outputs"])

    return run


def keras_model(folder: Path) -> Run:
    """A file, with the layers that its source beside it defines."""
    keras = importlib.import_module("keras")
    runpy.run_path(str(folder / "net_layers.py"), run_name="net_layers")
    net = keras.models.load_model(folder / "net.keras")
    names = json.loads((folder / "names.json").read_text())

    def run(*inputs: Any) -> Any:
        found = net(inputs[0] if len(inputs) == 1 else list(inputs))
        return tuple(found[name] for name in names["outputs"]) if isinstance(found, dict) else found

    return run


KINDS = {
    "package": ("net", package),
    "function": ("net", traced),
    "savedmodel": ("saved_model", saved_model),
    "keras": ("net.keras", keras_model),
}


def results(folder: Path, kinds: list[str]) -> Iterator[tuple[str, Any]]:
    for kind in kinds:
        needed, opened = KINDS[kind]
        if not (folder / needed).exists():
            continue
        try:
            run = opened(folder)
            sets = pickle.loads((folder / "inputs.pickle").read_bytes())
            yield kind, [outputs(run(*map(fed, inputs))) for inputs in sets]
        except Exception as error:
            if os.environ.get("SHOW"):
                traceback.print_exc()
            yield kind, " ".join(f"{type(error).__name__}: {error}".split())[:300]


def main(root: Path, into: Path, kinds: list[str]) -> None:
    sys.path.insert(0, str(root))
    into.mkdir(exist_ok=True)
    versions = {name: version(name) for name in ("keras", "numpy", "ml_dtypes")} | {"tensorflow": tf.__version__}
    (into / "versions.json").write_text(json.dumps(versions))
    for folder in sorted(path for path in root.iterdir() if (path / "inputs.pickle").exists()):
        answer = into / f"{folder.name}.pickle"
        if not answer.exists():
            answer.write_bytes(pickle.dumps(dict(results(folder, kinds))))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3].split(","))
