"""The text of `train.py`: what someone would write by hand to train the model with Keras."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from onward.backends.emit.helpers import sort_imports
from onward.backends.emit.package import imports
from onward.backends.emit.printing.language import wrap
from onward.training.export import script
from onward.training.export.keras.words import accumulation, own_loss, own_optimizer, own_schedule
from onward.training.export.script import ALONE, PROGRESS, Text, batch, indented, listed, quoted
from onward.training.export.tensorflow.in_tensorflow import InTensorFlow
from onward.training.export.tensorflow.losses import called
from onward.training.export.tensorflow.updates import formula, update


@dataclass(frozen=True)
class Script(InTensorFlow):
    """In Keras's words, and TensorFlow's where it has none."""

    def weight(self, name: str) -> str:
        return f"variables_of(net)[{quoted(name)}]"

    def text(self) -> str:
        loss, schedule = own_loss(self), own_schedule(self)
        is_own = own_optimizer(self) is not None
        parts: list[Text] = []
        if loss is None:
            lines = self._loss()
            parts += [lines, *called(lines)]
        if loss is None or not self.trains:
            parts.append(self._training(loss is None))
        if self.scheduled and schedule is None:
            parts += [self.rate(("tf.Tensor", "tf.Tensor")), self._schedule()]
        if not is_own:
            parts += [update(self.optimizer, self.optimizer.states), self._optimizer()]
        parts += [self._load(loss is None or not self.trains), VARIABLES, self._make_optimizer()]
        parts += [self._states(is_own)] if self._slots else []
        parts += [self._compiled(loss), self._batches(loss is not None), LOSSES]
        parts += [self._train(), PROGRESS, self._save(), BATCHES, ALONE, self._main()]
        text = self.joined(parts)
        return self.whole(self._head(text), text)

    def _batches(self, one: bool) -> str:
        """With the labels of the only loss, or all that there is."""
        given = self.arguments[0] if len(self.data) == 1 else f"({', '.join(self.arguments)})"
        wanted = "batch"
        if one:
            loss: Any = self.terms[0].loss
            wanted = batch(loss.labels)
        return BATCHES_OF_KERAS.replace("GIVEN", f"{given}, {wanted}")

    def _head(self, body: str) -> list[str]:
        constants = ["Batch = dict[str, np.ndarray]", *self.tables(), *wrap(f"TRAINED = {listed(self.trained)}")]
        constants += wrap(f"SLOTS = {listed(self._slots)}") if self._slots else []
        constants += wrap(f"STARTS = {self._starts!r}") if self._starts else []
        more, made = self.modules.instances()
        text = "\n".join([*constants, body])
        own = sorted(["from .model import build", *more])
        return [*sort_imports(imports(text, IMPORTS)), "", *own, "", *constants, *made]

    def _loss(self) -> list[str]:
        def weights(names: Sequence[str]) -> str:
            return f"[variables_of(net)[name] for name in {listed(names)}]" if names else "net.trainable_variables"

        if len(self.outputs) > 1:
            given = ", ".join(f"y_pred[{quoted(name)}]" for name in self.outputs)
            lines = wrap(f"{self.result} = [{given}]")
        else:
            lines = [f"{self.result} = y_pred"]
        return [
            "def loss_of(net: keras.Model, y_pred: Any, batch: Any) -> tf.Tensor:",
            '    """What training minimises; `batch` has what it is compared with."""',
            *indented([*lines, *self.summed(self._loss_call, weights)]),
        ]

    def _training(self, has_loss: bool) -> list[str]:
        lines = [
            "class Training(keras.Model):",
            '    """The model with what `compile` does not say of its training."""',
        ]
        if has_loss:
            lines += COMPUTE_LOSS.splitlines()
        if not self.trains:
            lines += CALL.splitlines()
        return lines

    def _schedule(self) -> list[str]:
        made = "step" if self.accumulate == 1 else f"step // {self.accumulate}"
        return [
            "class Rate(keras.optimizers.schedules.LearningRateSchedule):",
            '    """The learning rate."""',
            "",
            "    def __call__(self, step: tf.Tensor) -> tf.Tensor:",
            f'        """`step` counts the {"steps" if self.accumulate == 1 else "batches"} made before."""',
            f"        return tf.cast({self.lr!r} * rate(tf.cast({made} + 1, tf.float64)), tf.float32)",
        ]

    def _optimizer(self) -> list[str]:
        own = formula(self.optimizer)
        share = self.average
        lines = [f"class {own.name}(keras.optimizers.Optimizer):", f'    """{own.doc}"""']
        lines += BUILD.splitlines() if self._slots else []
        lines += UPDATE_STEP.splitlines()
        if self._slots or self.groups:
            lines.append("        index = self._get_variable_index(variable)")
        states = len(self.optimizer.states)
        if self.groups:
            lines.append("        factor, decay = self.rules[index]")
            lines.append("        lr = factor * tf.cast(learning_rate, variable.dtype)")
        else:
            lines.append("        lr = tf.cast(learning_rate, variable.dtype)")
        decay = "decay" if self.groups else repr(self.optimizer.weight_decay)
        held = "held" if share is None else f"held[:{states}]"
        if self._slots:
            lines.append("        held = [slot[index] for slot in self.slots]")
        given = f", *{held}" if states else ""
        lines += indented(wrap(f"changed = update(variable, g, lr, {decay}, self.iterations + 1{given})"), 2)
        if share is not None:
            lines.append(f"        changed.append({share!r} * held[{states}] + (1 - {share!r}) * changed[0])")
        holders = "[variable, *held]" if self._slots else "[variable]"
        lines += [
            f"        for own, after in zip({holders}, changed, strict=True):",
            "            self.assign(own, after)",
        ]
        if self.clip_norm is not None or self.clip_value is not None:
            lines += ["", "    def _clip_gradients(self, grads: list[Any]) -> list[tf.Tensor]:"]
            lines += ["        grads = [tf.convert_to_tensor(g) for g in grads]"]
            if self.clip_norm is not None:
                more = f" + {self.clip_epsilon!r}" if self.clip_epsilon else ""
                lines += [
                    f"        factor = tf.minimum({self.clip_norm!r} / (tf.linalg.global_norm(grads){more}), 1)",
                    "        grads = [g * factor for g in grads]",
                ]
            if self.clip_value is not None:
                limit = self.clip_value
                lines.append(f"        grads = [tf.clip_by_value(g, {-limit!r}, {limit!r}) for g in grads]")
            lines.append("        return grads")
        return lines

    def _load(self, has_class: bool) -> list[str]:
        lines = ["net = build()", 'net.load_weights(FOLDER / "model.keras")']
        lines += ["for name, variable in variables_of(net).items():", "    variable.trainable = name in TRAINED"]
        made = "Training(net.input, net.output, name=net.name)" if has_class else "net"
        return [
            "def load() -> keras.Model:",
            '    """The model with its weights, of which some are trained."""',
            *indented([*lines, f"return {made}"]),
        ]

    def _make_optimizer(self) -> list[str]:
        rate = own_schedule(self) if self.scheduled else repr(self.lr)
        rate = "Rate()" if rate is None else rate
        rate = f"keras.optimizers.schedules.{rate}" if rate[0].isupper() and rate != "Rate()" else rate
        lines = ["def make_optimizer(net: keras.Model) -> keras.optimizers.Optimizer:", '    """Without state."""']
        if (own := own_optimizer(self)) is not None:
            return [*lines, *indented(wrap(f"return {own.replace('learning_rate', rate, 1)}"))]
        options = "".join(f", {key}={value!r}" for key, value in accumulation(self).items())
        made = f"{formula(self.optimizer).name}({rate}{options})"
        if not self.groups:
            return [*lines, *indented(wrap(f"return {made}"))]
        lines += indented(wrap(f"optimizer = {made}"))
        lines.append("    rules = {")
        for rule, names in self.groups.items():
            lines += indented(wrap(f"**dict.fromkeys({listed(names)}, ({rule.lr!r}, {rule.decay!r})),"), 2)
        return [
            *lines,
            "    }",
            "    optimizer.rules = [rules[name] for name in trained_in(net)]",
            "    return optimizer",
        ]

    def _states(self, is_own: bool) -> list[str]:
        slots = "[optimizer.momentums]" if is_own else "optimizer.slots"
        return [
            "def states_of(net: keras.Model, optimizer: Any) -> dict[str, keras.Variable]:",
            '    """The states of the optimizer, by weight and slot."""',
            f"    own = zip(SLOTS, {slots}, strict=True)",
            "    return {",
            '        f"{name}.{slot}": held',
            "        for slot, holders in own",
            "        for name, held in zip(trained_in(net), holders, strict=True)",
            "    }",
        ]

    def _compiled(self, loss: str | None) -> list[str]:
        made = "step" if self.accumulate == 1 else f"step * {self.accumulate}"
        count = "optimizer.iterations" if self.accumulate == 1 else "optimizer._iterations"
        lines = ["optimizer = make_optimizer(net)", "optimizer.build(net.trainable_variables)"]
        if self._slots:
            lines += ["states = states_of(net, optimizer)"]
            if self.optimizer.states:
                lines += STATES.strip("\n").splitlines()
                lines += FIRST.strip("\n").splitlines() if self._starts else []
            if self.average is not None:
                lines += AVERAGES.strip("\n").splitlines()
        lines.append(f"{count}.assign({made})")
        own = f"loss={loss}, " if loss is not None else ""
        lines += wrap(f"net.compile(optimizer, {own}jit_compile=False)")
        return [
            "def prepare(net: keras.Model, step: int) -> None:",
            '    """Compile the model with its loss and its optimizer, as it is after so many steps."""',
            *indented(lines),
        ]

    def _train(self) -> list[str]:
        lines = (
            FORGET.replace("ACCUMULATE", str(self.accumulate)).strip("\n").splitlines() if self.accumulate > 1 else []
        )
        return [
            "def train(net: keras.Model, batches: Sequence[Batch]) -> list[float]:",
            f'    """{self.doc_of_training()}; gives the loss of each."""',
            *indented(lines),
            "    losses = Losses()",
            "    net.fit(Batches(batches), shuffle=False, verbose=0, callbacks=[losses])",
            "    return losses.found",
        ]

    def _save(self) -> list[str]:
        body = SAVED.strip("\n").splitlines()
        if self._slots:
            body.append("states = states_of(net, net.optimizer)")
            body.append("files = {}")
        if self.optimizer.states:
            own = 'if not key.endswith(".average")' if self.average is not None else ""
            body += wrap(
                f'files["optimizer.safetensors"] = {{key: v.numpy() for key, v in states.items() {own}}}'.replace(
                    " }", "}"
                )
            )
        if self.average is not None:
            body += wrap('files["average.safetensors"] = {name: states[f"{name}.average"].numpy() for name in TRAINED}')
        if not self._slots:
            return [
                *wrap("def save(net: keras.Model, *, step: int, epoch: int) -> None:"),
                '    """Write everything to where it is read from: all of it or nothing, whatever interrupts this."""',
                *indented(body),
                '    note_progress(step, epoch, ["model.keras"])',
                "    load_progress()",
            ]
        return self.save(["net: keras.Model"], body, "tensors", '["model.keras", *files]')

    def _main(self) -> list[str]:
        return self.main(
            "file[name].astype(dtype)",
            ["net = load()", "prepare(net, made)"],
            [
                *(SEED.strip("\n").splitlines() if self.draws else []),
                "losses = train(net, batches_of(data, args.batch, epoch))",
            ],
            ["net"],
        )


IMPORTS = {
    **script.IMPORTS,
    "keras": "import keras",
    "tf": "import tensorflow as tf",
    "load_file": "from safetensors.numpy import load_file",
    "save_file": "from safetensors.numpy import save_file",
}
COMPUTE_LOSS = """
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True) -> tf.Tensor:
        return loss_of(self, y_pred, y)
