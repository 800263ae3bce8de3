"""The text of `train.py`: what someone would write by hand to train the model in TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onward.backends.emit.helpers import sort_imports
from onward.backends.emit.package import imports
from onward.backends.emit.printing.language import wrap
from onward.training.export import script
from onward.training.export.script import ALONE, PROGRESS, Text, batches, indented, listed, quoted
from onward.training.export.tensorflow.in_tensorflow import InTensorFlow
from onward.training.export.tensorflow.losses import called
from onward.training.export.tensorflow.updates import update

TRACED = "autograph=False, reduce_retracing=True"
"""No step has branches or loops in Python that depend on tensors: AutoGraph would look for them for seconds."""


@dataclass(frozen=True)
class Script(InTensorFlow):
    """In TensorFlow's words."""

    def weight(self, name: str) -> str:
        return f"weights[{quoted(name)}]"

    def text(self) -> str:
        loss = self._loss()
        parts: list[Text] = [loss, *called(loss)]
        parts.append(update(self.optimizer, self.optimizer.states))
        if self.scheduled:
            parts.append(self.rate(("tf.Tensor", "tf.Tensor")))
        parts += [VARIABLES, self._trained_in(), self._load_state(), self._slopes(), self._move()]
        parts += [] if self.accumulate > 1 else [self._step()]
        parts += [self._train(), PROGRESS, self._save(), batches("Batch", "Batch"), ALONE, self._main()]
        text = self.joined(parts)
        return self.whole(self._head(text), text)

    @property
    def _traced(self) -> list[str]:
        """How the functions that run for each batch are made: what draws is traced anew in each epoch."""
        return [] if self.draws else [f"@tf.function({TRACED})"]

    def _head(self, body: str) -> list[str]:
        constants = ["Batch = dict[str, np.ndarray]", "Variables = dict[str, tf.Variable]", *self.tables()]
        constants += wrap(f"TRAINED = {listed([name for name in self.trained if not self._is_small(name)])}")
        constants += wrap(f"SLOTS = {listed(self._slots)}") if self._slots else []
        constants += wrap(f"STARTS = {self._starts!r}") if self._starts else []
        if self.groups:
            constants += self.rules()
        more, made = self.modules.instances()
        text = "\n".join([*constants, body])
        own = sorted(["from .model import Model, load", *more])
        return [*sort_imports(imports(text, IMPORTS)), "", *own, "", *constants, *made]

    def _is_small(self, name: str) -> bool:
        return name.rpartition(".")[0] in self.adapters and name[-2:] in (".a", ".b")

    def _loss(self) -> list[str]:
        def weights(names: Sequence[str]) -> str:
            return f"[weights[name] for name in {listed(names)}]" if names else "weights.values()"

        return [
            "def loss_of(net: Model, weights: Variables, batch: Any) -> tf.Tensor:",
            '    """What training minimises."""',
            *indented(wrap(f"{self.result} = net({', '.join(self.arguments)}, training={self.trains})")),
            *indented(self.summed(self._loss_call, weights)),
        ]

    def _trained_in(self) -> list[str]:
        lines = ["variables = variables_of(net)", "weights = {name: variables[name] for name in TRAINED}"]
        if self.adapters:
            lines += ADAPTED.strip("\n").splitlines()
        return [
            "def trained_in(net: Model) -> Variables:",
            '    """What is trained, by name."""',
            *indented([*lines, "return weights"]),
        ]

    def _load_state(self) -> list[str]:
        lines = ['state = {"step": tf.Variable(step, dtype=tf.int64)}']
        if self.adapters:
            lines += ORIGINALS.strip("\n").splitlines()
        if self.optimizer.states:
            slots = "SLOTS[:-1]" if self.average is not None else "SLOTS"
            text = STATES.replace("SLOTS", slots).replace("FIRST", "STARTS.get(slot, 0)" if self._starts else "0")
            lines += text.strip("\n").splitlines()
        if self.average is not None:
            lines += AVERAGES.strip("\n").splitlines()
        net = "net: Model, " if self.adapters else ""
        return [
            f"def load_state({net}weights: Variables, step: int) -> Variables:",
            '    """What the next step depends on besides the weights, after so many steps."""',
            *indented([*lines, "return state"]),
        ]

    def _slopes(self) -> list[str]:
        lines = ["with tf.GradientTape() as tape:", "    loss = loss_of(net, weights, batch)"]
        if self.adapters:
            lines += CHAIN.strip("\n").splitlines()
        else:
            lines += [
                "found = tape.gradient(loss, weights)",
                "return loss, {name: tf.convert_to_tensor(g) for name, g in found.items()}",
            ]
        given = "net: Model, weights: Variables, batch: Any" + (", state: Variables" if self.adapters else "")
        return [
            *(self._traced if self.accumulate > 1 else []),
            *wrap(f"def slopes({given}) -> tuple[tf.Tensor, dict[str, tf.Tensor]]:"),
            '    """The loss, and its gradients."""',
            *indented(lines),
        ]

    def _move(self) -> list[str]:
        lines = []
        if self.clip_norm is not None:
            more = f" + {self.clip_epsilon!r}" if self.clip_epsilon else ""
            lines += ["norm = tf.linalg.global_norm(list(gradients.values()))"]
            lines += [f"shrink = tf.minimum({self.clip_norm!r} / (norm{more}), 1)"]
        lines += ['step = state["step"].assign_add(1)']
        rate = (
            f"{self.lr!r} * tf.cast(rate(tf.cast(step, tf.float64)), tf.float32)" if self.scheduled else repr(self.lr)
        )
        lines += [f"lr = {rate}"]
        loop = ["g = gradients[name]"]
        loop += ["g = g * shrink"] if self.clip_norm is not None else []
        if self.clip_value is not None:
            loop += [f"g = tf.clip_by_value(g, {-self.clip_value!r}, {self.clip_value!r})"]
        decay, factor = repr(self.optimizer.weight_decay), ""
        if self.groups:
            loop.append("factor, decay = RULES[name]")
            decay, factor = "decay", "factor * "
        count, more = len(self.optimizer.states), ""
        if self._slots:
            loop.append('held = [state[f"{name}.{slot}"] for slot in SLOTS]')
            more = f", *held[:{count}]" if self.average is not None else ", *held"
        loop += wrap(f"changed = update(w, g, tf.cast({factor}lr, w.dtype), {decay}, step{more if count else ''})")
        if self.average is not None:
            share = self.average
            loop += wrap(f"changed.append({share!r} * held[{count}] + (1 - {share!r}) * changed[0])")
        loop += [
            f"for own, after in zip([w{', *held' if self._slots else ''}], changed, strict=True):",
            "    own.assign(after)",
        ]
        lines += ["for name, w in weights.items():", *indented(loop)]
        if self.adapters:
            lines += MERGED.strip("\n").splitlines()
        return [
            *(self._traced if self.accumulate > 1 else []),
            "def move(weights: Variables, state: Variables, gradients: dict[str, tf.Tensor]) -> None:",
            '    """Change the weights, and the state, by gradients."""',
            *indented(lines),
        ]

    def _step(self) -> list[str]:
        state = ", state" if self.adapters else ""
        return [
            *self._traced,
            "def step(net: Model, weights: Variables, state: Variables, batch: Any) -> tf.Tensor:",
            '    """Make a step; gives the loss before it."""',
            f"    loss, gradients = slopes(net, weights, batch{state})",
            "    move(weights, state, gradients)",
            "    return loss",
        ]

    def _train(self) -> list[str]:
        several, state = self.accumulate > 1, ", state" if self.adapters else ""
        names = {name: name for name in (["slopes", "move"] if several else ["step"])}
        lines = []
        if self.draws:
            names = {name: f"{name}_now" for name in names}
            lines = ["# what is drawn follows from the seed that is set before this is traced"]
            lines += [f"{now} = tf.function({name}, {TRACED})" for name, now in names.items()]
        lines.append("losses = []")
        if several:
            loop = [
                f"loss, gradients = {names['slopes']}(net, weights, batch{state})",
                "waiting = {name: waiting.get(name, 0) + g for name, g in gradients.items()}",
                f"if number % {self.accumulate} == 0:",
                f"    {names['move']}(weights, state, {{name: g / {self.accumulate} for name, g in waiting.items()}})",
                "    waiting = {}",
                "losses.append(loss)",
            ]
            lines += ["waiting: dict[str, Any] = {}", "for number, batch in enumerate(batches, 1):", *indented(loop)]
        else:
            lines += ["for batch in batches:", f"    losses.append({names['step']}(net, weights, state, batch))"]
        return [
            *wrap(
                "def train(net: Model, weights: Variables, state: Variables, batches: Iterable[Batch]) -> list[float]:"
            ),
            f'    """{self.doc_of_training()}; gives the loss of each."""',
            *indented([*lines, "return [float(loss) for loss in losses]"]),
        ]

    def _save(self) -> list[str]:
        body = ['saved = load_file(FOLDER / "weights.safetensors")']
        body += ["now = {name: variable.numpy() for name, variable in variables_of(net).items()}"]
        body += ['files = {"weights.safetensors": {**saved, **now}}']
        if self.adapters:
            body += SAVED_ADAPTERS.strip("\n").splitlines()
        if self.optimizer.states:
            slots = "SLOTS[:-1]" if self.average is not None else "SLOTS"
            body += [f'keys = [f"{{name}}.{{slot}}" for name in weights for slot in {slots}]']
            body += ['files["optimizer.safetensors"] = {key: state[key].numpy() for key in keys}']
        if self.average is not None:
            body += wrap('files["average.safetensors"] = {name: state[f"{name}.average"].numpy() for name in weights}')
        return self.save(["net: Model", "weights: Variables", "state: Variables"], body, "tensors")

    def _main(self) -> list[str]:
        net = "net, " if self.adapters else ""
        return self.main(
            "file[name].astype(dtype)",
            ["net = load()", "weights = trained_in(net)", f"state = load_state({net}weights, made)"],
            [
                *(["tf.random.set_seed(epoch)"] if self.draws else []),
                "losses = train(net, weights, state, batches_of(data, args.batch, epoch))",
            ],
            ["net", "weights", "state"],
        )


