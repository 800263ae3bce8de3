"""The page of a model in a browser: what one opens it for."""

import re
from pathlib import Path

import pytest
import view_samples as samples
from browser import Browser

from onward.backends.backend import backend
from onward.errors import OnwardError
from onward.model import load
from onward.report.view import page as pages_of
from onward.report.view.page import Code, package_page, page

LAYERS = 30
"""Of the large network: 301 nodes, so that it is shown by modules."""
DIGITS = Path(__file__).parents[3] / "examples/digits/digits.onnx"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    digits = load(DIGITS)
    source = backend("torch").generate(digits)
    texts = {
        "digits": page(digits, code=Code("PyTorch", "model.py", source.model, source.lines)),
        "large": page(samples.network(LAYERS)),
        "bodies": page(samples.with_bodies()),
        "hostile": page(samples.hostile(), samples.HOSTILE, remark=samples.HOSTILE),
        "package": package_page("net", "PyTorch", [], [Code("PyTorch", "model.py", 'x = "<b>"  # <i>')], "Not run."),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


EVERY = ["digits", "large", "bodies", "hostile", "package"]


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_the_page_is_complete_and_fits_its_window(
    browser: Browser, pages: dict[str, Path], name: str, dark: bool
) -> None:
    text = pages[name].read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)
    for width in (1400, 390):
        browser.open(pages[name], width=width, dark=dark)
        assert browser.console == []
        assert browser.run("performance.getEntriesByType('resource').length") == 0
        assert browser.run("document.documentElement.scrollWidth") <= width


def test_names_from_a_file_are_inert(browser: Browser, pages: dict[str, Path]) -> None:
    assert "<img" not in pages["hostile"].read_text(encoding="utf-8")
    browser.open(pages["hostile"])
    search(browser, "script")
    assert browser.count_of("img") == 0 and browser.run("document.title") != "owned"
    assert browser.text("#graph-node h2").startswith("</script><img")
    browser.open(pages["package"])
    assert browser.text(".line") == 'x = "<b>"  # <i>' and browser.count_of("b, i") == 0


def search(browser: Browser, text: str) -> str:
    browser.click(*browser.centre("#graph-search"))
    browser.run("document.getElementById('graph-search').value = ''")
    browser.type(text)
    return browser.text("#graph-found")


def press(browser: Browser, text: str) -> None:
    """The button with this text."""
    found = f"[...document.querySelectorAll('button')].find(b => b.textContent === {text!r})"
    assert browser.run(f"Boolean({found})"), f"there is no button {text!r}"
    browser.run(f"{found}.click()")
    browser.settle()


def path(browser: Browser) -> str:
    """Which module is shown."""
    hidden = browser.run("document.getElementById('graph-path').hidden")
    return "" if hidden else browser.text("#graph-path")


def test_a_node_shows_its_shapes_weights_and_attributes(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["digits"])
    assert search(browser, "node_conv2d_1") == "1 of 1"
    panel = browser.text("#graph-node")
    assert panel.startswith("Convnode_conv2d_1")
    assert "layer1.0.conv1.weightfloat[16, 16, 3, 3]initializer, 2,304 numbers, 9.2 kBmin " in panel
    assert "[1, 1, 1, 1]" in panel and "kernel_shape[3, 3]" in panel
    assert "float[batch, 16, 8, 8]read by BatchNormalization" in panel
    assert browser.count_of("#graph-node svg.histogram rect") == 24


def test_a_node_shows_the_lines_that_it_became(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["digits"])
    search(browser, "node_linear")
    assert browser.text("#graph-node .source") == "self.head = nn.Linear(32, 10)⋯return self.head(x)"
    assert browser.count_of("#code .line.chosen") == 2
    search(browser, "node_Shape_0")
    assert "No line is its own" in browser.text("#graph-node")
    lines = "[...document.querySelectorAll('#code .line')]"
    number = browser.run(f"{lines}.findIndex(l => l.textContent.includes('nn.Linear(')) + 1")
    browser.run(f"document.getElementById('line-{number}').click()")
    assert browser.text("#graph-node p code") == "node_linear", "a line leads to its node"