"""
CALL = """
    def call(self, inputs: Any, training: bool = False, mask: Any = None) -> Any:
        return super().call(inputs, training=False, mask=mask)  # dropout and batch normalisation are as in inference
"""
BUILD = """
    def build(self, variables: list[Any]) -> None:
        if not self.built:
            super().build(variables)
            self.slots = [self.add_optimizer_variables(variables, slot) for slot in SLOTS]
"""
UPDATE_STEP = """
    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        g = tf.convert_to_tensor(gradient)"""
VARIABLES = '''
def variables_of(net: keras.Model) -> dict[str, keras.Variable]:
    """By the names that the files have for them: the layer, and the place in it."""
    return {f"{layer.name}/{i}": variable for layer in net.layers for i, variable in enumerate(layer.weights)}


def trained_in(net: keras.Model) -> list[str]:
    """The names of what is trained, in the order of Keras."""
    names = {id(variable): name for name, variable in variables_of(net).items()}
    return [names[id(variable)] for variable in net.trainable_variables]
'''
STATES = """
if (FOLDER / "optimizer.safetensors").exists():
    for key, tensor in load_file(FOLDER / "optimizer.safetensors").items():
        states[key].assign(tensor)
"""
FIRST = """
else:
    for key, held in states.items():
        held.assign(tf.fill(held.shape, STARTS.get(key.rpartition(".")[2], 0.0)))
