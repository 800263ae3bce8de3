"""A run of models on targets: every cell has a result, and a run that was stopped does only what is missing."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from graphs import model
from zoo_models import net

from onward.engine.jobs import Done, Job, Limits, Work
from onward.engine.local import Local
from onward.errors import OnwardError, WritingError
from onward.model import load
from onward.runners import prepare
from onward.runners.calls import Run
from onward.zoo import conversions
from onward.zoo import run as running
from onward.zoo.peers import Peer
from onward.zoo.results import Cell, ModelFacts, read
from onward.zoo.run import Options, Ran, run_all


class Here:
    """An engine without processes, which notes what it did and stops after so many jobs."""

    def __init__(self, most: int = 1000) -> None:
        self.did: list[Any] = []
        self.most = most

    def map(self, work: Work[Job], jobs: Iterable[Job], limits: Limits) -> Iterator[tuple[Job, Done]]:
        for job in jobs:
            if len(self.did) == self.most:
                raise KeyboardInterrupt
            work.begin(job)
            self.did.append(job)
            yield job, Done(work.do(job), peak=5_000_000)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    net(tmp_path / "models/first.onnx")
    net(tmp_path / "models/second.onnx", op="Tanh")
    return tmp_path / "models"


@pytest.fixture
def options(models: Path, tmp_path: Path) -> Options:
    return Options([models], tmp_path / "zoo", to=("onnx",))


def names(engine: Here) -> list[str]:
    return [f"{job.entry.name} {job.target}" for job in engine.did]


def test_cells_have_all_that_is_known(options: Options) -> None:
    ran = run_all(options, on=Here())
    assert ran.new == 2 and ran.is_good
    kept = read(options.out)
    cell = kept.cells["first.onnx", "onnx"]
    assert (cell.verdict, cell.nodes, cell.transposes, cell.peak_mb) == ("same", 2, 0, 5.0)
    assert cell.error == 0 and cell.allowance is not None and cell.allowance > 0
    assert cell.seconds is not None and cell.verify_seconds is not None and cell.speed is not None and cell.size_bytes
    assert cell.versions.startswith("onward ") and "onnxruntime" in cell.versions and cell.machine and cell.when
    facts = kept.models["first.onnx"]
    assert (facts.format, facts.ops, facts.nodes, facts.parameters) == ("onnx", {"Mul": 1, "Relu": 1}, 2, 3)
    assert facts.inputs[0].type == "tensor(float)" and facts.inputs[0].shape == ("batch", 3)
    assert facts.graph.layers == (("Mul",), ("Relu",)) and facts.opset == "ai.onnx=17"


def test_a_run_that_was_stopped_goes_on(options: Options) -> None:
    first = Here(most=1)
    with pytest.raises(KeyboardInterrupt):
        run_all(options, on=first)
    second = Here()
    run_all(options, on=second)
    assert sorted(names(first) + names(second)) == ["first.onnx onnx", "second.onnx onnx"]
    assert run_all(options, on=(third := Here())).new == 0 and third.did == []


def test_the_last_line_may_be_cut_off(options: Options) -> None:
    run_all(options, on=Here())
    file = options.out / running.FILE
    file.write_bytes(file.read_bytes()[:-20])
    again = Here()
    run_all(options, on=again)
    assert len(again.did) == 1
    assert [cell.verdict for cell in read(options.out).cells.values()] == ["same", "same"]


def changed(options: Options, **fields: Any) -> Options:
    """A run before, of which the first cell was another."""
    run_all(options, on=Here())
    file = options.out / running.FILE
    records = [json.loads(line) for line in file.read_text().splitlines()]
    cell = next(each for each in records if each["kind"] == "cell" and each["model"] == "first.onnx")
    with file.open("a") as opened:
        opened.write(json.dumps(cell | fields) + "\n")
    return options


@pytest.mark.parametrize(
    "fields",
    [
        {"versions": "onward 0.0"},
        {"sha256": "0" * 64},
        {"retry": True},
        {"verdict": "timeout", "limit_seconds": 1.0},
        {"verdict": "out of memory", "limit_mb": 1.0},
    ],
)
def test_what_has_changed_is_done_again(options: Options, fields: dict[str, Any]) -> None:
    run_all(changed(options, **fields), on=(again := Here()))
    assert names(again) == ["first.onnx onnx"]
    assert read(options.out).cells["first.onnx", "onnx"].verdict == "same"


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": "timeout", "limit_seconds": 300.0},
        {"verdict": "crash"},
        {"verdict": "out of memory", "limit_mb": 8000.0},
    ],
)
def test_what_would_come_out_the_same_is_not(options: Options, fields: dict[str, Any]) -> None:
    options = replace(changed(options, **fields), memory=8_000_000_000)
    ran = run_all(options, on=(again := Here()))
    assert again.did == [] and not ran.is_good


def test_versions_may_be_kept_and_cells_chosen(options: Options) -> None:
    options = changed(options, versions="onward 0.0")
    assert run_all(replace(options, keep_versions=True), on=Here()).new == 0
    assert names_of(run_all(replace(options, fresh=True, only="second"), on=Here())) == ["second.onnx"]
    assert read(options.out).cells["first.onnx", "onnx"].versions == "onward 0.0"


def test_a_list_may_say_something_else(options: Options, models: Path) -> None:
    run_all(options, on=Here())
    (models.parent / "list.csv").write_text("path,task\nmodels/first.onnx,another\n")
    assert run_all(replace(options, sources=[models.parent / "list.csv"]), on=Here()).new == 0
    facts = read(options.out).models["first.onnx"]
    assert (facts.task, facts.nodes) == ("another", 2)


def names_of(ran: Ran) -> list[str]:
    return [name for name, _ in ran.cells]


def test_failures_of_processes_are_results(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {"crash": "crash (SIGSEGV)", "timeout": "timed out after 1 s"}

    class Failing(Here):
        def map(self, work: Work[Job], jobs: Iterable[Job], limits: Limits) -> Iterator[tuple[Job, Done]]:
            for job, (kind, words) in zip(jobs, ends.items(), strict=True):
                yield job, Done(failure=words, kind=kind, peak=10**6)  # type: ignore[arg-type]

    ran = run_all(options, on=Failing())
    assert sorted((cell.verdict, cell.message) for cell in ran.cells.values()) == sorted(ends.items())
    assert not ran.is_good and read(options.out).models["first.onnx"].format == "onnx"


def test_a_model_that_cannot_be_fetched_is_tried_again(options: Options, models: Path) -> None:
    class Losing(Here):
        def map(self, work: Work[Job], jobs: Iterable[Job], limits: Limits) -> Iterator[tuple[Job, Done]]:
            kept = (models / "first.onnx").read_bytes()
            (models / "first.onnx").unlink()
            yield from super().map(work, jobs, limits)
            (models / "first.onnx").write_bytes(kept)

    run_all(options, on=Losing())
    cell = read(options.out).cells["first.onnx", "onnx"]
    assert (cell.verdict, cell.retry) == ("failed", True) and "it is not there" in cell.message
    assert run_all(options, on=Here()).new == 1 and not read(options.out).cells["first.onnx", "onnx"].retry


def test_a_full_disk_of_the_worker_is_no_result(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise WritingError("the disk is full")

    monkeypatch.setattr(conversions, "conversion", full)
    assert all(cell.retry for cell in run_all(options, on=Here()).cells.values())


def test_another_version_on_a_worker_is_said(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "versions_of", lambda *_: "onward 9.9")
    cells = run_all(options, on=Here()).cells.values()
    assert all(cell.retry and "onward 9.9 is asked for: install the same on both" in cell.message for cell in cells)


def test_a_refusal_names_the_node(tmp_path: Path) -> None:
    net(tmp_path / "models/odd.onnx", op="Strange", domain="com.acme")
    ran = run_all(Options([tmp_path / "models"], tmp_path / "zoo", to=("torch",)), on=Here())
    (cell,) = ran.cells.values()
    assert (cell.verdict, cell.first_node) == ("refused", "com.acme.Strange 'last'")
    assert ran.is_good and cell.message.startswith("com.acme.Strange 'last'")


def test_what_a_refusal_advises_is_tried(tmp_path: Path) -> None:
    """Channels that a Reshape finds out are not known to TensorFlow's converter, and halves have no kernels."""
    open_sizes = """g (float[n, m, 6] x) => (float[n, 2, k] y) { z = Reshape(x, shape) y = Conv(z, w) }"""
    halves = """g (float16[2] x) => (float16[2] y) { a = Sin(x) y = Mul(a, a) }"""
    (tmp_path / "models").mkdir()
    weights = {"shape": np.array([0, -1, 3]), "w": np.full((2, 4, 1), 0.5, np.float32)}
    model(open_sizes, **weights).save(tmp_path / "models/open.onnx")
    model(halves).save(tmp_path / "models/halves.onnx")
    ran = run_all(Options([tmp_path / "models"], tmp_path / "zoo", to=("tflite",)), on=Here())
    told = {name: (cell.verdict, cell.message) for (name, _), cell in ran.cells.items()}
    assert told["open.onnx"][0] == "same" and told["open.onnx"][1].startswith("with n="), told
    assert told["halves.onnx"][0] == "same" and told["halves.onnx"][1].startswith("with cast='up': "), told


