"""Several workers train as one process does on all of their rows; what one of them meets, all are told."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
import torch
from small_networks import CLASSES, batches, network, onnx_of
from team import done, together
from torch.utils.data import DataLoader, TensorDataset

from onward.errors import InvalidDataError, OnwardError, UnsupportedError
from onward.training.parallel.same_machine import SameMachine
from onward.training.parallel.transports import ReduceBy
from onward.training.parallel.workers import LostWorkerError, WorkerError
from onward.training.recipe.losses import CausalLM, CrossEntropy, MeanSquaredError, Term
from onward.training.recipe.optimizers import LAMB, SGD, AdamW
from onward.training.runtime.divergence import DivergedError
from onward.training.runtime.trainer import Trainer
from onward.training.trainable import Trainable, prepare

ROUNDING = 5e-6
FILES: dict[str, bytes] = {}


@pytest.fixture(scope="module", autouse=True)
def files() -> None:
    """Before any thread asks for them."""
    FILES.update({name: onnx_of(network(name), batches(name, 1)[0][0]) for name in ("mlp", "cnn", "lstm")})


def data(name: str, rows: int) -> dict[str, np.ndarray]:
    x, y = batches(name, 1, size=rows, seed=5)[0]
    return {"x": x.numpy(), "labels": y.numpy()}


def trainer(name: str = "mlp", reduce: Any = None, **options: Any) -> Trainer:
    made = prepare(FILES[name], **{"optimizer": AdamW(lr=1e-2), **options})
    return Trainer(made, threads=1, kernels=False, reduce=reduce)


def same_weights(one: Trainer, other: Trainer, most: float = ROUNDING) -> bool:
    return all(np.abs(array - other.parameters[name]).max() <= most for name, array in one.parameters.items())


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "clipped": {"clip_norm": 0.3, "optimizer": SGD(lr=0.1, momentum=0.9)},
    "accumulated": {"accumulate": 2},
    "averaged": {"average": 0.9},
    "lamb": {"optimizer": LAMB(lr=1e-2)},
    "class weights": {"loss": CrossEntropy(weight=[1.0, 0.2, 3.0, 0.5], ignore_index=2)},
    "two outputs' terms": {"loss": [Term(CrossEntropy()), Term(CrossEntropy(label_smoothing=0.2), 0.5)]},
}


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_curve_is_that_of_one_process(case: str, count: int) -> None:
    """37 rows: the last batch has fewer rows, and for three workers no batch is divided equally."""
    given = data("mlp", 37)

    def work(reduce: Any) -> tuple[Trainer, Any]:
        made = trainer(reduce=reduce, **CASES[case])
        return made, made.fit(given, 3, 16, val=given)

    alone, expected = work(None)
    for made, history in done(together(count, work)):
        np.testing.assert_allclose(history.losses, expected.losses, atol=ROUNDING, rtol=0)
        np.testing.assert_allclose(history.evaluations[-1]["loss"], expected.evaluations[-1]["loss"], atol=ROUNDING)
        assert history.evaluations[-1]["accuracy"] == expected.evaluations[-1]["accuracy"]
        assert same_weights(made, alone, 10 * ROUNDING)
        for name, array in alone.state.items():
            np.testing.assert_allclose(made.state[name], array, atol=10 * ROUNDING)
    assert expected.losses[-1] < 0.9 * expected.losses[0], "nothing was learnt: the comparison would say little"


def test_rows_of_embeddings_that_only_one_worker_reads() -> None:
    given = data("lstm", 24)

    def work(reduce: Any) -> list[float]:
        return trainer("lstm", reduce).fit(given, 3, 8).losses

    expected = work(None)
    for losses in done(together(2, work)):
        np.testing.assert_allclose(losses, expected, atol=ROUNDING)


def test_a_last_batch_with_fewer_rows_than_workers() -> None:
    given = data("mlp", 17)

    def work(reduce: Any) -> list[float]:
        return trainer(reduce=reduce).fit(given, 2, 8).losses

    expected = work(None)
    for losses in done(together(3, work)):
        np.testing.assert_allclose(losses, expected, atol=ROUNDING)


def test_a_worker_without_a_label_that_counts() -> None:
    given = data("mlp", 8)
    given["labels"][:4] = 2

    def work(reduce: Any) -> list[float]:
        made = trainer(reduce=reduce, loss=CrossEntropy(ignore_index=2), optimizer=SGD(lr=0.1))
        return made.fit(given, 2, 8, shuffle=False).losses

    expected = work(None)
    for losses in done(together(2, work)):
        np.testing.assert_allclose(losses, expected, atol=ROUNDING)


def test_texts_of_different_lengths() -> None:
    """The next-token loss is a mean over tokens that count, of which a worker has more than another."""
    words = np.random.default_rng(2).integers(1, 20, (9, 7))
    words[:4, 3:] = 0
    words[7, 2:] = -100
    nodes = [oh.make_node("Gather", ["table", "input_ids"], ["h"]), oh.make_node("MatMul", ["h", "head"], ["logits"])]
    ids = oh.make_tensor_value_info("input_ids", onnx.TensorProto.INT64, ["n", "t"])
    logits = oh.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["n", "t", 20])
    tables = {"table": np.eye(20, 6, dtype=np.float32), "head": np.eye(6, 20, dtype=np.float32)}
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in tables.items()]
    graph = oh.make_graph(nodes, "g", [ids], [logits], weights)
    source = oh.make_model(graph, opset_imports=[oh.make_opsetid("", 17)], ir_version=9)
    given = {"input_ids": np.abs(words) % 20, "labels": words}

    def work(reduce: Any) -> list[float]:
        made = prepare(source, CausalLM(pad=0, labels="labels"), AdamW(lr=1e-2))
        return Trainer(made, threads=1, kernels=False, reduce=reduce).fit(given, 2, 4, shuffle=False).losses

    expected = work(None)
    for losses in done(together(2, work)):
        np.testing.assert_allclose(losses, expected, atol=ROUNDING)


def test_running_statistics_are_means_over_all_rows() -> None:
    """Batch normalisation uses the rows of its worker; the first layer's running mean is that of all rows even so."""
    given = data("cnn", 24)

    def work(reduce: Any) -> Trainer:
        made = trainer("cnn", reduce)
        made.fit(given, 1, 24)
        return made

    alone = work(None)
    one, other = done(together(2, work))
    means = [name for name in alone.buffers if "mean" in name]
    np.testing.assert_allclose(one.buffers[means[0]], alone.buffers[means[0]], atol=ROUNDING)
    for name, array in one.buffers.items():
        np.testing.assert_array_equal(array, other.buffers[name])
        assert np.abs(array - alone.trainable.buffers[name]).max() > 1e-3, "it has not followed the batch"


