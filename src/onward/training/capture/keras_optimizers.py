"""Optimizers of Keras as they are: what one does to a variable is traced, and becomes an ONNX model of a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes import common

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.trained import Storage, Trained, trained
from onward.graph.build import Builder, Tensor
from onward.model import Model
from onward.training.recipe.optimizers import SGD, Clipped, Optimizer
from onward.training.recipe.user_models import OnnxOptimizer, adopt
from onward.training.step_graphs import give_out

Array = np.ndarray[Any, np.dtype[Any]]
STEPS = "steps"
"""How many steps were made before."""
WIDTH = 2
"""Numbers in the variable that is traced: which shape it has makes no difference."""
TOGETHER = ("ReduceSum", "ReduceSumSquare", "ReduceL2", "ReduceMean", "ReduceMax", "ReduceProd", "MatMul", "Gemm")
"""Ops by which one element of a variable would depend on others."""
UNKNOWN = ("LossScaleOptimizer", "MultiOptimizer", "ScheduleFreeAdamW")
"""Those that are made of others, or whose weights are others when the model is used."""
BY_SHAPE = ("Adafactor", "Muon")
"""Those whose step and states depend on the shape of a variable."""


@dataclass
class Taken:
    """What an optimizer of Keras is for a trainable model."""

    optimizer: Optimizer
    step: int = 0
    clip_norm: float | None = None
    accumulate: int = 1
    no_decay: list[int] = field(default_factory=list)
    """Variables without weight decay, by their place."""
    state: list[dict[str, Array]] = field(default_factory=list)
    """Of each variable, by slot."""


def one_by_one(optimizer: Any, variables: Iterable[Any], rows: bool) -> bool:
    """Whether the step of one variable, of any shape, says all; `rows`: there are embeddings."""
    kind = type(optimizer).__name__
    if kind in UNKNOWN:
        raise UnsupportedError(f"the optimizer {kind} is not supported: compile the model with a plain one")
    config = optimizer.get_config()
    average = bool(config.get("use_ema"))
    if _accumulated(config) > 1 and (_is_scheduled(config) or average):
        raise UnsupportedError(
            f"{kind} with accumulated gradients and {'use_ema' if average else 'a schedule'} is not supported"
        )
    if average and config.get("ema_overwrite_frequency"):
        raise UnsupportedError(f"{kind} with ema_overwrite_frequency is not supported: set it to None")
    bound = any(variable.constraint is not None for variable in variables)
    return not (kind in BY_SHAPE or bound or (rows and not adds_up(optimizer)))


def waiting_batches(optimizer: Any) -> tuple[int, int]:
    """How many batches make a step, and how many steps were made; refuses those that wait for one."""
    accumulate, batches = _accumulated(optimizer.get_config()), int(np.asarray(optimizer._iterations))
    if batches % accumulate:
        raise UnsupportedError(f"gradients of {batches % accumulate} batches wait for a step: train until it is made")
    return accumulate, batches // accumulate


def _accumulated(config: Mapping[str, Any]) -> int:
    return int(config.get("gradient_accumulation_steps") or 1)


def _is_scheduled(config: Mapping[str, Any]) -> bool:
    return not isinstance(config["learning_rate"], int | float)


def taken(optimizer: Any, variables: Sequence[Any]) -> Taken:
    """The optimizer for some variables, with its state if it has made steps."""
    kind = type(optimizer).__name__
    config = optimizer.get_config()
    accumulate, steps = waiting_batches(optimizer)
    scheduled, average = _is_scheduled(config), bool(config.get("use_ema"))
    decay = float(config.get("weight_decay") or 0.0)
    made: Optimizer
    if kind == "SGD" and not (config["momentum"] or scheduled or average or config.get("clipnorm")):
        made = SGD(lr=rate_of(optimizer), weight_decay=decay)
        if config.get("clipvalue"):
            made = Clipped(made, float(config["clipvalue"]))
    else:
        made = _traced(optimizer, scheduled, decay)
    state = _state(optimizer, variables, made) if steps else [{} for _ in variables]
    uses = getattr(optimizer, "_use_weight_decay", None) if decay else None
    spared = [i for i, variable in enumerate(variables) if uses is not None and not uses(variable)]
    return Taken(made, steps, config.get("global_clipnorm"), accumulate, spared, state)


def rate_of(optimizer: Any) -> float:
    """As a person would write it: Keras keeps it in single precision."""
    return float(str(np.float32(np.asarray(optimizer.learning_rate))))


def _single(optimizer: Any) -> Any:
    """A new one with the same options, but for those that are about all variables, or several batches."""
    alone = {"gradient_accumulation_steps": None, "global_clipnorm": None}
    return type(optimizer).from_config({**optimizer.get_config(), **alone})


def _built(optimizer: Any, variables: Sequence[Any]) -> list[dict[str, Any]]:
    """Build an optimizer; gives the states that it has for each variable, by what they are called."""
    found: list[dict[str, Any]] = [{} for _ in variables]
    places = {id(variable): i for i, variable in enumerate(variables)}
    original = optimizer.add_variable_from_reference

    def noted(reference_variable: Any, name: Any = None, initializer: Any = "zeros") -> Any:
        made = original(reference_variable, name=name, initializer=initializer)
        found[places[id(reference_variable)]][str(name)] = made
        return made

    object.__setattr__(optimizer, "add_variable_from_reference", noted)
    optimizer.build(list(variables))
    known = {id(variable) for states in found for variable in states.values()}
    known |= {id(optimizer._iterations), id(optimizer._learning_rate)}
    for number, variable in enumerate(v for v in optimizer.variables if id(v) not in known):
        if tuple(variable.shape) != ():
            raise UnsupportedError(
                f"{type(optimizer).__name__} keeps {variable.name!r} of shape {variable.shape}, which is not supported"
            )
        for states in found:
            states[f"shared{number}"] = variable
    return found


def _traced(optimizer: Any, scheduled: bool, decay: float) -> OnnxOptimizer:
    """`apply` for a single variable: clipping, weight decay, schedule and moving average included."""
    import keras
    import tensorflow as tf

    own = _single(optimizer)
    rate = own._learning_rate
    if scheduled:
        rate = keras.Variable(1.0, name="scale")
        own._learning_rate = scaled(own._learning_rate, rate)
    variable = keras.Variable(np.ones(WIDTH, np.float32), name="w")
    (slots,) = _built(own, [variable])
    initial = {slot: float(np.asarray(state).reshape(-1)[0]) for slot, state in slots.items()}

    def step(g: Any, decay: Any) -> Any:
        if own.weight_decay:
            own.weight_decay = decay
        own.apply([g], [variable])
        return tf.zeros(())

    specs = [tf.TensorSpec([WIDTH], tf.float32, name="g"), tf.TensorSpec([], tf.float32, name="decay")]
    function = tf.function(step, autograph=False).get_concrete_function(*specs)
    roles = {"w": variable, "lr": rate, STEPS: own._iterations, **slots}
    names = {held.value.name.split(":")[0]: role for role, held in roles.items()}
    model = _model(trained(function, Storage(), ["done"]), names, list(slots))
    return OnnxOptimizer(
        model,
        lr=1.0 if scheduled else rate_of(optimizer),
        weight_decay=decay,
        by_element=not any(node.op_type in TOGETHER for node in model.ir.graph),
        initial={slot: number for slot, number in initial.items() if number},
    )


def scaled(schedule: Any, scale: Any) -> Any:
    """A schedule times a number that is given from outside."""
    import keras

    class Scaled(keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]
        def __call__(self, step: Any) -> Any:
            return schedule(step) * scale

    return Scaled()


def _model(made: Trained, names: Mapping[str, str], slots: Sequence[str]) -> Model:
    """The step as an ONNX model of an optimizer: `names` says what each variable is in it."""
    source = made.model.ir.graph
    graph = ir.Graph([], [], nodes=[], name="step", opset_imports={"": made.model.ir.opset_imports[""]})
    model = ir.Model(graph, ir_version=made.model.ir.ir_version, producer_name="onward")
    op = Builder(model)
    together = any(node.op_type in TOGETHER for node in source)
    given: dict[str, Tensor] = {}

    def take(name: str, dtype: ir.DataType, shape: ir.Shape | None) -> Tensor:
        value = ir.Value(name=name, type=ir.TensorType(dtype), shape=shape)
        graph.inputs.append(value)
        return op.tensor(value)

    for name in ("w", "g", *slots):
        whole = take(name, ir.DataType.FLOAT, None)
        given[name] = op.Reshape(whole, op.ints([-1])) if together else whole
    given["lr"] = take("lr", ir.DataType.FLOAT, ir.Shape([]))
    given[STEPS] = take("step", ir.DataType.INT64, ir.Shape([])) - 1
    given["decay"] = take("decay", ir.DataType.FLOAT, ir.Shape([]))
    ends = {value.name: value for value in source.outputs}
    for value in [v for node in source for v in node.outputs]:
        value.shape = None
    for name, value in [*source.initializers.items()]:
        if name in names:
            value.const_value = None
            source.initializers.pop(name)
            source.inputs.append(value)
    roles = {role: name for name, role in names.items()}
    _, results = adopt(op, source, [given[names.get(v.name or "", v.name or "")].value for v in source.inputs])
    after = dict(zip(ends, results, strict=True))
    for role in ("w", *slots):
        result = after.get(f"{roles[role]}.next")
        tensor = given[role] if result is None else op.tensor(result)
        if together:
            tensor = op.Reshape(tensor, op.Shape(op.tensor(graph.inputs[0])))
        give_out(op, tensor, f"{role}.next")
    common.RemoveUnusedNodesPass()(model)
    for value in list(graph.inputs):
        if not value.uses() and value.name in ("lr", "step", "decay"):
            graph.inputs.remove(value)
    return Model(model)


def _state(optimizer: Any, variables: Sequence[Any], made: Optimizer) -> list[dict[str, Array]]:
    """The states of each variable."""
    twin = type(optimizer).from_config(optimizer.get_config())
    trained_ones = list(optimizer._trainable_variables)
    slots = _built(twin, trained_ones)
    places = {id(variable): i for i, variable in enumerate(twin.variables)}
    own = {id(v): states for v, states in zip(trained_ones, slots, strict=True)}
    found = []
    for variable in variables:
        if id(variable) not in own:
            raise UnsupportedError(f"{variable.path} is trained, but the optimizer does not know it: compile again")
        states = {slot: optimizer.variables[places[id(twin_state)]] for slot, twin_state in own[id(variable)].items()}
        arrays = {slot: np.asarray(state) for slot, state in states.items() if slot in made.states}
        found.append({slot: np.broadcast_to(array, variable.shape).copy() for slot, array in arrays.items()})
    return found


def adds_up(optimizer: Any) -> bool:
    """Whether it makes the same step of the gradients of rows one by one and of their sum.

    The gradient of an embedding is a list of rows, in which one may stand more than once. Most optimizers of Keras then
    square, or clip, each by itself.
    """
    import keras
    import tensorflow as tf

    results = []
    for dense in (False, True):
        own = _single(optimizer)
        variable = keras.Variable(np.ones((2, 2), np.float32), name="w")
        own.build([variable])
        rows = tf.IndexedSlices(tf.constant([[1.0, 2.0], [-3.0, 1.0]]), tf.constant([1, 1]), tf.constant([2, 2]))
        for _ in range(2):
            own.apply([tf.convert_to_tensor(rows) if dense else rows], [variable])
        results.append(np.asarray(variable))
    return bool(np.allclose(results[0], results[1], rtol=1e-6, atol=0)) and optimizer.global_clipnorm is None