def test_training_is_judged_by_a_step(options: Options) -> None:
    ran = run_all(replace(options, to=(), also=("train",)), on=Here())
    cell = ran.cells["second.onnx", "train"]
    assert cell.verdict == "same" and "finite gradients of 3 numbers in 1 tensors" in cell.message


@pytest.mark.parametrize(("other", "verdict"), [("Tanh", "same"), ("Floor", "failed")])
def test_an_output_that_no_weight_changes_is_trained_by_another(other: str, verdict: str, tmp_path: Path) -> None:
    text = f"""g (float[2, 3] x) => (float[2, 3] none, float[2, 3] some) {{
        y = Mul(x, w)  a = Abs(y)  b = Neg(a)  none = Relu(b)  some = {other}(y)
    }}"""
    (tmp_path / "models").mkdir()
    model(text, w=np.array([2, 1, -1], np.float32)).save(tmp_path / "models/two.onnx")
    ran = run_all(Options([tmp_path / "models"], tmp_path / "zoo", to=(), also=("train",)), on=Here())
    (cell,) = ran.cells.values()
    assert cell.verdict == verdict and "every gradient is zero on this batch for 'none'" in cell.message
    assert ("mse of 'some'" in cell.message) == (verdict == "same")


def test_tflite_to_tflite_is_no_cell(tmp_path: Path) -> None:
    (tmp_path / "lite.tflite").write_bytes(b"\x1c\0\0\0TFL3" + bytes(64))
    options = Options([tmp_path / "lite.tflite"], tmp_path / "zoo", to=("tflite", "onnx"))
    assert [target for _, target in run_all(options, on=Here()).cells] == ["onnx"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"to": ("torhc",)}, "there is no target 'torhc'.*did you mean torch"),
        ({"also": ("sing",)}, "'sing' is nothing that can be done as well"),
        ({"to": ()}, "name targets"),
        ({"only": "third"}, "no model of 2 has a name that matches 'third'"),
        ({"only": "("}, "is not a regular expression"),
        ({"timeout": 0.0}, "are no time"),
        ({"jobs": 0}, "give at least 1"),
        ({"on": "moon"}, "'moon' says no place"),
    ],
)
def test_what_cannot_be_meant_is_refused(options: Options, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(OnwardError, match=said):
        run_all(replace(options, **wrong))
    assert not options.out.exists()


def test_in_processes(options: Options) -> None:
    told: list[tuple[int, int]] = []
    ran = run_all(options, lambda done, total, _: told.append((done, total)), on=Local(2))
    assert [cell.verdict for cell in ran.cells.values()] == ["same", "same"]
    assert told == [(0, 2), (1, 2), (2, 2)]
    kept = read(options.out)
    assert all(isinstance(facts, ModelFacts) and facts.nodes == 2 for facts in kept.models.values())
    assert all(isinstance(cell, Cell) and cell.peak_mb for cell in kept.cells.values())


def twice(path: Path) -> Run:
    """A converter that is wrong."""
    run = prepare("onnxruntime", load(path))
    return lambda inputs: {name: 2 * np.asarray(value) for name, value in run(inputs).items()}


def itself(path: Path) -> Run:
    return prepare("onnxruntime", load(path))


def nothing(path: Path) -> Run:
    raise RuntimeError("no \x1b[1msuch\n op")


def test_peers_are_judged_as_well(options: Options) -> None:
    made = {one.__name__: Peer("onnx", one, frozenset({"onnx"})) for one in (twice, itself, nothing)}
    made["other"] = Peer("onnx", itself, frozenset({"tflite"}))
    run_all(replace(options, to=(), peers=made, only="second"), on=Here())
    kept = read(options.out)
    found = {target: (cell.verdict, cell.message) for (_, target), cell in kept.cells.items()}
    assert found.keys() == {"peer:twice", "peer:itself", "peer:nothing"}
    assert found["peer:itself"][0] == "same" and found["peer:twice"][0] == "different"
    assert found["peer:nothing"] == ("failed", "RuntimeError: no such op")
    assert kept.cells["second.onnx", "peer:itself"].speed is not None


def test_a_peer_is_not_blamed_for_a_source_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no model")
    peers = {"itself": Peer("onnx", itself, frozenset({"onnx"}))}
    ran = run_all(Options([tmp_path / "broken.onnx"], tmp_path / "zoo", to=(), peers=peers), on=Here())
    (cell,) = ran.cells.values()
    assert cell.verdict == "not verified" and cell.message.startswith("there is nothing to compare it with: ")


def test_a_peer_that_cannot_be_timed_keeps_its_verdict(options: Options, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> float:
        raise RuntimeError("only one row")

    monkeypatch.setattr("onward.zoo.speed.ratio", fails)
    peers = {"itself": Peer("onnx", itself, frozenset({"onnx"}))}
    ran = run_all(replace(options, to=(), peers=peers, only="second"), on=Here())
    (cell,) = ran.cells.values()
    assert cell.verdict == "same" and cell.speed is None
