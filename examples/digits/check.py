"""Runs a package that `onward convert` wrote for digits.onnx, beside the original on ONNX Runtime:

python examples/digits/check.py build/digits
"""

import argparse
import importlib
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import torch

HERE = Path(__file__).parent
TOLERANCE = 1e-4


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder that `onward convert` wrote")
    folder = parser.parse_args().folder.resolve()

    sys.path.insert(0, str(folder.parent))
    net = importlib.import_module(f"{folder.name}.model").load()
    sample = np.load(HERE / "sample.npz")
    with torch.inference_mode():
        logits = net(torch.from_numpy(sample["image"])).numpy()
    session = onnxruntime.InferenceSession(HERE / "digits.onnx", providers=["CPUExecutionProvider"])
    (expected,) = session.run(None, {"image": sample["image"]})

    right = int((logits.argmax(axis=1) == sample["label"]).sum())
    difference = float(np.abs(logits - expected).max())
    print(f"{right} of {len(logits)} digits recognised; worst difference to ONNX Runtime {difference:.1e}")
    if difference > TOLERANCE:
        sys.exit("the converted model is not the same model")


if __name__ == "__main__":
    main()
