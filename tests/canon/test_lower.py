"""An op without a rule becomes its definition, which computes the same."""

import re
import warnings

import onnx
import pytest
from onnx import parser
from onnx.backend.test.runner import Runner
from onnx.reference import ReferenceEvaluator

from onward.canon.lower import lower
from onward.graph.origin import origin
from onward.model import Model, load
from onward.passes.pipelines import canonical
from onward.scoreboard.suite import cases, data_sets, forget_shapes

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    BODIES = {
        schema.name
        for schema in onnx.defs.get_all_schemas()
        if schema.has_function or schema.has_context_dependent_function
    }

KEPT = {"Range"}
"""Its definition is a Loop that stacks scalars, which onnx's reference evaluator gives a wrong shape."""

NAMES = [
    "affine_grid_3d", "attention_4d_with_qk_matmul_softcap", "attention_3d_gqa_with_past_and_present",
    "causal_conv_with_state_silu_with_past_state", "celu", "center_crop_pad_crop_and_pad", "clip_expanded",
    "dynamicquantizelinear", "elu", "flexattention_score_mod", "gelu_tanh_1", "group_normalization_epsilon",
    "hannwindow", "layer_normalization_3d_axis1_epsilon", "linear_attention_gated", "mvn",
    "nllloss_NCd1d2d3d4d5_mean_weight",
    "prelu_broadcast", "reduce_log_sum_exp_keepdims_random", "rms_normalization_4d_axis0", "rotary_embedding_3d_input",
    "sce_mean_weight_ii_3d_log_prob", "selu", "sequence_map_add_1_sequence_1_tensor", "shrink_soft", "softmax_axis_1",
    "swish",
]  # fmt: skip


@pytest.mark.parametrize("unknown", [False, True], ids=["shapes", "no shapes"])
@pytest.mark.parametrize("name", NAMES)
def test_definitions_compute_the_same(name: str, unknown: bool) -> None:
    case = cases().get(f"test_{name}")
    if case is None:
        pytest.fail(f"the suite has no test_{name}")
    model = forget_shapes(case.model) if unknown else case.model
    lowered = canonical(load(model), KEPT.__contains__)
    left = {node.op_type for node in lowered.graph.all_nodes()} & BODIES - KEPT
    if unknown and left == {"CausalConvWithState"}:
        pytest.skip("its definition depends on the number of channels")
    assert not left
    run = ReferenceEvaluator(Model(lowered).to_proto())
    for inputs, expected in data_sets(case):
        found = run.run(None, dict(zip((i.name for i in model.graph.input), inputs, strict=True)))
        Runner.assert_similar_outputs(expected, found, rtol=case.rtol, atol=case.atol)


def parsed(text: str) -> Model:
    return load(parser.parse_model('<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>' + text))


def test_an_op_with_a_rule_stays() -> None:
    graph = canonical(parsed("g (float[N] x) => (float[N] y) { y = HardSwish(x) }"), {"HardSwish"}.__contains__).graph
    assert [node.op_type for node in graph] == ["HardSwish"]


def test_new_nodes_remember_the_old_one_and_its_scope() -> None:
    model = parsed("g (float[N] x) => (float[N] y) { [act] y = Mish(x) }")
    model.ir.graph[0].metadata_props["pkg.torch.onnx.name_scopes"] = "['', 'act']"
    nodes = list(canonical(model, lambda key: False).graph)
    assert len(nodes) > 1
    assert {str(origin(node)) for node in nodes} == {"Mish 'act'"}
    assert all(node.metadata_props["pkg.torch.onnx.name_scopes"] == "['', 'act']" for node in nodes)


def test_nodes_inside_bodies_are_lowered() -> None:
    text = """g (bool c, float[2] x) => (float[] y) {
        y = If(c) <then_branch = a () => (float[] p) { p = Mish(x) }, else_branch = b () => (float[] q) { q = Elu(x) }>
    }"""
    ops = {node.op_type for node in canonical(parsed(text), lambda key: False).graph.all_nodes()}
    assert "If" in ops and not ops & {"Mish", "Elu"}


def test_a_definition_that_depends_on_unknown_types_is_left() -> None:
    model = parsed("g (float[2] x) => (float[] y) { u = com.microsoft.Mystery(x)  y = Gelu(u) }").ir
    model.graph[1].version = 21
    lower(model, lambda key: False)
    assert [node.op_type for node in model.graph] == ["Mystery", "Gelu"]


def test_names_of_values_stay_unique() -> None:
    text = 'g (float[2] x) => (float[2] y) { "y/Zero" = Relu(x)  a = Relu("y/Zero")  y = Relu(a) }'
    graph = canonical(parsed(text), lambda key: False).graph
    names = [output.name for node in graph.all_nodes() for output in node.outputs]
    assert len(names) == len(set(names))
    assert not re.search("Relu", " ".join(node.op_type for node in graph))
