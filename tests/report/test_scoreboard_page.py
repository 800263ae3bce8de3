"""The scoreboard in a browser: what is counted is shown, rows open to messages, filters and views do what they say."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import board_samples as samples
import pytest
from browser import Browser

from onward.report.badge import COLOURS, badge
from onward.report.scoreboard_page import page
from onward.report.scoreboard_site import badge_name, write
from onward.report.scoreboard_text import markdown
from onward.scoreboard.board import add_history, changes


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    found = changes(samples.board(fixed=True), samples.board())
    write(out, samples.board(), samples.history(5), found)
    return out


@pytest.fixture
def shown(browser: Browser, site: Path) -> Browser:
    browser.open(site / "index.html")
    assert browser.console == []
    return browser


def rows(browser: Browser) -> dict[str, list[str]]:
    """The table of the suite: what is in the columns, by row."""
    script = "[...document.querySelectorAll('#results tr.group')].map(r => [...r.cells].map(c => c.textContent))"
    return {name: cells for name, *cells in browser.run(script)}


def type_in(browser: Browser, field: str, text: str) -> None:
    browser.run(f"(() => {{ const f = document.querySelector('{field}'); f.value = ''; f.focus(); }})()")
    if text:
        browser.type(text)
    else:
        browser.run(f"document.querySelector('{field}').dispatchEvent(new Event('input'))")
    browser.run("new Promise(done => setTimeout(done, 200))")


def click(browser: Browser, selector: str) -> None:
    browser.click(*browser.centre(selector))


def test_the_page_is_complete_in_itself(shown: Browser, site: Path) -> None:
    text = (site / "index.html").read_text()
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)
    assert shown.run("performance.getEntriesByType('resource').length") == 0
    assert shown.count_of("#evil") == 0, "a message is never read as HTML"
    wider = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    for width in (1280, 390):
        shown.open(site / "index.html", width=width)
        assert not shown.run(wider)


def test_cards_show_the_totals(shown: Browser) -> None:
    assert shown.run("[...document.querySelectorAll('.runner h2')].map(h => h.textContent)") == ["sure", "quick"]
    scores = shown.run("[...document.querySelectorAll('.score b')].map(b => b.textContent)")
    assert scores == ["3", "4", "5", "2", "2", "2"], "the random test is not counted"
    hints = shown.run("[...document.querySelectorAll('.score .bar')].map(b => b.title)")
    assert hints[3] == "2 pass, 1 wrong, 1 crash"


def test_rows_by_op_opset_and_family(shown: Browser) -> None:
    assert rows(shown) == {
        "Add": ["1", "1 / 1", "1 / 1"],
        "Random": ["1", "not counted", "not counted"],
        "Relu": ["2", "2 / 2", "1 / 2"],
        "(whole networks)": ["1", "0 / 1", "0 / 1"],
    }
    assert list(rows(shown)) == ["Add", "Random", "Relu", "(whole networks)"]
    click(shown, "[data-view=opset]")
    assert list(rows(shown)) == ["ai.onnx 6", "ai.onnx 9", "ai.onnx 13"]
    assert rows(shown)["ai.onnx 13"] == ["3", "2 / 2", "1 / 2"]
    click(shown, "[data-view=family]")
    assert rows(shown)["nodeone op each"] == ["4", "3 / 3", "2 / 3"]
    click(shown, "[data-what=unknown]")
    assert rows(shown)["lightwell-known networks"] == ["1", "1 / 1", "1 / 1"]


def test_a_row_opens_to_its_messages(shown: Browser) -> None:
    click(shown, "#results tr.group:nth-child(3) button")
    assert shown.text("#results td.inside li .message") == samples.HOSTILE
    names = shown.run("[...document.querySelectorAll('.inside .test > div:first-child code')].map(c => c.textContent)")
    assert names == ["test_relu", "test_relu_2"], "what fails comes first"
    click(shown, "#results tr.group:nth-child(3) button")
    assert shown.count_of("#results td.inside") == 0


@pytest.mark.parametrize(
    ("text", "found"), [("add", ["Add"]), ("sigsegv", ["(whole networks)"]), ("relu_2", ["Relu"]), ("nothing such", [])]
)
def test_the_filter_looks_at_ops_tests_and_messages(shown: Browser, text: str, found: list[str]) -> None:
    type_in(shown, "#filter", text)
    assert list(rows(shown)) == found
    assert shown.count_of("#results td.inside") == len(found), "a single row opens by itself"
    type_in(shown, "#filter", "")
    assert len(rows(shown)) == 4


def test_only_what_fails(shown: Browser) -> None:
    click(shown, "#failing")
    assert list(rows(shown)) == ["Random", "Relu", "(whole networks)"]
    assert shown.text("#found") == "3 of 5 tests in 3 rows"


def test_what_is_lost_with_the_shapes(shown: Browser) -> None:
    table = shown.run("[...document.querySelectorAll('#unknown tbody tr')].map(r => r.textContent)")
    assert table[0] == "sure34none"
    assert table[1].startswith("quick221 testtest_add") and "no shape" in table[1]


def test_the_matrix_of_dtypes(shown: Browser) -> None:
    assert shown.run("[...document.querySelectorAll('#matrix thead span')].map(s => s.textContent)") == [
        *("float", "double", "float16")
    ]
    each = "[...r.cells].map(c => c.firstElementChild?.className || '')"
    classes = f"[...document.querySelectorAll('#matrix tbody tr')].map(r => {each})"
    assert shown.run(classes) == [["", "pass", "", "pass"], ["", "pass", "pass", ""], ["", "none", "", ""]]
    click(shown, "[data-runner='1']")
    assert shown.run(classes) == [["", "pass", "", "refused"], ["", "wrong", "imprecise", ""], ["", "none", "", ""]]
    click(shown, "#matrix button.wrong")
    detail = shown.text("#cell-detail")
    assert "Relu · T · quick" in detail and "seq(tensor(float))" in detail and samples.HOSTILE in detail
    click(shown, "#matrix button.none")
    assert "its output is random" in shown.text("#cell-detail")
    type_in(shown, "#dtype-filter", "add")
    assert shown.count_of("#matrix tbody tr") == 1


def test_changes_and_trend(shown: Browser) -> None:
    assert "Newly failing" in shown.text("#changes") and "Newly passing" not in shown.text("#changes")
    assert shown.count_of("#changes tbody tr") == 2
    assert shown.count_of("#trend svg") == 3
    assert shown.count_of("#trend svg:first-of-type g circle") == 2 * 5 * 3
    overlap = "[...document.querySelectorAll('#trend figure:first-child g text')].map(t => t.getBoundingClientRect().y)"
    first, second = sorted(shown.run(overlap))
    assert second - first > 8, "names of lines are beside each other, not over each other"


@pytest.mark.parametrize("what", [["suite"], ["unknown"], ["dtypes"]])
def test_parts_alone(browser: Browser, tmp_path: Path, what: list[str]) -> None:
    data: dict[str, Any] = samples.board()
    data["selection"]["what"] = what
    data["totals"] = {part: data["totals"][part] for part in what}
    data["tests"] = [] if what == ["dtypes"] else data["tests"]
    data["dtypes"] = data["dtypes"] if what == ["dtypes"] else []
    (tmp_path / "page.html").write_text(page(data))
    browser.open(tmp_path / "page.html")
    assert browser.console == []
    assert browser.count_of("#results") == (what != ["dtypes"]) and browser.count_of("#matrix") == (what == ["dtypes"])
    assert markdown(data).startswith("# Scoreboard")


def test_the_files(site: Path) -> None:
    assert json.loads((site / "scoreboard.json").read_text()) == samples.board()
    names = {path.name for path in (site / "badges").iterdir()}
    assert names == {f"{runner}{part}.svg" for runner in ("sure", "quick") for part in ("", "-unknown", "-dtypes")}
    for path in (site / "badges").iterdir():
        ElementTree.parse(path)
    assert "quick · ONNX suite: 2 of 4" in (site / "badges" / "quick.svg").read_text()
    assert badge_name("suite", "onnxruntime:CUDA/../x") == "onnxruntime-CUDA-..-x.svg"


@pytest.mark.parametrize(("portion", "colour"), [(1.0, 0), (0.95, 1), (0.8, 2), (0.0, 3)])
def test_badges_have_the_colour_of_their_share(portion: float, colour: int) -> None:
    assert COLOURS[colour][1] in badge("ONNX", "<1 of 2>", portion)
    assert "<1 of" not in badge("ONNX", "<1 of 2>", portion)


def test_the_page_of_the_documentation() -> None:
    text = markdown(samples.board())
    assert "| quick | **2** | 0 | 1 | 0 | 1 | 0 |" in text
    assert "| node | one op each | 3 | 3 | 2 |" in text
    assert "1 tests that expect one random draw (`test_random`)" in text
    assert "| `double` | 1 | 1 | 0 |" in text
    for key in samples.board():
        assert f"| `{key}` |" in text, "every field of the data is described"


def test_the_page_says_what_fails_in_each_mode_of_a_backend() -> None:
    data = samples.board()
    data["runners"] = {f"jax{mode}": data["runners"][name] for mode, name in (("", "sure"), (":jit", "quick"))}
    for test in data["tests"]:
        test["suite"] = {"jax": test["suite"]["sure"], "jax:jit": test["suite"]["quick"]}
    text = markdown(data | {"selection": data["selection"] | {"what": ["suite"]}, "totals": {}, "dtypes": []})
    assert "`onward scoreboard --out site/ --on jax,jax:jit --what suite --markdown FILE`" in text
    plain, jitted = text.split("## What does not pass on JAX\n")[1].split("## What does not pass on JAX (jax:jit)\n")
    assert "`test_relu`" in jitted and "`test_relu`" not in plain


def test_the_documentation_is_written_by_this_code() -> None:
    text = (Path(__file__).parents[2] / "docs/measured/scoreboard.md").read_text()
    own = markdown(samples.board())
    assert own[own.index("## How it is counted") :] == text[text.index("## How it is counted") :]


def test_history_of_the_same_selection_only(tmp_path: Path) -> None:
    path = tmp_path / "history.json"
    part = samples.board()
    part["selection"] = part["selection"] | {"only": "relu"}
    assert len(add_history(path, samples.board())) == 1
    assert len(add_history(path, part)) == 1
    assert len(add_history(path, samples.board(fixed=True))) == 2
    assert len(add_history(path, samples.board(fixed=True))) == 2, "nothing new"
