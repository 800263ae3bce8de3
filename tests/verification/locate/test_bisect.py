import math
from collections.abc import Callable
from dataclasses import replace

import nets
import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from defects import DEFECTS, Defect
from onnx import helper, numpy_helper

from onward import runners
from onward.errors import RunFailure
from onward.model import Model, load
from onward.runners.calls import Inputs, Outputs, Run
from onward.verification.locate import profile
from onward.verification.locate.bisect import Bisection, Subject, bisect
from onward.verification.locate.cut import Cutter

ORT, TORCH = "onnxruntime", "torch"


def of(what: str) -> Defect:
    return next(defect for defect in DEFECTS if defect.what == what)


def find(defect: Defect, other: str = ORT, **options) -> Bisection:
    good, bad = map(load, defect.models())
    return bisect(Subject(good, ORT), Subject(bad, other), defect.inputs(), **options)


def test_there_are_forty_defects_of_forty_kinds():
    assert len({defect.what for defect in DEFECTS}) == 40


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.what)
def test_the_changed_node_is_named(defect):
    """By outputs that differ by more than the model's noise, which is measured."""
    culprit = find(defect).culprit
    assert culprit is not None
    assert culprit.node == defect.node
    assert culprit.own > culprit.allowed


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("batch norm's epsilon", "epsilon is 0.001, not left out"),
        ("padding on the wrong side", "pads is [0, 0, 2, 2], not [1, 1, 1, 1]"),
        ("one weight off by 1e-2", "its input 1 ('w0') differs in 1 of 216 numbers, by up to 0.01"),
        ("a zero point off by one", "its input 2 ('w1') is 129, not 128"),
        ("a zero point left out", "it has 3 inputs, not 4"),
        ("inputs of a MatMul swapped", "its inputs are in another order"),
        ("rounding mode: down, not to nearest", "it is Floor, not Round"),
        ("an attribute inside a Loop", "in its body, alpha is 0.3, not 0.2"),
    ],
)
def test_it_is_said_in_what_way_the_files_differ(what, words):
    assert find(of(what), noise={}, all_nodes=True).culprit.how == f"in the other model {words}"


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.what)
def test_no_node_of_an_untouched_model_is_named(defect):
    model = load(defect.net(defect.seed))
    found = bisect(Subject(model, ORT), Subject(model, TORCH), defect.inputs(), all_nodes=True)
    assert found.culprit is None
    beyond = [entry for entry in found.profile if entry.own is None or entry.own > entry.allowed]
    assert beyond == []
    outputs = {value.name for value in model.ir.graph.outputs}
    made = [value for node in model.ir.graph for value in node.outputs]
    assert {e.value for e in found.profile} == {v.name for v in made if v.uses() or v.name in outputs}


@pytest.mark.parametrize("what", ["gelu by its approximation", "the scale of a quantised weight", "float16 overflows"])
def test_a_changed_node_is_named_across_runners(what):
    assert find(of(what), TORCH).culprit.node == of(what).node


@pytest.mark.parametrize("what", ["a zero point off by one", "an attribute inside a Loop", "one weight off by 1e-2"])
def test_all_nodes_names_the_same_node(what):
    found = find(of(what), noise={}, all_nodes=True)
    assert found.culprit.node == of(what).node
    by_node = {entry.node: entry for entry in found.profile}
    assert [name for name, entry in by_node.items() if entry.own > entry.allowed] == [of(what).node]
    assert any(entry.path > entry.allowed >= entry.own for entry in found.profile)  # what the defect leads to


def test_values_that_do_not_fit_into_memory_are_read_in_chunks(monkeypatch):
    defect = of("one weight off by 1e-2")
    whole = find(defect, noise={}, all_nodes=True).profile
    monkeypatch.setattr(profile, "LARGEST", 20_000)
    assert [(e.value, e.own > e.allowed) for e in find(defect, noise={}, all_nodes=True).profile] == [
        (e.value, e.own > e.allowed) for e in whole
    ]


