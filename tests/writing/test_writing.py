"""What Onward writes is there as a whole or not at all: processes are killed at every step, and disks are full."""

from __future__ import annotations

import errno
import io
import os
import resource
import signal
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from onward.errors import WritingError
from onward.model import load
from onward.writing import exchange, folders, new_file, new_files, new_folder, write_text

OWN = ("model.py", "ops.py", "weights")
EVENTS = {
    "open",
    "os.mkdir",
    "os.rename",
    "os.link",
    "os.remove",
    "os.rmdir",
    "os.chmod",
    "shutil.rmtree",
    "fcntl.flock",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory where that can be: a disk takes its time for so many writes that wait for it."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as made:
        yield Path(made)


def killed_at(step: int, write: Callable[[], object]) -> bool:
    """Run in a process that kills itself before the given step that touches the file system; whether it did."""
    child = os.fork()
    if child == 0:
        try:
            left = step

            def hook(event: str, _: object) -> None:
                nonlocal left
                if event in EVENTS or event == "ctypes.get_errno":
                    left -= 1
                    if left < 0:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(hook)
            write()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def fill(folder: Path, version: int, names: tuple[str, ...] = OWN) -> None:
    for name in names:
        (folder / name).write_text(f"{version}")


def content(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def write_folder(path: Path, version: int, names: tuple[str, ...] = OWN) -> None:
    with new_folder(path, OWN) as folder:
        fill(folder, version, names)


@pytest.fixture(params=["exchanged", "moved"])
def in_one_step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether folders can change places here: on other systems than Linux, they cannot."""
    if request.param == "moved":

        def refused(one: Path, other: Path) -> None:
            raise OSError(errno.ENOSYS, "no such call")

        monkeypatch.setattr(folders, "exchange", refused)
    return request.param == "exchanged"


NOTES = {"notes.txt": "mine"}
OLD = dict.fromkeys(OWN, "1")
NEW = dict.fromkeys(("model.py", "weights"), "2")


def test_a_folder_survives_a_kill_at_every_step(in_one_step: bool, folder: Path) -> None:
    path = folder / "net"
    seen = []
    for step in range(200):
        write_folder(path, 1)
        (path / "notes.txt").write_text("mine")
        if not killed_at(step, lambda: write_folder(path, 2, ("model.py", "weights"))):
            break
        found = content(path)
        if in_one_step or "model.py" in found:
            assert found in (OLD | NOTES, NEW | NOTES)
        else:
            assert len(set(found.values()) - {"mine"}) < 2, "something is missing, but nothing is mixed"
        with pytest.raises(ZeroDivisionError), new_folder(path, OWN):
            assert 1 / 0
        assert content(path) in (OLD | NOTES, NEW | NOTES), "the next run puts it right, even if it fails"
        assert [p.name for p in folder.iterdir()] == ["net"], "nothing is left"
        seen.append(content(path)["model.py"])
        write_folder(path, 3)
        assert content(path) == dict.fromkeys(OWN, "3") | NOTES
    else:
        pytest.fail("it never came to its end")
    assert content(path) == NEW | NOTES
    assert seen == sorted(seen) and set(seen) == {"1", "2"} and step > 15


def test_files_of_a_folder_survive_a_kill_at_every_step(folder: Path) -> None:
    """As `net.keras` and its source do, which stand in a folder that is not Onward's."""
    (folder / "notes.txt").write_text("mine")

    def write(version: int) -> None:
        with new_files(folder, OWN) as made:
            fill(made, version)

    for step in range(200):
        write(1)
        if not killed_at(step, lambda: write(2)):
            break
        found = content(folder)
        assert len({found[name] for name in OWN if name in found}) < 2, "nothing is mixed"
        assert "model.py" not in found or len(found) >= 4
        write(3)
        assert content(folder) == dict.fromkeys(OWN, "3") | NOTES
        assert len(list(folder.iterdir())) == 4, "nothing is left"
    assert content(folder) == dict.fromkeys(OWN, "2") | NOTES and 15 < step < 199


def test_a_file_survives_a_kill_at_every_step(folder: Path) -> None:
    path = folder / "page.html"
    for step in range(50):
        write_text(path, "old")
        if not killed_at(step, lambda: write_text(path, "new")):
            break
        assert path.read_text() in ("old", "new")
        write_text(path, "next")
        assert content(folder) == {"page.html": "next"}
    assert content(folder) == {"page.html": "new"} and 3 < step < 49


def model_of(value: float) -> onnx.ModelProto:
    weight = onnx.numpy_helper.from_array(np.full((64, 64), value, np.float32), "w")
    x, y = (onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [64, 64]) for name in "xy")
    node = onnx.helper.make_node("Add", ["x", "w"], ["y"])
    graph = onnx.helper.make_graph([node], f"graph {value}", [x], [y], [weight])
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])


