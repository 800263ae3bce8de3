"""What `tensorflow_zoo.py` runs in an environment that has tf2onnx: a Keras file to an ONNX file.

python tensorflow_zoo_worker.py NET.h5 NET.onnx
"""

import sys
from pathlib import Path

from from_keras_worker import tf2onnx

from onward.formats.keras import loaded

if __name__ == "__main__":
    tf2onnx(loaded(Path(sys.argv[1])), sys.argv[2])
