"""How far runtimes are from a model in double precision: what rounding alone comes to.

python benchmarks/beside_double.py NET.onnx    on drawn inputs and on zeros; rms of the error ÷ rms of the output
"""

import sys
from pathlib import Path

import numpy as np
import torch

import onward
from onward.runners import prepare
from onward.verification.data.sets import make_inputs


def overall(found: np.ndarray, right: np.ndarray) -> float:
    return float(np.sqrt(np.mean((found - right) ** 2) / np.mean(right**2)))


def main() -> None:
    path = Path(sys.argv[1])
    model = onward.load(path)
    double = onward.to_torch(model, check=False).eval().double()
    drawn = make_inputs(model)
    for name, inputs in {"drawn": drawn, "zeros": {k: np.zeros_like(v) for k, v in drawn.items()}}.items():
        with torch.inference_mode():
            right = double(*(torch.from_numpy(array).double() for array in inputs.values())).numpy()
        for runner in ("onnxruntime", "torch", "jax"):
            (found, *_) = prepare(runner, model)(inputs).values()
            print(f"{name}, {runner}: {overall(np.asarray(found), right):.1e}")


if __name__ == "__main__":
    main()