def chain(length: int, change: Callable[[int, np.ndarray], np.ndarray] = lambda i, w: w) -> Model:
    """Nodes none of which makes differences much smaller or larger."""
    net = nets.Net(0, x=(np.float32, "N", 8))
    x = "x"
    for i in range(length // 4):
        x = net("Abs", x, name=f"abs{i}")
        turn = np.linalg.qr(net.rng.normal(size=(8, 8)))[0]
        x = net("MatMul", x, net.const(change(4 * i + 1, turn)), name=f"turn{i}")
        x = net("Mul", x, net.const(change(4 * i + 2, net.rng.uniform(0.97, 1.03, 8))), name=f"scale{i}")
        x = net("Add", x, net.const(change(4 * i + 3, net.rng.normal(0, 0.01, 8))), name=f"shift{i}")
    return load(net.model(x))


@pytest.mark.parametrize("index", [1230, 1998])
def test_runs_grow_with_the_logarithm_of_the_graph(index):
    """And together they run no more nodes than a few runs of the whole."""
    nodes = 0

    def counted(runner: str, model: Model) -> Run:
        run = runners.prepare(runner, model)

        def count(inputs: Inputs) -> Outputs:
            nonlocal nodes
            nodes += len(model.ir.graph)
            return run(inputs)

        return count

    good, bad = chain(2000), chain(2000, lambda i, w: w * 1.01 if i == index else w)
    inputs = {"x": np.random.default_rng(0).normal(size=(4, 8)).astype(np.float32)}
    found = bisect(Subject(good, ORT, counted), Subject(bad, ORT, counted), inputs, noise={})
    assert found.culprit.node == f"{('abs', 'turn', 'scale', 'shift')[index % 4]}{index // 4}"
    assert found.culprit.runs <= 5 * math.ceil(math.log2(2000)) + 2
    assert nodes <= 10 * 2000


class Altered:
    """A runner that gets a rule wrong: it runs what `alter` makes of the model."""

    def __init__(self, alter: Callable[[ir.Model], None], runner: str = ORT) -> None:
        self.alter, self.runner = alter, runner

    def __call__(self, name: str, model: Model) -> Run:
        copy = model.ir.clone()
        self.alter(copy)
        return runners.prepare(self.runner, Model(copy))


def wrong_slope(model: ir.Model) -> None:
    for node in model.graph:
        if node.op_type == "LeakyRelu":
            node.attributes["alpha"] = ir.AttrFloat32("alpha", 0.3)


def test_a_rule_that_is_wrong_in_torch_is_found(monkeypatch):
    from onward.backends.backend import backend

    def prepare(model: Model, mode: str) -> Run:
        copy = model.ir.clone()
        wrong_slope(copy)
        return backend("torch").prepare(Model(copy), mode)

    broken = runners.Runner("torch_with_a_wrong_rule", "for a test", "torch", prepare, {})
    monkeypatch.setitem(runners.RUNNERS._user, broken.name, broken)
    model, inputs = load(nets.unet(3)), of("the mode of a padding").inputs()
    culprit = bisect(Subject(model, ORT), Subject(model, broken.name), inputs).culprit
    assert (culprit.node, culprit.op, culprit.outputs) == ("leaky", "LeakyRelu", ("leaky.out",))


def fuses_wrongly(model: ir.Model) -> None:
    """MatMul and Add, where nothing else sees what is between them, as Gemm with another alpha."""
    for node in model.graph:
        product = node.inputs[0].producer() if node.op_type == "Add" and node.inputs[0] is not None else None
        if product is None or product.op_type != "MatMul" or product.outputs[0].is_graph_output():
            continue
        scale = ir.Value(name=f"{node.name}.wrong", const_value=ir.tensor(np.float32(1.02)))
        model.graph.register_initializer(scale)
        scaled = ir.Node("", "Mul", [product.outputs[0], scale])
        model.graph.insert_before(node, scaled)
        node.replace_input_with(0, scaled.outputs[0])


def test_a_difference_that_only_shows_in_a_fused_whole_is_called_that():
    net = nets.Net(0, x=(np.float32, 2, 6))
    x = net("Tanh", "x")
    for _ in range(2):
        x = net("Softsign", net("Relu", x))
    x = net("Sigmoid", net("Add", net("MatMul", x, net.weight(6, 6), name="product"), net.weight(6), name="sum"))
    for _ in range(3):
        x = net("Softsign", net("Elu", x))
    model = load(net.model(x))
    inputs = {"x": np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)}
    culprit = bisect(Subject(model, ORT), Subject(model, "altered", Altered(fuses_wrongly)), inputs).culprit
    assert culprit.op == "MatMul + Add"
    assert culprit.node == "product"
    assert "only shows in the fused whole of 2 nodes" in culprit.how