def test_a_loss_that_is_no_number_stops_all() -> None:
    given = data("mlp", 16)
    given["x"][12] = np.nan

    def work(reduce: Any) -> Any:
        made = trainer(reduce=reduce)
        before = {name: array.copy() for name, array in made.parameters.items()}
        with pytest.raises(DivergedError) as raised:
            made.fit(given, 1, 16, shuffle=False)
        assert all((made.parameters[name] == array).all() for name, array in before.items())
        return str(raised.value)

    first, second = done(together(2, work))
    assert first == "step 1: worker 1 has no finite loss; its own message says more"
    assert second == "the loss is nan at step 1: 12 of 96 numbers of 'x' in the batch are not finite; clean the data"


def test_a_bad_batch_of_one_worker_stops_all_where_they_were(tmp_path: Path) -> None:
    good, bad = data("cnn", 8), data("cnn", 8)
    bad["labels"][7] = CLASSES

    def work(reduce: SameMachine) -> Any:
        made = trainer("cnn", reduce)
        path = tmp_path / "state"
        try:
            made.fit([good, bad], 1, checkpoint=path)
        except OnwardError as error:
            return type(error), str(error), {name: array.copy() for name, array in made.buffers.items()}

    first, second = done(together(2, work))
    assert first[:2] == (WorkerError, "step 2: worker 1 failed; its own message says why")
    assert second[0] is InvalidDataError and "there are 4 classes" in second[1]
    for name, array in first[2].items():
        np.testing.assert_array_equal(array, second[2][name])
    left = trainer("cnn")
    assert len(left.fit([good], 1, checkpoint=tmp_path / "state", resume=True).losses) == 1, "the first step is kept"


def test_a_worker_that_does_not_come_is_not_waited_for_without_end() -> None:
    def work(reduce: SameMachine) -> None:
        made = trainer(reduce=reduce)
        if reduce.rank:
            time.sleep(2)
        made.step(data("mlp", 8))

    first, second = together(2, work, timeout=0.5)
    assert isinstance(first, LostWorkerError) and str(first) == "worker 1 did not answer for 0.5 s"
    assert isinstance(second, LostWorkerError) and str(second) == "worker 0 has ended"


