"""Runs a file of landmarks in MediaPipe's own graph, in an environment that has it (`mediapipe==0.10.9`).

python mediapipe_worker.py MODEL IMAGE.npy RESULTS.npz COUNT    MODEL lies below the folder that has `mediapipe`
"""

import sys
from pathlib import Path

import mediapipe as mp
import numpy as np
from google.protobuf import text_format
from mediapipe.calculators.core import split_vector_calculator_pb2  # noqa: F401 (options of calculators, by name)
from mediapipe.calculators.tensor import image_to_tensor_calculator_pb2, inference_calculator_pb2  # noqa: F401
from mediapipe.calculators.tflite import tflite_custom_op_resolver_calculator_pb2  # noqa: F401
from mediapipe.framework import calculator_pb2
from mediapipe.python import packet_creator, packet_getter
from mediapipe.python._framework_bindings import calculator_graph, resource_util

GRAPH = """
input_stream: "image"
node {{ calculator: "ImageToTensorCalculator" input_stream: "IMAGE:image" output_stream: "TENSORS:taken"
  options {{ [mediapipe.ImageToTensorCalculatorOptions.ext] {{
    output_tensor_width: {width} output_tensor_height: {height}
    output_tensor_float_range {{ min: 0.0 max: 1.0 }} }} }} }}
node {{ calculator: "TfLiteCustomOpResolverCalculator" output_side_packet: "OP_RESOLVER:ops"
  options {{ [mediapipe.TfLiteCustomOpResolverCalculatorOptions.ext] {{ use_gpu: false }} }} }}
node {{ calculator: "InferenceCalculator" input_stream: "TENSORS:taken" output_stream: "TENSORS:made"
  input_side_packet: "OP_RESOLVER:ops"
  options {{ [mediapipe.InferenceCalculatorOptions.ext] {{ model_path: "{model}" delegate {{ tflite {{}} }} }} }} }}
node {{ calculator: "SplitTensorVectorCalculator" input_stream: "made" {parts}
  options {{ [mediapipe.SplitVectorCalculatorOptions.ext] {{ {ranges} }} }} }}
"""
RESULT = """
output_stream: "result{i}"
node {{ calculator: "TensorsToFloatsCalculator" input_stream: "TENSORS:part{i}" output_stream: "FLOATS:result{i}" }}
"""


def main(model: str, image: str, results: str, count: int) -> None:
    resource_util.set_resource_dir(str(Path(mp.__file__).absolute().parent.parent))
    pixels = np.load(image)
    parts = " ".join(f'output_stream: "part{i}"' for i in range(count))
    ranges = " ".join(f"ranges {{ begin: {i} end: {i + 1} }}" for i in range(count))
    text = GRAPH.format(model=model, height=pixels.shape[0], width=pixels.shape[1], parts=parts, ranges=ranges)
    text += "".join(RESULT.format(i=i) for i in range(count))
    config = text_format.Parse(text, calculator_pb2.CalculatorGraphConfig())
    graph = calculator_graph.CalculatorGraph(graph_config=config)
    found = {}

    def keep(name: str, packet: object) -> None:
        found[name] = np.array(packet_getter.get_float_list(packet), np.float32)

    for i in range(count):
        graph.observe_output_stream(f"result{i}", keep)
    graph.start_run({})
    frame = packet_creator.create_image_frame(image_format=mp.ImageFormat.SRGB, data=pixels)
    graph.add_packet_to_input_stream("image", frame.at(0))
    graph.close_all_packet_sources()
    graph.wait_until_done()
    np.savez(results, **found)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