def rounds_coarsely(model: ir.Model) -> None:
    """Every product a little off, less than a node may be."""
    for node in list(model.graph):
        if node.op_type == "MatMul":
            value = node.outputs[0]
            factor = ir.Value(name=f"{value.name}.factor", const_value=ir.tensor(np.float32(1 + 4e-6)))
            model.graph.register_initializer(factor)
            moved = ir.Node("", "Mul", [value, factor])
            ir.convenience.replace_all_uses_with(value, moved.outputs[0], replace_graph_outputs=True)
            moved.replace_input_with(0, value)
            moved.outputs[0].name, value.name = value.name, f"{value.name}.exact"
            model.graph.insert_after(node, moved)


def amplifying(seed: int) -> onnx.ModelProto:
    """Each layer makes differences three times as large."""
    net = nets.Net(seed, x=(np.float32, 2, 6))
    x = "x"
    for layer in range(8):
        turned = net("MatMul", x, net.const(np.linalg.qr(net.rng.normal(size=(6, 6)))[0]), name=f"turn{layer}")
        x = net("Sin", net("Mul", turned, net.const(4.0)), name=f"wave{layer}")
    return net.model(x)


def test_drift_is_not_blamed_on_a_node():
    model = load(amplifying(0))
    inputs = {"x": np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)}
    found = bisect(Subject(model, ORT), Subject(model, "altered", Altered(rounds_coarsely)), inputs, noise={})
    assert found.culprit is None
    assert "rounding grow" in found.remark


def test_a_defect_is_told_apart_from_drift():
    good, bad = amplifying(0), amplifying(0)
    next(node for node in bad.graph.node if node.name == "wave5").op_type = "Cos"
    inputs = {"x": np.random.default_rng(0).normal(size=(2, 6)).astype(np.float32)}
    other = Subject(load(bad), "altered", Altered(rounds_coarsely))
    assert bisect(Subject(load(good), ORT), other, inputs, noise={}).culprit.node == "wave5"


def test_a_node_that_the_other_side_cannot_run_is_found():
    def refuses(name: str, model: Model) -> Run:
        if any(node.op_type == "Gelu" for node in model.ir.graph):
            raise RunFailure("there is no Gelu here")
        return runners.prepare(ORT, model)

    defect = of("gelu by its approximation")
    model = load(defect.net(0))
    culprit = bisect(Subject(model, ORT), Subject(model, "old", refuses), defect.inputs()).culprit
    assert (culprit.node, culprit.how) == ("gelu0", "there is no Gelu here")


def renumbered(model: onnx.ModelProto) -> onnx.ModelProto:
    """The nodes without names, and the values with numbers, which are other values' in the original."""
    names = {name: str(i) for i, name in enumerate(name for node in model.graph.node for name in node.output)}
    for node in model.graph.node:
        node.name = ""
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names[name] for name in node.output]
    for value in model.graph.output:
        value.name = names[value.name]
    del model.graph.value_info[:]
    return model


@pytest.mark.parametrize("what", ["the axis of a softmax", "inputs of a MatMul swapped", "the mode of a padding"])
def test_models_whose_values_have_other_names_are_matched_by_their_order(what):
    defect = of(what)
    good, bad = defect.models()
    swapped = renumbered(bad)
    swapped.graph.node.insert(3, helper.make_node("Identity", [swapped.graph.node[2].output[0]], ["copy"]))
    found = bisect(Subject(load(good), ORT), Subject(load(swapped), ORT), defect.inputs(), noise={})
    assert found.culprit.node == defect.node


