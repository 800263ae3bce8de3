"""TensorFlow, as a backend: source code, SavedModels and files of TensorFlow Lite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.backends.backend import PLAIN, ROUNDING, Backend, Format, Limit, Options

if TYPE_CHECKING:
    import numpy as np
    import onnx_ir as ir

    from onward.backends.emit.package import Source
    from onward.backends.emit.target import Target
    from onward.model import Model

FORMAT = "TensorFlow decodes BMP, JPEG, PNG and WebP only; a decoder in Python could not be saved with the model"
DRAWN = "the numbers that the reference draws depend on the shape, which is known only when the function runs"
EXCEPTIONS = {
    "test_image_decoder_decode_jpeg2k_rgb": FORMAT,
    "test_image_decoder_decode_pnm_rgb": FORMAT,
    "test_image_decoder_decode_tiff_rgb": FORMAT,
    "test_squeezenet": ROUNDING,
}
TRACED_WITHOUT_SHAPES = dict.fromkeys(
    (
        "test_training_dropout",
        "test_training_dropout_default",
        "test_training_dropout_default_mask",
        "test_training_dropout_mask",
    ),
    DRAWN,
)
TAKES = frozenset({"trainable", "inputs_nhwc", "outputs_nhwc", "cast"})


class TensorFlow(Backend):
    name = package = "tensorflow"
    title = "TensorFlow"
    distributions: tuple[str, ...] = ("tensorflow-cpu", "tensorflow")
    modes = {"function": "through tf.function, with unknown dimensions left open"}  # noqa: RUF012
    sometimes = frozenset({ROUNDING})

    def target(self) -> Target:
        from onward.backends.tensorflow.target import TARGET

        return TARGET

    def has_rule(self, op: str) -> bool:
        from onward.backends.tensorflow.convert import has_rule

        self.load_rules()
        return has_rule(op)

    def partial(self) -> Mapping[str, Limit]:
        from onward.backends.tensorflow.limits import PARTIAL

        return PARTIAL

    def generate(self, model: Model, options: Options = PLAIN) -> Source:
        from onward.backends.tensorflow.convert import generate

        return generate(model, options.trainable, options.inputs_nhwc, options.outputs_nhwc, cast=options.cast)

    def load(self, source: Source) -> Any:
        from onward.backends.tensorflow.load import run

        return run(source)

    def formats(self) -> Sequence[Format]:
        return [
            Format("tensorflow", "a folder of TensorFlow source code and weights", self.generate, takes=TAKES),
            Format(
                "savedmodel",
                "a SavedModel of TensorFlow",
                self.generate,
                _write_saved_model,
                TAKES,
                runs_source=False,
                parts=_saved_model_parts,
                check=_check_saved_model,
            ),
            Format(
                "tflite",
                "a file of TensorFlow Lite",
                _generate_for_tflite,
                _write_tflite,
                TAKES | {"quantize", "io", "calibrate", "select_tf_ops"},
                suffix=".tflite",
                remarks=_of_tflite,
                runs_source=False,
                trains=False,
            ),
        ]

    def to_framework(self, value: Any, dtype: ir.DataType | None) -> Any:
        from onward.backends.tensorflow.target import DTYPES
        from onward.backends.tensorflow.values import to_tensor

        return to_tensor(value, None if dtype is None else DTYPES.get(dtype))

    def to_numpy(self, value: Any, dtype: np.dtype[Any] | None) -> Any:
        from onward.backends.tensorflow.values import from_tensor

        return from_tensor(value, dtype)

    def in_mode(self, net: Any, graph: ir.Graph, mode: str) -> Any:
        from onward.backends.tensorflow.values import traced

        return traced(net, [value for value in graph.inputs if not value.is_initializer()])

    def use_threads(self, count: int) -> None:
        import tensorflow as tf

        with suppress(RuntimeError):  # it has computed already, and stays with what it has
            tf.config.threading.set_intra_op_parallelism_threads(count)

    def exceptions(self, mode: str = "", unknown_shapes: bool = False) -> Mapping[str, str]:
        return EXCEPTIONS | (TRACED_WITHOUT_SHAPES if mode == "function" and unknown_shapes else {})


def _generate_for_tflite(model: Model, options: Options) -> Source:
    from onward.backends.tensorflow.tflite import generate_for_tflite

    sides = options.inputs_nhwc, options.outputs_nhwc
    return generate_for_tflite(model, options.trainable, *sides, options.quantize, options.cast)


def _write_tflite(model: Model, source: Source, path: Path, options: Options) -> Path:
    from onward.backends.tensorflow.tflite import write_tflite

    how = options.quantize, options.calibrate, options.select_tf_ops, options.io
    return write_tflite(source, model.ir.graph, path, *how)


def _of_tflite(path: Path, options: Options) -> Sequence[str]:
    from onward.backends.tensorflow.lite.precision import in_floats

    return in_floats(path, options.io) if options.quantize == "int8" else []


def _write_saved_model(model: Model, source: Source, folder: Path, options: Options) -> Path:
    from onward.backends.tensorflow.saved_model import write_saved_model

    return write_saved_model(source, model.ir.graph, folder)


def _saved_model_parts(folder: Path) -> Sequence[str]:
    from onward.backends.tensorflow.saved_model import PARTS

    return PARTS


def _check_saved_model(folder: Path, force: bool) -> None:
    from onward.backends.tensorflow.saved_model import check_folder

    if not force:
        check_folder(folder)


BACKEND = TensorFlow()