def test_modules_open_and_close(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])
    assert path(browser) == "" and browser.text("#graph-node h2") == "net"
    assert search(browser, "/layers.7/attention/softmax") == "1 of 1"
    assert path(browser) == "net › layers.7 › attention"
    assert "What it depends on" in browser.text("#graph-node")
    press(browser, "layers.7")
    assert path(browser) == "net › layers.7"
    browser.run("document.getElementById('graph-canvas').focus()")
    browser.key("Backspace")
    assert path(browser) == "" and browser.text("#graph-node h2") == "layers.7", (
        "the module that one came from is chosen"
    )
    assert "A module of 10 nodes" in browser.text("#graph-node")
    browser.key("Enter")
    assert path(browser) == "net › layers.7"


def test_all_nodes_at_once(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])
    search(browser, "/layers.7/attention/softmax")
    press(browser, "All nodes")
    assert path(browser) == "" and browser.text("#graph-node h2") == "Softmax", "what was chosen stays chosen"
    browser.run("document.getElementById('graph-canvas').focus()")
    browser.key("ArrowDown")
    assert browser.text("#graph-node p code") == "/layers.7/attention/MatMul_1"
    browser.key("ArrowUp")
    browser.key("ArrowUp")
    assert browser.text("#graph-node h2") in ("Add", "MatMul")
    press(browser, "Modules")
    assert path(browser) == "net › layers.7 › attention"


def test_what_a_node_depends_on_is_lit(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])
    search(browser, "/layers.2/add")
    press(browser, "What it depends on")
    assert "29 nodes that this one depends on" in browser.text("#graph-node .lit"), "all of three layers but itself"
    press(browser, "What depends on it")
    after = 10 * (LAYERS - 3) + 1
    assert f"{after} nodes that depend on this one" in browser.text("#graph-node .lit")
    press(browser, "Show all")
    assert browser.count_of(".lit") == 0


def test_bodies_and_functions_open(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["bodies"])
    search(browser, "then_branch")
    assert browser.text("#graph-found") == "no match", "a body is no node"
    search(browser, "if")
    press(browser, "Open else_branch")
    assert path(browser) == "agraph › If · else_branch"
    search(browser, "relu")
    assert path(browser) == "agraph › If · then_branch"
    press(browser, "agraph")
    search(browser, "twice")
    press(browser, "Open the function")
    assert path(browser) == "agraph › twice"
    assert "author" in browser.text("#about") and "someone" in browser.text("#about")


def test_the_table_of_weights_is_filtered_and_sorted(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["digits"])
    everything = browser.text("#weights-found")
    browser.click(*browser.centre("#weights-filter"))
    browser.type("head")
    assert browser.text("#weights-found") != everything
    names = "[...document.querySelectorAll('#weights-table th code')].map(c => c.textContent)"
    assert browser.run(names) == ["head.weight", "head.bias"]
    browser.run("document.getElementById('weights-order').value = 'name'")
    browser.run("document.getElementById('weights-order').dispatchEvent(new Event('change'))")
    assert browser.run(names) == ["head.bias", "head.weight"]
    browser.click(*browser.centre("#weights-table button"))
    assert browser.text("#graph-node p code") == "node_linear"


def test_a_large_graph_is_there_at_once(browser: Browser, tmp_path: Path) -> None:
    """5,001 nodes: what the page does by itself, in the time of its own thread."""
    (tmp_path / "page.html").write_text(page(samples.network(500)), encoding="utf-8")
    browser.open(tmp_path / "page.html")
    assert browser.run("performance.timing.loadEventEnd - performance.timing.responseEnd") < 3000
    took = """(() => { const began = performance.now(); document.getElementById('graph-flat').click();
      const search = document.getElementById('graph-search');
      for (const word of ['softmax', 'layers.77', '']) {
        search.value = word; search.dispatchEvent(new Event('input')); }
      return performance.now() - began })()"""
    assert browser.run(took) < 1500


def test_a_page_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_of, "MOST_NODES", 10)
    with pytest.raises(OnwardError, match="it has 11 nodes, more than the 10 that a page can hold"):
        page(samples.network(1))


def test_the_page_is_made_for_everyone(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["digits"])
    nameless = """[...document.querySelectorAll('button, input, select, canvas, svg[role=img], [role=region]')]
      .filter(e => !(e.ariaLabel || e.labels?.length || e.textContent.trim())).length"""
    assert browser.run(nameless) == 0
    ids = browser.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))
    assert browser.run("[...document.querySelectorAll('h1')].length") == 1
