"""What `tf_models.py` runs in processes of their own: conversions to SavedModel and TensorFlow Lite, by either side.

python tf_peer_worker.py onward NET.onnx FOLDER      Onward, in this environment
python tf_peer_worker.py onnx2tf NET.onnx FOLDER     onnx2tf, in an environment that has it

Leaves FOLDER/saved and FOLDER/float32.tflite (Onward: float16 and dynamic, too), and prints a line of JSON: the seconds
until the SavedModel was there, by the clock and of the processor, without the time that imports take.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

SAMPLES = "calibration_image_sample_data_20x128x128x3_float32.npy"
"""What onnx2tf would download to try models on, if it were not in the working directory."""
Times = dict[str, float]


def clock() -> tuple[float, float]:
    """Now, and the processor time used until now, children's included."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(use.ru_utime + use.ru_stime for use in used)


def since(began: tuple[float, float]) -> Times:
    now = clock()
    return {"wall": now[0] - began[0], "cpu": now[1] - began[1]}


def onward(path: Path, folder: Path) -> Times:
    from onward.backends.tensorflow.convert import generate
    from onward.backends.tensorflow.saved_model import write_saved_model
    from onward.backends.tensorflow.tflite import generate_for_tflite, write_tflite
    from onward.model import load

    began = clock()
    model = load(path)
    write_saved_model(generate(model), model.ir.graph, folder / "saved")
    times = since(began)
    for how in (None, "float16", "dynamic"):
        source = generate_for_tflite(model, quantize=how)
        write_tflite(source, model.ir.graph, folder / f"{how or 'float32'}.tflite", how)
    return times


def onnx2tf(path: Path, folder: Path) -> Times:
    """With a batch of one: it cannot convert every network with an open one."""
    import numpy as np
    import onnx
    import onnx2tf as peer
    from onnxruntime.tools.onnx_model_utils import make_dim_param_fixed

    model = onnx.load(path)
    for name in {dim.dim_param for value in model.graph.input for dim in value.type.tensor_type.shape.dim}:
        if name:
            make_dim_param_fixed(model.graph, name, 1)
    onnx.save(model, folder / "net.onnx")
    os.chdir(folder)
    np.save(SAMPLES, np.random.default_rng(0).random((20, 128, 128, 3), dtype=np.float32))
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # it calls onnxsim
    times: list[Times] = []
    began = clock()
    original = tf.lite.TFLiteConverter.from_keras_model

    def noted(net: object) -> object:
        """It writes TensorFlow Lite files, too; the first begins when the SavedModel is there."""
        times.append(since(began))
        return original(net)

    tf.lite.TFLiteConverter.from_keras_model = noted
    peer.convert(
        input_onnx_file_path="net.onnx", output_folder_path="saved", output_signaturedefs=True, non_verbose=True
    )
    Path("saved/net_float32.tflite").rename("float32.tflite")
    return times[0]


def main() -> None:
    who, path, folder = sys.argv[1], Path(sys.argv[2]).absolute(), Path(sys.argv[3]).absolute()
    convert: Callable[[Path, Path], Times] = {"onward": onward, "onnx2tf": onnx2tf}[who]
    folder.mkdir(parents=True, exist_ok=True)
    times = convert(path, folder)
    versions = {name: version(name) for name in ([who] if who == "onnx2tf" else [])} | {"tensorflow": tf.__version__}
    print("\n" + json.dumps(times | {"versions": versions}))


if __name__ == "__main__":
    main()