"""
AVERAGES = """
now = {name: variable.numpy() for name, variable in variables_of(net).items() if name in TRAINED}
if (FOLDER / "average.safetensors").exists():
    now = load_file(FOLDER / "average.safetensors")
for name, tensor in now.items():
    states[f"{name}.average"].assign(tensor)
"""
BATCHES_OF_KERAS = '''
class Batches(keras.utils.PyDataset):
    """Batches as `fit` takes them."""

    def __init__(self, batches: Sequence[Batch]) -> None:
        super().__init__()
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, index: int) -> Any:
        batch = self.batches[index]
        return GIVEN
'''
LOSSES = '''
class Losses(keras.callbacks.Callback):
    """Notes the loss of each batch: Keras itself tells the mean of those so far."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[float] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.model.reset_metrics()

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.found.append(float(logs["loss"]))
'''
FORGET = """
optimizer = net.optimizer
optimizer._iterations.assign(optimizer.iterations * ACCUMULATE)
for waiting in optimizer._accumulated_gradients:
    waiting.assign(tf.zeros_like(waiting))  # of batches that made no step
"""
SAVED = """
keras.Model(net.input, net.output, name=net.name).save(FOLDER / "model.part.keras")
(FOLDER / "model.part.keras").replace(FOLDER / "model.keras.part")
"""
SEED = """
for number, layer in enumerate(net.layers):
    if hasattr(layer, "seed_generator"):  # an epoch is the same, however often training was interrupted
        layer.seed_generator.state.assign([epoch, number])
"""
BATCHES = '''
def batches_of(data: Batch, size: int, seed: int) -> list[Batch]:
    """Cut into batches, in an order that the seed gives."""
    count = min(len(array) for array in data.values())
    order = np.random.default_rng(seed).permutation(count)
    parts = [order[start : start + size] for start in range(0, count, size)]
    return [{name: array[part] for name, array in data.items()} for part in parts]
'''