def test_early_stopping_is_decided_once_and_worker_0_alone_writes(tmp_path: Path) -> None:
    given, val = data("mlp", 24), data("mlp", 40)
    val["labels"] = (val["labels"] + 1) % CLASSES

    def work(reduce: Any, path: Path) -> Any:
        made = trainer(reduce=reduce, optimizer=SGD(lr=0.3))
        history = made.fit(given, 20, 8, val=val, patience=2, checkpoint=path)
        return made, history

    alone, expected = work(None, tmp_path / "alone")
    assert expected.stopped == "early"
    found = done(together(2, lambda reduce: work(reduce, tmp_path / f"of {reduce.rank}")))
    for made, history in found:
        assert history.stopped == "early" and len(history.losses) == len(expected.losses)
        assert same_weights(made, alone, 10 * ROUNDING)
    assert same_weights(found[0][0], found[1][0], 0)
    assert {path.name for path in tmp_path.iterdir()} == {"alone", "of 0"}


def test_training_goes_on_with_another_number_of_workers(tmp_path: Path) -> None:
    """From between two batches of one step, whose gradients are apart; only worker 0 finds the checkpoint."""
    given = data("mlp", 24)

    def work(reduce: Any, epochs: int) -> Any:
        made = trainer(reduce=reduce, accumulate=2)
        history = made.fit(given, epochs, 8, checkpoint=tmp_path / f"of {reduce.rank}", resume=True)
        return history.losses, made.accumulated

    expected = trainer(accumulate=2).fit(given, 3, 8).losses
    assert done(together(3, lambda reduce: work(reduce, 1)))[0][1] == 1
    for losses, _ in done(together(2, lambda reduce: work(reduce, 3))):
        np.testing.assert_allclose(losses, expected, atol=ROUNDING)
    assert [path.name for path in tmp_path.iterdir()] == ["of 0"]


def test_batches_of_an_iterable_are_divided_and_have_to_be_the_same() -> None:
    given = data("mlp", 22)
    tensors = TensorDataset(*(torch.from_numpy(given[name]) for name in ("x", "labels")))

    def work(reduce: Any, seed: int = 3) -> list[float]:
        loader = DataLoader(tensors, 8, shuffle=True, generator=torch.Generator().manual_seed(seed))
        return trainer(reduce=reduce).fit(loader, 2).losses

    expected = work(None)
    for losses in done(together(2, work)):
        np.testing.assert_allclose(losses, expected, atol=ROUNDING)
    for error in together(2, lambda reduce: work(reduce, reduce.rank)):
        assert isinstance(error, InvalidDataError) and "batch 1 is not the same for all workers" in str(error)


def test_different_data_and_different_models_are_refused() -> None:
    def other_data(reduce: Any) -> None:
        trainer(reduce=reduce).fit(data("mlp", 16 + reduce.rank), 1)

    def other_rate(reduce: Any) -> None:
        trainer(reduce=reduce, optimizer=SGD(lr=0.1 + reduce.rank))

    for error in together(2, other_data):
        assert isinstance(error, InvalidDataError) and "different data" in str(error)
    for error in together(2, other_rate):
        assert isinstance(error, OnwardError) and "different models or optimizers" in str(error)


def test_all_start_where_worker_0_is() -> None:
    def work(reduce: Any) -> Trainer:
        made = prepare(FILES["mlp"])
        made.parameters = {name: array + reduce.rank for name, array in made.parameters.items()}
        return Trainer(made, threads=1, kernels=False, reduce=reduce)

    one, other = done(together(2, work))
    assert same_weights(one, other, 0) and same_weights(one, trainer(), 0)


def not_a_mean() -> Trainable:
    made = prepare(FILES["mlp"], MeanSquaredError(reduction="sum"))
    made.loss = None
    return made


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: prepare(FILES["mlp"], MeanSquaredError(reduction="sum")), "this one is a sum"),
        (lambda: prepare(FILES["mlp"], [Term(CrossEntropy(ignore_index=1)), Term("cross_entropy")]), "count samples"),
        (not_a_mean, "is the mean over two parts"),
    ],
)
def test_losses_that_are_no_mean_over_samples_are_refused(make: Any, message: str) -> None:
    def work(reduce: Any) -> None:
        given = data("mlp", 8)
        if make is not_a_mean or "sum" in message:
            given["labels"] = np.zeros((8, CLASSES), np.float32)
        Trainer(make(), threads=1, kernels=False, reduce=reduce).fit(given, 1)

    for error in together(2, work):
        assert isinstance(error, UnsupportedError) and message in str(error)


def test_a_reduce_that_gives_another_number_than_the_sum_is_refused() -> None:
    with pytest.raises(OnwardError, match="reduce made 1 of a 1 from each of 2 workers"):
        trainer(reduce=ReduceBy(lambda flat: None, 0, 2))
