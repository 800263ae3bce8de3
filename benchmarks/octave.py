"""How fast generated MATLAB source is in GNU Octave, beside ONNX Runtime: ResNet-18 at 224 x 224, one thread each.

python benchmarks/octave.py [--image 224] [--runs 5]

Prints the processor time of a call of each, measured in turn, and their ratio. The BLAS that Octave uses is said, too.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import subprocess
import tempfile
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy as np  # noqa: E402
import onnx  # noqa: E402
import onnxruntime  # noqa: E402
import torch  # noqa: E402
from machine import describe  # noqa: E402
from networks import resnet18  # noqa: E402

from onward.backends.matlab.convert import generate  # noqa: E402
from onward.backends.matlab.package import write_files  # noqa: E402
from onward.model import load  # noqa: E402

PROGRAM = """
params = net.load(); x = reshape(typecast(fread(fopen('x.bin'), Inf, 'uint8=>uint8'), 'single'), [{0}, {0}, 3, 1]);
y = net.model(params, x);
for k = 1:{1}
  t = cputime(); y = net.model(params, x); printf('%.6f\\n', cputime() - t);
end
fwrite(fopen('y.bin', 'w'), y, 'single'); printf('%s\\n', version('-blas'));
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--image", type=int, default=224)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    torch.manual_seed(0)
    network, x = resnet18().eval(), torch.rand(1, 3, args.image, args.image)
    file = io.BytesIO()
    torch.onnx.export(network, (x,), file, dynamo=False)
    model = onnx.load_from_string(file.getvalue())
    theirs = _onnxruntime(model, x.numpy(), args.runs)
    with tempfile.TemporaryDirectory() as folder:
        ours, found, blas = _octave(Path(folder), model, x.numpy(), args.runs)
    error = np.abs(found - theirs[1]).max() / np.abs(theirs[1]).max()
    print(describe("onnxruntime"))
    print(f"BLAS of Octave: {blas}")
    times = f"ONNX Runtime {theirs[0] * 1e3:.0f} ms, Octave {ours * 1e3:.0f} ms"
    print(f"{times}: {ours / theirs[0]:.1f} x, error {error:.1e}")


def _onnxruntime(model: onnx.ModelProto, x: np.ndarray, runs: int) -> tuple[float, np.ndarray]:
    import time

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feeds = {session.get_inputs()[0].name: x}
    times = []
    for _ in range(runs + 1):
        start = time.process_time()
        (y,) = session.run(None, feeds)
        times.append(time.process_time() - start)
    return float(np.median(times[1:])), y


def _octave(folder: Path, model: onnx.ModelProto, x: np.ndarray, runs: int) -> tuple[float, np.ndarray, str]:
    package = folder / "+net"
    package.mkdir()
    write_files(generate(load(model)), package, "net")
    (folder / "x.bin").write_bytes(x.tobytes())
    program = PROGRAM.format(x.shape[-1], runs)
    command = ["octave-cli", "--norc", "--eval", program]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
    times = [float(line) for line in said.splitlines() if re.fullmatch(r"[\d.]+", line)]
    y = np.frombuffer((folder / "y.bin").read_bytes(), np.float32)
    return float(np.median(times)), y.reshape(1, -1), said.splitlines()[-1]


if __name__ == "__main__":
    main()
