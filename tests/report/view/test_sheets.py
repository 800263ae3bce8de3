"""How a graph is divided into pictures, and what is known of its weights."""

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
import view_samples as samples

from onward.report.view import sheets as drawing
from onward.report.view import statistics
from onward.report.view.contents import contents
from onward.report.view.kinds import kind_of_op
from onward.report.view.sheets import sheets


def test_every_node_is_on_one_sheet_of_modules_and_on_the_flat_one() -> None:
    found = contents(samples.network(40))
    drawn, (shown,) = sheets(found)
    flat = drawn[shown["flat"]]
    assert sorted(n for kind, n in flat["items"] if kind == "node") == list(range(401))
    others = [n for sheet in drawn if sheet is not flat for kind, n in sheet["items"] if kind == "node"]
    assert sorted(others) == list(range(401))
    assert drawn[shown["modules"]]["count"] == 401


def test_edges_go_down_unless_modules_read_one_another() -> None:
    drawn, _ = sheets(contents(samples.network(40)))
    for sheet in drawn:
        assert all(sheet["y"][source] < sheet["y"][node] for source, node, *_ in sheet["edges"])
        assert len(sheet["values"]) == len(sheet["edges"])


def test_a_module_that_is_left_and_entered_again_is_one_box() -> None:
    """a → b → a: the edge back is drawn against the others, and nothing is lost."""
    found = contents(samples.network(2))
    for number, node in enumerate(found.nodes):
        found.scopes[number] = ("b",) if 5 <= number < 12 else ("a",)
        node["line"] = ""
    drawn = drawing._Drawer(found)
    place = drawn._sheet(drawing._modules(found.parts[0], found.scopes), 0, None)
    sheet = drawn.sheets[place]
    boxes = [i for i, (kind, _) in enumerate(sheet["items"]) if kind == "sheet"]
    between = {(source, node) for source, node, *_ in sheet["edges"] if source in boxes and node in boxes}
    assert between == {(boxes[0], boxes[1]), (boxes[1], boxes[0])}


def test_a_graph_without_modules_is_cut_into_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "MOST_FLAT", 100)
    monkeypatch.setattr(drawing, "MOST_ITEMS", 50)
    monkeypatch.setattr(drawing, "SLICE", 40)
    found = contents(samples.network(20))
    found.scopes[:] = [()] * len(found.scopes)
    drawn, (shown,) = sheets(found)
    assert set(shown) == {"modules"}
    assert [sheet["count"] for sheet in drawn[1:]] == [40, 40, 40, 40, 40, 1]
    assert drawn[1]["title"] == "nodes 1 to 40"


def test_a_body_reads_what_is_outside_of_it() -> None:
    found = contents(samples.with_bodies())
    assert [part.kind for part in found.parts] == ["graph", "function", "subgraph", "subgraph"]
    (branch,) = [node for node in found.nodes if node["op"] == "If"]
    assert [found.values[value]["name"] for value in branch["captured"]] == ["y", "x"]
    assert [w["name"] for w in found.weights] == ["w", "k"], "a constant is shown as a weight is"
    assert found.weights[1]["items"] == "[3, 4]"


def test_shapes_that_the_file_does_not_say_are_inferred() -> None:
    found = contents(samples.network(1))
    scores = next(value for value in found.values if value["name"].endswith("attention/Softmax_output_0"))
    assert (scores["type"], scores["shape"]) == ("float", ["batch", "4", "4"])


def of(array: np.ndarray, dtype: ir.DataType | None = None) -> dict:
    found = statistics.Statistics().of(ir.Tensor(array, dtype))
    assert found is not None
    return found


def test_figures_of_a_weight() -> None:
    values = np.array([0, 0, 1, -3, np.inf, np.nan], np.float32)
    found = of(values)
    assert (found["min"], found["max"], found["odd"], found["sampled"]) == (-3, 1, 2, 0)
    assert found["mean"] == pytest.approx(-0.5) and found["std"] == pytest.approx(1.5)
    assert found["zeros"] == pytest.approx(1 / 3) and sum(found["histogram"]) == 4
    assert "histogram" not in of(np.ones(4, np.float32)), "one bar says nothing"
    assert of(np.array([True, False]))["max"] == 1
    assert of(np.array([-8, 7], ml_dtypes.int4), ir.DataType.INT4)["min"] == -8
    assert of(np.array([1.5, -2], ml_dtypes.bfloat16), ir.DataType.BFLOAT16)["min"] == -2


def test_of_a_large_weight_a_sample_is_looked_at() -> None:
    values = np.arange(5_000_000, dtype=np.float32)
    found = of(values)
    assert found["sampled"] == statistics.MOST
    assert (found["min"], found["max"]) == (0, 4_999_999), "from the first to the last"
    assert found["mean"] == pytest.approx(values.mean(dtype=np.float64), rel=0.01)


def test_all_weights_together_take_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "ALL", 10_000)
    look = statistics.Statistics()
    first, second = (look.of(ir.Tensor(np.ones(20_000, np.float32))) for _ in range(2))
    assert first and second and (first["sampled"], second["sampled"]) == (0, statistics.FEW)


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("Conv", "layer"),
        ("ConvInteger", "quant"),
        ("DequantizeLinear", "quant"),
        ("LayerNormalization", "norm"),
        ("Unsqueeze", "shape"),
        ("ReduceMean", "pool"),
        ("FastGelu", "activation"),
        ("Whatever", "other"),
    ],
)
def test_the_kind_of_an_op(op: str, kind: str) -> None:
    assert kind_of_op(op) == kind