def stored_value(path: Path) -> float:
    """The number that its graph is called after is that of its weights."""
    model = load(path)
    tensor = model.ir.graph.initializers["w"].const_value
    assert tensor is not None and (tensor.numpy() == float(str(model.ir.graph.name).split()[1])).all(), "mixed"
    return float(tensor.numpy()[0, 0])


def test_a_model_and_its_data_survive_a_kill_at_every_step(folder: Path) -> None:
    path = folder / "net.onnx"
    models = [load(model_of(float(value))) for value in range(4)]
    seen = []
    for step in range(200):
        models[1].save(path, external_data=True)
        if not killed_at(step, lambda: models[2].save(path, external_data=True)):
            break
        seen.append(stored_value(path))
        models[3].save(path, external_data=True)
        assert stored_value(path) == 3.0
        assert {p.name for p in folder.iterdir()} == {"net.onnx", "net.onnx.data"}
    assert stored_value(path) == 2.0 and 20 < step < 199
    assert seen == sorted(seen) and set(seen) == {1.0, 2.0}


def test_a_model_is_written_over_the_file_that_it_is_read_from(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    load(model_of(5.0)).save(path, external_data=True)
    model = load(path)
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    for _ in range(2):
        model.save(path)
        assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before
    assert stored_value(path) == 5.0


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Files cannot grow beyond some bytes, as on a disk that is full."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    signal.signal(signal.SIGXFSZ, ignored)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    net, page, model = tmp_path / "net", tmp_path / "page.html", tmp_path / "net.onnx"
    write_folder(net, 1)
    write_text(page, "old")
    load(model_of(1.0)).save(model, external_data=True)
    request.getfixturevalue("full_disk")
    with pytest.raises(WritingError, match="net: cannot be written: File too large"), new_folder(net, OWN) as folder:
        (folder / "weights").write_bytes(bytes(5000))
    with pytest.raises(WritingError, match=r"page\.html: cannot be written: File too large"):
        write_text(page, "new" * 1000)
    for apart in (True, False):
        with pytest.raises(WritingError, match=r"net\.onnx: cannot be written: (File too large|the disk may be full)"):
            load(model_of(2.0)).save(model, external_data=apart)
    assert content(net) == OLD and page.read_text() == "old" and stored_value(model) == 1.0
    assert {p.name for p in tmp_path.iterdir()} == {"net", "page.html", "net.onnx", "net.onnx.data"}


def test_a_disk_that_is_full_when_a_file_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system is on another machine, it is said as late as that."""
    path = tmp_path / "page.html"
    write_text(path, "old")

    class Late(io.BufferedWriter):
        def close(self) -> None:
            if not self.closed:
                super().close()
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", lambda self, mode: Late(io.FileIO(self, mode)))
    with pytest.raises(WritingError, match=r"page\.html: cannot be written: No space left on device"):
        write_text(path, "new")
    monkeypatch.undo()
    assert content(tmp_path) == {"page.html": "old"}


def test_only_what_cannot_be_made_again_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(Path(f"/proc/self/fd/{handle}").readlink().name))
    model = load(model_of(1.0))
    for apart in (True, False, True):
        model.save(tmp_path / "net.onnx", external_data=apart)
    write_folder(tmp_path / "net", 1)
    write_text(tmp_path / "page.html", "new")
    assert not synced
    for apart in (True, True):
        model.save(tmp_path / "trained.onnx", external_data=apart, durable=True)
    with new_files(tmp_path, ["one"], durable=True) as folder:
        (folder / "one").write_text("1")
    names = " ".join(synced)
    assert all(part in names for part in (".trained.onnx.", ".trained.onnx.data.", "one", tmp_path.name)), names
    assert len(synced) >= 12


def test_leftovers_never_block(tmp_path: Path) -> None:
    """Neither those of a process that had our number, as the one of a container always has, nor foreign ones."""
    path = tmp_path / "net.onnx"
    for name in (f".net.onnx.{os.getpid()}.part", ".net.onnx.part", ".net.onnx.0123456789abcdef.part"):
        (tmp_path / name).write_text("half")
    (tmp_path / ".net.onnx.fedcba9876543210.part").mkdir()
    load(model_of(1.0)).save(path)
    assert load(path).ir.graph.name == "graph 1.0"
    assert not (tmp_path / ".net.onnx.0123456789abcdef.part").exists()


def test_what_another_process_is_writing_is_no_leftover(tmp_path: Path) -> None:
    path = tmp_path / "net"
    with new_folder(path, OWN) as first:
        fill(first, 1)
        write_folder(path, 2)
        assert first.exists() and content(path) == dict.fromkeys(OWN, "2")
        with new_file(path / "weights") as file:
            file.write(b"1")
            write_text(path / "weights", "2")
    assert content(path) == OLD


def test_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    write_folder(tmp_path / "elsewhere" / "net", 1)
    write_text(tmp_path / "elsewhere" / "page.html", "old")
    (tmp_path / "net").symlink_to("elsewhere/net")
    (tmp_path / "page.html").symlink_to("elsewhere/page.html")
    (tmp_path / "new.html").symlink_to("elsewhere/new.html")
    write_folder(tmp_path / "net", 2)
    for name in ("page.html", "new.html"):
        write_text(tmp_path / name, "new")
        assert (tmp_path / name).is_symlink() and (tmp_path / "elsewhere" / name).read_text() == "new"
    assert (tmp_path / "net").is_symlink() and content(tmp_path / "elsewhere" / "net") == dict.fromkeys(OWN, "2")


def test_permissions_are_kept(in_one_step: bool, tmp_path: Path) -> None:
    path = tmp_path / "net"
    write_folder(path, 1)
    usual = stat.S_IMODE((path / "model.py").stat().st_mode)
    path.chmod(0o750)
    (path / "weights").chmod(0o640)
    write_folder(path, 2)
    write_text(path / "weights", "3")
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in (path, *path.iterdir())}
    assert modes == {"net": 0o750, "weights": 0o640, "model.py": usual, "ops.py": usual}


def test_folders_of_the_user_stay_in_a_folder_that_is_written_to(tmp_path: Path) -> None:
    path = tmp_path / "net"
    write_folder(path, 1)
    (path / "data").mkdir()
    (path / "data" / "rows.csv").write_text("1,2")
    (path / "link").symlink_to("nowhere")
    write_folder(path, 2)
    assert content(path) == dict.fromkeys(OWN, "2")
    assert (path / "data" / "rows.csv").read_text() == "1,2" and (path / "link").is_symlink()


def test_the_current_folder_stays_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net"
    write_folder(path, 1)
    monkeypatch.chdir(path)
    write_folder(Path(), 2)
    assert sorted(p.name for p in Path().iterdir()) == sorted(OWN) and content(path) == dict.fromkeys(OWN, "2")


def test_a_device_is_written_to_and_stays_one(tmp_path: Path) -> None:
    write_text("/dev/null", "gone")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    with pytest.raises(WritingError, match="/dev/full: cannot be written: No space left on device"):
        write_text("/dev/full", "gone")
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_text(tmp_path / "pipe", "read")
    assert os.read(reader, 10) == b"read"
    os.close(reader)


def test_a_folder_and_a_file_do_not_replace_each_other(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(WritingError, match="folder: cannot be written: Is a directory"):
        write_text(tmp_path / "folder", "new")
    with pytest.raises(WritingError, match="file: cannot be written: Not a directory"):
        write_folder(tmp_path / "file", 1)
    with pytest.raises(WritingError, match="cannot be written: Not a directory"):
        write_folder(tmp_path / "file" / "net", 1)
    assert content(tmp_path) == {"file": "mine"}


def test_two_folders_change_places(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "name").write_text(name)
    exchange.exchange(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "a" / "name").read_text() == "b" and (tmp_path / "b" / "name").read_text() == "a"
    with pytest.raises(FileNotFoundError):
        exchange.exchange(tmp_path / "a", tmp_path / "c")


def test_long_names(tmp_path: Path) -> None:
    write_text(tmp_path / ("n" * 250), "long")
    write_folder(tmp_path / ("ü" * 120), 1)
    assert len(list(tmp_path.iterdir())) == 2
