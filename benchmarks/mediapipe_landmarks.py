"""Landmark ops of MediaPipe in a real file: Onward's ONNX on ONNX Runtime beside MediaPipe itself.

python benchmarks/mediapipe_landmarks.py --mediapipe ENV/bin/python

ENV has `mediapipe==0.10.9`, whose wheel has the file: TensorFlow's interpreter has no such ops, its own has.
"""

import argparse
import subprocess
import tempfile
from pathlib import Path

import machine
import numpy as np

import onward
from onward import runners

MODEL = "mediapipe/modules/face_landmark/face_landmark_with_attention.tflite"
WORKER = Path(__file__).with_name("mediapipe_worker.py")
IMAGES, CELLS, CELL = 5, 24, 8
"""Pictures of squares of random colours."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mediapipe", type=Path, required=True, help="Python of an environment with mediapipe==0.10.9")
    python = parser.parse_args().mediapipe.absolute()
    (path,) = python.parent.parent.glob(f"lib/python*/site-packages/{MODEL}")
    model = onward.from_tflite(path, check=False)
    run = runners.prepare("onnxruntime", model)
    given = model.ir.graph.inputs[0].name or ""
    names = [value.name or "" for value in model.ir.graph.outputs]
    worst = dict.fromkeys(names, (0.0, 0.0))
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(IMAGES):
            colours = np.random.default_rng(seed).integers(0, 256, size=(CELLS, CELLS, 3))
            image = np.kron(colours, np.ones((CELL, CELL, 1), int)).astype(np.uint8)
            np.save(f"{folder}/image.npy", image)
            command = [python, WORKER, MODEL, f"{folder}/image.npy", f"{folder}/found.npz", str(len(names))]
            subprocess.run(command, check=True, capture_output=True)
            own = run({given: image.astype(np.float32)[None] / 255})
            other = np.load(f"{folder}/found.npz")
            for i, name in enumerate(names):
                error, size = np.abs(own[name].ravel() - other[f"result{i}"]).max(), np.abs(own[name]).max()
                worst[name] = (max(worst[name][0], float(error)), max(worst[name][1], float(size)))
    for name, (error, size) in worst.items():
        print(f"{name}: worst error {error:.1e}, numbers up to {size:.0f}")
    print(machine.describe("onward", "onnxruntime"))


if __name__ == "__main__":
    main()
