"""The text of `train.py`: what someone would write by hand to train the model in JAX with optax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from onward.backends.emit.helpers import sort_imports
from onward.backends.emit.package import imports
from onward.backends.emit.printing.language import wrap
from onward.training.export import script
from onward.training.export.jax.losses import HELPERS
from onward.training.export.jax.transforms import CLIP, OF_FILE, OWN
from onward.training.export.jax.words import APART, core, decays, fields_of, is_counted, is_own, loss_call
from onward.training.export.schedules import Words
from onward.training.export.script import ALONE, PROGRESS, ROWS, Text, batches, indented, listed, quoted
from onward.training.recipe.optimizers import LAMB, initial
from onward.training.recipe.user_models import OnnxOptimizer

TRAINING = "in_training"
"""The module with the model as it is while it is trained, where that differs."""


@dataclass(frozen=True)
class Script(script.Script):
    """In the words of JAX and optax."""

    dtypes, numbers = (
        "np",
        Words("jnp.minimum", "jnp", "jnp.pi", "jnp.where({test}, {yes}, {no})", "jnp.array({table})[{index}]"),
    )

    has_constants: bool = False
    """Whether the model holds what is not trained."""
    statistics: Sequence[str] = ()
    """What of that a step changes: the model in training gives these after its outputs."""
    draws: bool = False
    """Whether the model in training is given a key, for dropout and other random numbers."""

    def text(self) -> str:
        loss = self._loss()
        parts: list[Text] = [loss]
        body = "\n".join(loss)
        parts += [text for name, text in HELPERS.items() if f" {name}(" in body]
        if self.clip_norm is not None and self.clip_epsilon:
            parts.append(CLIP)
        if is_own(self.optimizer):
            parts.append(OWN[type(self.optimizer)].source)
        if self._is_graph:
            parts.append(self._of_file())
        elif self.groups:
            parts.append(AMONG)
        if self.scheduled:
            parts.append(self.rate(("Array", "Any")))
        parts += [self._make_optimizer(), FLAT, *([ADAPTED] if self.adapters else []), self._load_optimizer()]
        parts += [LOAD_KEY] if self.draws else []
        parts += [LOAD_AVERAGE] if self.average is not None else []
        parts += [
            self._step(),
            self._train(),
            PROGRESS,
            self._save(),
            SPREAD,
            batches("dict[str, np.ndarray]", "Batch", f"spread({ROWS})"),
            ALONE,
            self._main(),
        ]
        text = self.joined(parts)
        return self.whole(self._head(text), text)

    @property
    def _fields(self) -> dict[str, str]:
        return fields_of(self.optimizer)

    @property
    def _is_graph(self) -> bool:
        return isinstance(self.optimizer, OnnxOptimizer)

    @property
    def _counted(self) -> bool:
        return self.scheduled or is_counted(self.optimizer)

    @property
    def _changed(self) -> list[str]:
        """What a step makes anew."""
        return ["params", "state", *(["key"] if self.draws else []), *(["constants"] if self.statistics else [])]

    @property
    def _fixed(self) -> list[str]:
        """What a step reads besides that and the batch."""
        constants = ["constants"] if self.has_constants and not self.statistics else []
        return [*(["originals"] if self.adapters else []), *constants]

    @property
    def _kept(self) -> list[str]:
        """What training makes anew, and `save` writes."""
        return [*self._changed, *(["average"] if self.average is not None else [])]

    @property
    def _read(self) -> list[str]:
        """What a loss depends on, in the order of its arguments."""
        own = {"key": self.draws, "originals": self.adapters, "constants": self.has_constants}
        return ["params", "batch", *(name for name, there in own.items() if there)]

    def _head(self, body: str) -> list[str]:
        constants = ["Batch = dict[str, Array]", *self.tables()]
        if self._fields:
            fields = ", ".join(f"{quoted(slot)}: {quoted(field)}" for slot, field in self._fields.items())
            constants += wrap(f"SLOTS = {{{fields}}}")
        if self._is_graph:
            constants += wrap(f"STARTS = {[initial(self.optimizer, slot) for slot in self.optimizer.states]!r}")
            constants += self.rules() if self.groups else []
        if self.statistics:
            constants += wrap(f"STATISTICS = {listed(self.statistics)}")
        text = "\n".join([*constants, body])
        module = TRAINING if self.statistics or self.draws else "model"
        more, made = self.modules.instances()
        own = imports(text, OWN_IMPORTS) | {f"from .{module} import apply", *more}
        known = imports("\n".join([text, *made]), IMPORTS)
        return [*sort_imports(known), "", *sort_imports(own), "", *constants, *made]

    def weight(self, name: str) -> str:
        return f"flat(params)[{quoted(name)}]"

    def turned(self, text: str, axes: tuple[int, ...]) -> str:
        return f"{text}.transpose{axes}"

    def _of_file(self) -> str:
        """The graph as an optimizer of optax."""
        text = OF_FILE.replace("RATE", f"{self.lr!r} * rate(count)" if self.scheduled else repr(self.lr))
        text = text.replace("RULE", "RULES[name]" if self.groups else f"1.0, {self.optimizer.weight_decay!r}")
        fields = "".join(f"    {field}: Any\n" for field in self._fields.values())
        return text.replace("    FIELDS\n", fields)

    def _loss(self) -> list[str]:
        def weights(names: Sequence[str]) -> str:
            return f"[flat(params)[name] for name in {listed(names)}]" if names else "jax.tree.leaves(params)"

        params = "merged(params, originals)" if self.adapters else "params"
        given = ", ".join([params, *self.arguments, *(n for n in ("key", "constants") if n in self._read)])
        lines = wrap(f"{self.result} = apply({given})")
        more = []
        if self.statistics:
            more.append("dict(zip(STATISTICS, statistics, strict=True))")
            count = len(self.outputs)
            lines = wrap(f"{self.result}, *statistics = apply({given})")
            if count > 1:
                lines = [*wrap(f"found = apply({given})"), f"outputs, statistics = found[:{count}], found[{count}:]"]
        doc = "What training minimises" + (", and the statistics after it." if self.statistics else ".")
        return [
            *wrap(f"def loss_of({self._typed(self._read)}) -> {'Any' if self.statistics else 'Array'}:"),
            f'    """{doc}"""',
            *indented([*lines, *self.summed(loss_call, weights, *more)]),
        ]

    def _typed(self, names: Sequence[str]) -> str:
        types = {"batch": "Batch", "key": "Array", "batches": "Iterable[Batch]"}
        return ", ".join(f"{name}: {types.get(name, 'Any')}" for name in names)

    def _make_optimizer(self) -> list[str]:
        own = "clip_by_norm" if self.clip_epsilon else "optax.clip_by_global_norm"
        chain = [f"{own}({self.clip_norm!r})"] if self.clip_norm is not None else []
        chain += [f"optax.clip({self.clip_value!r})"] if self.clip_value is not None else []
        chain += ["by_file()"] if self._is_graph else self._chain()
        made = chain[0] if len(chain) == 1 else f"optax.chain({', '.join(chain)})"
        lines = wrap(f"return {made}")
        kind = "optax.GradientTransformation"
        if self.accumulate > 1:
            lines = [*wrap(f"optimizer = {made}"), f"return optax.MultiSteps(optimizer, {self.accumulate})"]
            kind = "optax.MultiSteps"
        return [f"def make_optimizer() -> {kind}:", '    """Without state."""', *indented(lines)]

    def _chain(self) -> list[str]:
        """What optax makes of gradients that are clipped."""
        decay = decays(self.optimizer, self.groups)
        chain = (
            [*core(self.optimizer), *decay] if isinstance(self.optimizer, APART) else [*decay, *core(self.optimizer)]
        )
        chain += ["optax.scale_by_trust_ratio()"] if isinstance(self.optimizer, LAMB) else []
        chain += [
            f"optax.masked(optax.scale({rule.lr!r}), partial(among, {listed(names)}))"
            for rule, names in self.groups.items()
            if rule.lr != 1
        ]
        rate = f"lambda count: {self.lr!r} * rate(count + 1)" if self.scheduled else repr(self.lr)
        chain.append(f"optax.scale_by_learning_rate({rate})")
        if post := getattr(self.optimizer, "norm_coefficient_post", 0):
            shrunk = f"jax.tree.map(lambda u, w: u - {post!r} * (w + u), moves, params)"
            chain.append(f"optax.stateless(lambda moves, params: {shrunk})")
        return chain

    def _load_optimizer(self) -> list[str]:
        head = [
            "def load_optimizer(params: Any, step: int) -> Any:",
            '    """The state of the optimizer after the steps that were made."""',
        ]
        known = ["count=np.int32(step)"] if self._counted else []
        lines = ["state = make_optimizer().init(params)"] if known or self._fields else []
        if self._fields:
            known.append("**trees")
            if not self.steps:
                lines += ['if not (FOLDER / "optimizer.safetensors").exists():', "    return state"]
            lines += ['saved = load_file(FOLDER / "optimizer.safetensors")', "trees = {"]
            lines += ['    field: nested({name: saved[f"{name}.{slot}"] for name in flat(params)})']
            lines += ["    for slot, field in SLOTS.items()", "}"]
        made = f"optax.tree_utils.tree_set(state, {', '.join(known)})" if known else "make_optimizer().init(params)"
        if self.accumulate > 1:  # set apart, since it stands around the others
            lines += [*wrap(f"state = {made}")]
            made = "optax.tree_utils.tree_set(state, gradient_step=np.int32(step))"
        lines += wrap(f"return {made}")
        return [*head, *indented(lines)]

    def _step(self) -> list[str]:
        changed = {"params": "parameters", "key": "key", "constants": "constants"}
        named = [changed.get(name, name) for name in self._changed]
        doc = f"{', '.join(named[:-1])} and {named[-1]} after a step, and the loss before it.".capitalize()
        options, loss = ("has_aux=True", "(loss, statistics)") if self.statistics else ("", "loss")
        gradient = f"jax.value_and_grad({', '.join(filter(None, ['loss_of', options]))})"
        own = ["own" if name == "key" else name for name in self._read]
        lines = ["key, own = jax.random.split(key)"] if self.draws else []
        lines += wrap(f"{loss}, gradients = {gradient}({', '.join(own)})")
        lines.append("moves, state = make_optimizer().update(gradients, state, params)")
        lines += ["constants = nested({**flat(constants), **statistics})"] if self.statistics else []
        results = ", ".join(["optax.apply_updates(params, moves)", *self._changed[1:], "loss"])
        given = self._typed([*self._changed[:2], "batch", *self._changed[2:], *self._fixed])
        return [
            "@partial(jax.jit, donate_argnums=(0, 1))",
            *wrap(f"def step({given}) -> tuple[{', '.join(['Any'] * len(self._changed))}, Array]:"),
            f'    """{doc}"""',
            *indented([*lines, f"return {results}"]),
        ]

    def _train(self) -> list[str]:
        several, kept = self.accumulate > 1, self._kept
        lines = ["constants = load_constants()"] if "constants" in self._fixed else []
        lines += FORGET.strip("\n").splitlines() if several else []
        counted = several and self.average is not None
        lines += ["losses = []", "for number, batch in enumerate(batches, 1):" if counted else "for batch in batches:"]
        given = ", ".join([*self._changed[:2], "batch", *self._changed[2:], *self._fixed])
        loop = wrap(f"{', '.join(self._changed)}, loss = step({given})")
        if self.average is not None:
            update = f"average = optax.incremental_update(params, average, 1 - {self.average!r})"
            loop += [f"if number % {self.accumulate} == 0:", f"    {update}"] if several else [update]
        loop.append("losses.append(loss)")
        lines += [*indented(loop), f"return {', '.join(kept)}, [float(loss) for loss in losses]"]
        arguments = self._typed([*kept, *self._originals, "batches"])
        results = f"tuple[{', '.join(['Any'] * len(kept))}, list[float]]"
        return [
            *wrap(f"def train({arguments}) -> {results}:"),
            f'    """{self.doc_of_training()}; gives what it made of all these, and the loss of each batch."""',
            *indented(lines),
        ]

    @property
    def _originals(self) -> list[str]:
        return ["originals"] if self.adapters else []

    def _save(self) -> list[str]:
        whole = "merged(params, originals)" if self.adapters else "params"
        body = [f'files = {{"weights.safetensors": flat({whole})}}']
        if self.adapters:
            body += SAVED_ADAPTERS.strip("\n").splitlines()
        if self.statistics:
            body.append('files["constants.safetensors"] = flat(constants)')
        if self._fields:
            body += STATE.strip("\n").splitlines()
        if self.draws:
            body.append('files["key.safetensors"] = {"key": jax.random.key_data(key)}')
        if self.average is not None:
            body.append('files["average.safetensors"] = flat(average)')
        return self.save([self._typed([*self._kept, *self._originals])], body, "tensors")

    def _main(self) -> list[str]:
        kept = ", ".join(self._kept)
        given = ", ".join([*self._kept, *self._originals])
        loaded = {"key": "load_key()", "constants": "load_constants()", "average": "load_average(params)"}
        return self.main(
            "file[name].astype(dtype)",
            [
                "params, originals = load_adapted()" if self.adapters else "params = load()",
                "state = load_optimizer(params, made)",
                *(f"{name} = {loaded[name]}" for name in self._kept[2:]),
            ],
            wrap(f"{kept}, losses = train({given}, batches_of(data, args.batch, epoch))"),
            [given],
        )


IMPORTS = {
    **script.IMPORTS,
    "NamedTuple": "from typing import NamedTuple",
    "jax": "import jax",
    "jnp": "import jax.numpy as jnp",
    "optax": "import optax",
    "Array": "from jax import Array",
    "NamedSharding": "from jax.sharding import Mesh, NamedSharding, PartitionSpec",
    "load_file": "from safetensors.flax import load_file",
    "save_file": "from safetensors.flax import save_file",
}
OWN_IMPORTS = {
    "load": "from .model import load",
    "load_constants": "from .model import load_constants",
    "nested": "from .ops import nested",
}
AMONG = '''
def among(names: list[str], params: Any) -> Any:
    """Which of the parameters have these names."""
    return nested({name: name in names for name in flat(params)})
'''
FLAT = '''
def flat(tree: Any) -> dict[str, Any]:
    """The tensors of a tree by their names in the files."""
    paths = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): leaf for path, leaf in paths}
'''
ADAPTED = '''
def load_adapted() -> tuple[Any, dict[str, Array]]:
    """What is trained, with `a` and `b` in the place of each adapted matrix, and those matrices without their adapters.

    `load` gives the parameters with adapters merged.
    """
    saved = load_file(FOLDER / "adapters.safetensors")
    originals = {name: saved.pop(f"{name}.original") for name in ADAPTERS}
    others = {name: tensor for name, tensor in flat(load()).items() if name not in ADAPTERS}
    return nested({**others, **saved}), originals


def merged(params: Any, originals: dict[str, Array]) -> Any:
    """The parameters of the model: each adapted matrix has the product of its two small ones in it."""
    found = flat(params)
    for name, scale in ADAPTERS.items():
        found[name] = originals[name] + scale * (found.pop(f"{name}.a") @ found.pop(f"{name}.b"))
    return nested(found)
'''
SAVED_ADAPTERS = """
trained, small = flat(params), [f"{name}.{part}" for name in ADAPTERS for part in "ab"]
before = {f"{name}.original": tensor for name, tensor in originals.items()}
files["adapters.safetensors"] = {**before, **{name: trained[name] for name in small}}
"""
LOAD_KEY = '''
def load_key() -> Array:
    """What the random numbers of the next step follow from."""
    if (FOLDER / "key.safetensors").exists():
        return jax.random.wrap_key_data(load_file(FOLDER / "key.safetensors")["key"])
    return jax.random.key(0)
'''
LOAD_AVERAGE = '''
def load_average(params: Any) -> Any:
    """The moving average of the weights, in place of which they are used themselves before the first step."""
    if (FOLDER / "average.safetensors").exists():
        return nested(load_file(FOLDER / "average.safetensors"))
    return jax.tree.map(jnp.copy, params)
'''
FORGET = """
nothing = jax.tree.map(jnp.zeros_like, (state.mini_step, state.acc_grads))
state = state._replace(mini_step=nothing[0], acc_grads=nothing[1])  # of batches that made no step
"""
STATE = """
files["optimizer.safetensors"] = {
    f"{name}.{slot}": tensor
    for slot, field in SLOTS.items()
    for name, tensor in flat(optax.tree_utils.tree_get(state, field)).items()
}
"""
SPREAD = '''
def spread(array: np.ndarray) -> Array:
    """Its rows are divided among all devices of this process; where they do not come out even, each has all of them.

    A step computes the same either way: JAX adds up what the devices find.
    """
    devices = jax.devices()
    rows = PartitionSpec("rows" if len(array) % len(devices) == 0 else None)
    return jax.device_put(array, NamedSharding(Mesh(np.array(devices), ("rows",)), rows))
'''