def test_a_model_that_was_optimised_is_compared_where_both_have_a_value(tmp_path):
    defect = replace(of("weights 1 % too large"), node="conv1a")
    good, bad = defect.models()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(bad.SerializeToString(), options, providers=["CPUExecutionProvider"])
    optimised = load(tmp_path / "optimised.onnx")
    assert len(optimised.ir.graph) < len(good.graph.node)
    culprit = bisect(Subject(load(good), ORT), Subject(optimised, ORT), defect.inputs(), noise={}).culprit
    assert (culprit.node, culprit.op) == ("conv1a", "Conv + BatchNormalization + Relu")


def test_a_node_that_is_missing_is_found():
    good, bad = nets.mobilenet(0), nets.mobilenet(0)
    gate = next(node for node in bad.graph.node if node.name == "gate1")
    for node in bad.graph.node:
        node.input[:] = [gate.input[0] if name == gate.output[0] else name for name in node.input]
    bad.graph.node.remove(gate)
    inputs = of("dilation").inputs()
    assert bisect(Subject(load(good), ORT), Subject(load(bad), ORT), inputs, noise={}).culprit.node == "gate1"


def test_pieces_share_the_weights_and_keep_functions():
    weight = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    net = nets.Net(0, x=(np.float32, "N", 64))
    model = load(net.model(net("Relu", net("MatMul", "x", net.const(weight), name="product"))))
    piece = Cutter(model).piece(["product.out"], {"x": np.zeros((2, 64), np.float32)})
    (kept,) = piece.ir.graph.initializers.values()
    assert kept.const_value is next(iter(model.ir.graph.initializers.values())).const_value
    assert [node.op_type for node in piece.ir.graph] == ["MatMul"]

    cutter = Cutter(load(nets.functions(0)))
    piece = cutter.piece(["block2.out"], {"block1.out": np.zeros((2, 4), np.float32)})
    assert [function.name for function in piece.ir.functions.values()] == ["Block"]
    assert not cutter.piece(["scaler.out"], {"x": np.zeros((2, 4), np.float32)}).ir.functions


def test_a_constant_with_a_wrong_value_is_named():
    def model(value: float) -> Model:
        net = nets.Net(0, x=(np.float32, 2, 3))
        tensor = numpy_helper.from_array(np.float32(value))
        x = net("Mul", net("Tanh", "x"), net("Constant", name="constant", value=tensor))
        return load(net.model(net("Sigmoid", x)))

    inputs = {"x": np.ones((2, 3), np.float32)}
    assert bisect(Subject(model(1), ORT), Subject(model(2), ORT), inputs, noise={}).culprit.node == "constant"


@pytest.mark.parametrize("other", [ORT, TORCH])
@pytest.mark.parametrize("all_nodes", [False, True])
def test_strings_maps_sequences_and_optionals_are_cut_through(other, all_nodes):
    def model(slope: float) -> Model:
        net = nets.Net(0, opset=18, x=(np.float32, 4, 3))
        parts = net("SplitToSequence", net("Tanh", "x"), net.const(4, np.int64), axis=0)
        some = net("Optional", net("SequenceAt", parts, net.const(0, np.int64)))
        x = net("LeakyRelu", net("OptionalGetElement", some), alpha=slope, name="leaky")
        options = {"domain": "ai.onnx.ml", "classlabels_strings": ["a", "b"]}
        weights = {"coefficients": [0.1, 0.2, 0.3, -0.1, 0.3, 0.5], "intercepts": [0.1, -0.1]}
        labels, scores = net("LinearClassifier", x, outputs=2, **options, **weights, post_transform="SOFTMAX")
        return load(net.model(net("Identity", labels), net("ZipMap", scores, **options)))

    inputs = {"x": np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)}
    good, bad = Subject(model(0.1), ORT), Subject(model(0.2), other)
    assert bisect(good, bad, inputs, noise={}, all_nodes=all_nodes).culprit.node == "leaky"
    assert bisect(good, replace(bad, model=good.model), inputs, all_nodes=all_nodes).culprit is None
