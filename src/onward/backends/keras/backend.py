"""Keras, as a backend: functional models, in terms of TensorFlow's rules where Keras has no layer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.backends.backend import PLAIN, Format, Options
from onward.backends.tensorflow.backend import TensorFlow

if TYPE_CHECKING:
    from onward.backends.emit.package import Source
    from onward.model import Model


class Keras(TensorFlow):
    name = package = "keras"
    title = "Keras"
    distributions = ()
    modes = {}  # noqa: RUF012
    is_covered = False

    def generate(self, model: Model, options: Options = PLAIN) -> Source:
        from onward.backends.keras.convert import built
        from onward.backends.keras.save import source_path

        module = {} if options.out is None else {"module": source_path(options.out).stem}
        return built(model, options.trainable, options.inputs_nhwc, options.outputs_nhwc, options.trains, **module)

    def load(self, source: Source) -> Any:
        from onward.backends.keras.convert import KerasSource

        assert isinstance(source, KerasSource)
        return source.net

    def formats(self) -> Sequence[Format]:
        return [
            Format(
                "keras",
                "a .keras file, and its source code beside it",
                self.generate,
                _write_keras,
                frozenset({"trainable", "inputs_nhwc", "outputs_nhwc"}),
                suffix=".keras",
                runs_source=False,
                parts=_file_names,
                check=_check_path,
            )
        ]

    def call(self, net: Any, arguments: Sequence[Any], outputs: Sequence[str]) -> Sequence[Any]:
        found = net(list(arguments) if len(arguments) > 1 else arguments[0])
        return [found[name] for name in outputs] if len(outputs) > 1 else [found]


def _write_keras(model: Model, source: Source, path: Path, options: Options) -> Path:
    from onward.backends.keras.convert import KerasSource
    from onward.backends.keras.save import write_keras

    assert isinstance(source, KerasSource)
    return write_keras(source, path)


def _file_names(path: Path) -> Sequence[str]:
    from onward.backends.keras.save import file_names

    return file_names(path)


def _check_path(path: Path, force: bool) -> None:
    from onward.backends.keras.save import check_path

    check_path(path, force)


BACKEND = Keras()
