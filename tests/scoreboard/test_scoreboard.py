"""`onward scoreboard` on a few tests: crashes and hangs are results, a second call goes on, changes are found."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from onward.scoreboard import board

ONLY = "^test_(abs|ceil|exp|neg|relu|sqrt)$"
EXPECTED = {
    "test_abs": ("crash", "crash (SIGSEGV)"),
    "test_ceil": ("timeout", "timed out after 2 s"),
    "test_exp": ("wrong", "Not equal to tolerance"),
    "test_neg": ("refused", "odd: no minus today"),
    "test_relu": ("pass", ""),
    "test_sqrt": ("pass", ""),
}


@dataclass
class Onward:
    """The command line, in a process that has read the suite once."""

    process: subprocess.Popen[str]

    def __call__(self, *arguments: object, **environment: str) -> dict[str, Any]:
        assert self.process.stdin and self.process.stdout
        command = {"arguments": ["scoreboard", *map(str, arguments)], "environment": environment}
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@pytest.fixture(scope="module")
def onward() -> Iterator[Onward]:
    program = Path(__file__).with_name("odd_runners.py")
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Onward(process)
        assert process.stdin
        process.stdin.close()


@pytest.fixture(scope="module")
def site(onward: Onward, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A first run of the runner that misbehaves."""
    out = tmp_path_factory.mktemp("site")
    answer = onward("--out", out, "--on", "odd", "--what", "suite,unknown", "--only", ONLY, "--timeout", 2, "--jobs", 2)
    assert answer["code"] == 0, answer
    assert "(12 run)" in " ".join(answer["errors"].split())
    return out


def results(site: Path, what: str, runner: str = "odd") -> dict[str, tuple[str, str]]:
    data = board.read(site / "scoreboard.json")
    return {t["name"]: (t[what][runner]["status"], t[what][runner].get("message", "")) for t in data["tests"]}


@pytest.mark.parametrize("what", ["suite", "unknown"])
def test_a_crash_or_a_hang_counts_against_its_test_only(site: Path, what: str) -> None:
    found = results(site, what)
    assert found.keys() == EXPECTED.keys()
    for name, (status, message) in EXPECTED.items():
        assert found[name][0] == status and found[name][1].startswith(message), (name, found[name])
    totals = json.loads((site / "scoreboard.json").read_text())["totals"][what]
    assert totals["tests"] == 6
    counts = {"pass": 2, "imprecise": 0, "wrong": 1, "refused": 1, "crash": 1, "timeout": 1}
    assert totals["runners"] == {"odd": counts}


def test_a_second_call_runs_what_is_missing_only(onward: Onward, site: Path) -> None:
    file = site / "results.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    kept = [line for line in lines if json.loads(line)["test"] in ("test_abs", "test_ceil", "test_exp")]
    cut_off = lines[-1][:40]
    other = json.dumps(json.loads(lines[-1]) | {"test": "test_relu", "versions": "onnx 0.1", "status": "wrong"}) + "\n"
    file.write_text("".join([*kept, other, cut_off]))
    arguments = ["--out", site, "--on", "odd,reference", "--what", "suite,unknown", "--only", ONLY, "--timeout", 2]
    answer = onward(*arguments)
    assert "(18 run, 6 taken from before)" in " ".join(answer["errors"].split()), answer
    assert results(site, "suite")["test_relu"] == ("pass", "")
    assert {status for status, _ in results(site, "suite", "reference").values()} == {"pass"}
    assert len(json.loads((site / "history.json").read_text())) == 2
    assert "(0 run, 24 taken from before)" in " ".join(onward(*arguments)["errors"].split())
    assert len(json.loads((site / "history.json").read_text())) == 2, "nothing new, nothing to remember"


def test_more_time_is_another_chance(onward: Onward, tmp_path: Path) -> None:
    arguments = ["--out", tmp_path, "--on", "odd", "--what", "suite", "--only", "^test_(ceil|relu)$", "--timeout"]
    assert "(2 run)" in onward(*arguments, 1.5)["errors"]
    assert "(0 run, 2 taken" in onward(*arguments, 1.4)["errors"]
    assert "(1 run, 1 taken" in onward(*arguments, 1.6)["errors"]
    assert "(2 run)" in onward(*arguments, 1.6, "--fresh")["errors"]


def test_what_changed(onward: Onward, site: Path, tmp_path: Path) -> None:
    common = ["--on", "odd", "--what", "suite", "--only", ONLY, "--timeout", 2]
    mended = onward("--out", tmp_path, *common, "--compare", site / "scoreboard.json", MENDED="1")
    assert mended["code"] == 0
    assert "newly failing: 0" in mended["out"] and "newly passing: 4" in mended["out"]
    assert "odd · suite · test_abs: crash → pass" in mended["out"]
    broken = onward("--out", tmp_path, *common, "--fresh", "--compare", tmp_path / "scoreboard.json", MENDED="")
    assert broken["code"] == 1, "something fails that passed"
    assert "newly failing: 4" in broken["out"] and "test_abs: pass → crash" in broken["out"]
    assert "Newly failing" in (tmp_path / "index.html").read_text()


def test_dtypes_and_files(onward: Onward, tmp_path: Path) -> None:
    out, page = tmp_path / "new" / "site", tmp_path / "board.md"
    only = "^(Add|Bernoulli|Exp) "
    answer = onward("--out", out, "--on", "odd,odd:mended,onnxruntime", "--only", only, "--markdown", page, MENDED="")
    assert answer["code"] == 0, answer
    data = board.read(out / "scoreboard.json")
    cells = {(cell["op"], cell["parameter"], cell["dtype"]): cell for cell in data["dtypes"]}
    assert cells["Add", "T", "float16"]["results"]["onnxruntime"]["status"] == "pass"
    assert cells["Add", "T", "float16"]["truth"] == "reference in float32"
    assert cells["Add", "T", "bfloat16"]["results"]["onnxruntime"]["status"] == "refused"
    assert cells["Add", "T", "bfloat16"]["results"]["odd:mended"]["status"] == "pass"
    assert cells["Exp", "T", "float16"]["results"]["odd"]["status"] == "wrong"
    assert cells["Exp", "T", "float16"]["results"]["odd:mended"]["status"] == "pass"
    random = cells["Bernoulli", "T1", "float"]
    assert random["results"] == {} and random["why"] == "its output is random" and not random["truth"]
    assert data["totals"]["dtypes"]["no reference"] == sum(cell["op"] == "Bernoulli" for cell in data["dtypes"])
    assert {path.name for path in (out / "badges").iterdir()} == {
        *("odd-dtypes.svg", "odd-mended-dtypes.svg", "onnxruntime-dtypes.svg")
    }
    assert "| `bfloat16` | 2 | 1 | 2 | 0 |" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--on", "abacus"], "there is no runner 'abacus'"),
        (["--what", "suite,luck"], "there are suite, unknown, dtypes"),
        (["--only", "("], "is not a regular expression"),
        (["--jobs", "0"], "positive"),
        (["--compare", "missing.json"], "missing.json: cannot be read"),
        (["--compare", __file__], "is not JSON"),
    ],
)
def test_bad_usage(onward: Onward, tmp_path: Path, arguments: list[str], words: str) -> None:
    answer = onward("--out", tmp_path / "site", *arguments)
    assert answer["code"] == 2 and words in answer["errors"]
    assert answer["errors"].count("\n") == 1
    assert not (tmp_path / "site" / "index.html").exists()