IMPORTS = {
    **script.IMPORTS,
    "tf": "import tensorflow as tf",
    "load_file": "from safetensors.numpy import load_file",
    "save_file": "from safetensors.numpy import save_file",
}
VARIABLES = '''
def variables_of(net: Model) -> Variables:
    """By the names that weights.safetensors has for them; TensorFlow writes them with slashes."""
    names = {name.replace(".", "/"): name for name in load_file(FOLDER / "weights.safetensors")}
    return {names[variable.name.split(":")[0]]: variable for variable in net.variables}
'''
ADAPTED = """
saved = load_file(FOLDER / "adapters.safetensors")
for name in [f"{matrix}.{part}" for matrix in ADAPTERS for part in "ab"]:
    weights[name] = tf.Variable(saved[name])
"""
ORIGINALS = """
variables, saved = variables_of(net), load_file(FOLDER / "adapters.safetensors")
for name in ADAPTERS:
    state[name] = variables[name]
    state[f"{name}.original"] = tf.Variable(saved[f"{name}.original"], trainable=False)
"""
CHAIN = """
found = tape.gradient(loss, {**weights, **{name: state[name] for name in ADAPTERS}}, unconnected_gradients="zero")
gradients = {name: tf.convert_to_tensor(g) for name, g in found.items()}
for name, scale in ADAPTERS.items():
    g, a, b = gradients.pop(name), weights[f"{name}.a"], weights[f"{name}.b"]
    gradients[f"{name}.a"] += scale * tf.matmul(g, b, transpose_b=True)
    gradients[f"{name}.b"] += scale * tf.matmul(a, g, transpose_a=True)
return loss, gradients
"""
MERGED = """
for name, scale in ADAPTERS.items():
    product = weights[f"{name}.a"] @ weights[f"{name}.b"]
    state[name].assign(state[f"{name}.original"] + scale * product)
"""
SAVED_ADAPTERS = """
small = {f"{name}.{part}": weights[f"{name}.{part}"] for name in ADAPTERS for part in "ab"}
small |= {f"{name}.original": state[f"{name}.original"] for name in ADAPTERS}
files["adapters.safetensors"] = {name: variable.numpy() for name, variable in small.items()}
"""
STATES = """
path = FOLDER / "optimizer.safetensors"
saved = load_file(path) if path.exists() else {}
for name, w in weights.items():
    for slot in SLOTS:
        now = saved.get(f"{name}.{slot}", np.full(w.shape, FIRST, w.dtype.as_numpy_dtype))
        state[f"{name}.{slot}"] = tf.Variable(now, trainable=False)
"""
AVERAGES = """
path = FOLDER / "average.safetensors"
saved = load_file(path) if path.exists() else weights
for name in weights:
    state[f"{name}.average"] = tf.Variable(saved[name], trainable=False)
"""
