"""The small picture of a graph stays small, and shows what a network is."""

from graphs import model, weight

from onward.zoo.outline import BOXES, LAYERS, outline


def test_a_small_graph_is_shown_as_it_is() -> None:
    found = outline(model("g (float[2] x) => (float[2] y) { a = Relu(x) b = Neg(x) y = Add(a, b) }").ir.graph)
    assert found.layers == (("Relu", "Neg"), ("Add",))
    assert found.edges == ((0, 2), (1, 2))


def test_a_deep_graph_has_few_layers() -> None:
    steps = " ".join(f"v{i + 1} = {'Conv' if i % 3 else 'Relu'}(v{i}{', w' if i % 3 else ''})" for i in range(100))
    text = f"g (float[1,1,4,4] v0) => (float[1,1,4,4] v100) {{ {steps} }}"
    found = outline(model(text, w=weight(1, 1, 1, 1)).ir.graph)
    assert len(found.layers) == LAYERS and all(len(layer) == 1 for layer in found.layers)
    assert all(box.startswith("Conv + … ×") for (box,) in found.layers)
    assert sum(int(box.partition("×")[2]) for (box,) in found.layers) == 100
    assert found.edges == tuple((i, i + 1) for i in range(LAYERS - 1))


def test_a_wide_graph_has_few_boxes() -> None:
    ops = ["Abs", "Ceil", "Cos", "Exp", "Floor", "Log", "Neg", "Relu", "Sin", "Tan"]
    made = " ".join(f"{op.lower()} = {op}(x)" for op in ops)
    text = f"g (float[2] x) => (float[2] y) {{ {made} y = Sum({', '.join(op.lower() for op in ops)}) }}"
    found = outline(model(text).ir.graph)
    assert [len(layer) for layer in found.layers] == [BOXES, 1]
    assert len(found.edges) == BOXES


def test_what_is_computed_from_constants_is_left_out() -> None:
    text = "g (float[2] x) => (float[2] y) { a = Neg(w) b = Exp(a) y = Add(x, b) }"
    assert outline(model(text, w=weight(2)).ir.graph).layers == (("Add",),)
