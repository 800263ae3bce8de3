import json
import math
import re
from itertools import pairwise
from pathlib import Path

import pytest
import report_samples as samples
from browser import Browser

from onward.report.html import document, json_script
from onward.report.layered import layered
from onward.report.plots import LogScale
from onward.report.verify_page import page
from onward.verification.results import NodeError, Report, SideResult

NODES = 3000
BROKEN = 1800


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A page of each sample."""
    folder = tmp_path_factory.mktemp("pages")
    reports = {
        "same": samples.same(),
        "different": samples.different(),
        "failed": samples.failed(),
        "hostile": samples.hostile(),
        "large": samples.large(NODES, BROKEN),
        "nothing": Report("m.onnx", "onnxruntime"),
    }
    for name, report in reports.items():
        (folder / f"{name}.html").write_text(page(report), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in reports}


EVERY = ["same", "different", "failed", "hostile", "large", "nothing"]


@pytest.mark.parametrize("name", EVERY)
def test_the_page_is_complete_in_itself_and_runs_without_complaint(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    text = pages[name].read_text(encoding="utf-8")
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", text)
    assert "url(" not in text and "@import" not in text
    browser.open(pages[name])
    assert browser.console == []
    assert browser.run("performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize(
    ("name", "word", "tone"),
    [("same", "Same", "good"), ("different", "Different", "bad"), ("failed", "Not verified", "warn")],
)
def test_the_verdict_comes_first(browser: Browser, pages: dict[str, Path], name: str, word: str, tone: str) -> None:
    browser.open(pages[name])
    assert browser.text(".verdict .word") == word
    assert browser.count_of(f".verdict.{tone}") == 1
    assert browser.run("document.title").startswith(f"{word}: ")
    assert browser.run("document.querySelector('.verdict').getBoundingClientRect().top") < 200


def test_every_output_of_every_side_has_a_row(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["different"])
    tables = (
        "[...document.querySelectorAll('.side')].map(side => [...side.querySelectorAll(':scope > .scroll tbody tr')]"
    )
    verdicts = browser.run(f"{tables}.map(row => row.querySelector('.badge').textContent))")
    assert verdicts == [["different", "same", "same"], ["shape", "same"], ["same", "same"]]
    assert browser.text(".side .culprit b") == "The first node that differs is conv_7 (Conv)."
    assert "shape [1, 4, 2] instead of [1, 2, 4]" in browser.text(".side:nth-of-type(2) .problems")
    assert browser.count_of("#differences .tile") == 6
    assert "the floor of float32" in browser.text("#tolerance table")
    assert "2.13.0" in browser.text("#environment")


def test_what_failed_says_why(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["failed"])
    problems = browser.run("[...document.querySelectorAll('.problems')].map(list => list.textContent)")
    assert problems == [
        "could not be prepared: openvino is not installed: pip install openvino",
        "random: could not be run: took longer than 60 s",
    ]


def test_names_from_a_file_are_inert(browser: Browser, pages: dict[str, Path]) -> None:
    text = pages["hostile"].read_text(encoding="utf-8")
    assert "<img" not in text
    assert "\x1b" not in text and "‮" not in text
    browser.open(pages["hostile"])
    assert browser.count_of("img") == 0
    assert browser.run("document.title") != "owned"
    assert browser.text("h1").startswith("</script><img src=x onerror=")
    assert browser.text("#graph-node code").startswith("</script><img src=x onerror=")


def test_a_script_that_is_not_the_pages_own_does_not_run(browser: Browser, tmp_path: Path) -> None:
    """Should a text ever slip through unescaped, the page's policy holds."""
    body = "<p>x</p><script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
    path = tmp_path / "unescaped.html"
    path.write_text(document("safe", body), encoding="utf-8")
    browser.open(path)
    assert browser.run("document.title") == "safe"
    assert any("Content Security Policy" in entry for entry in browser.console)


def test_data_survives_the_page() -> None:
    data = {"a": samples.HOSTILE, "b": ["<!--", "]]>", "\u2028", "\ud800", "&amp;"]}
    script = json_script("x", data)
    inside = re.fullmatch(r'<script type="application/json" id="x">(.*)</script>', script)
    assert inside and json.loads(inside[1]) == data
    assert not set("<>&\u2028\ud800") & set(inside[1])


def test_the_profile_is_read_by_pointer_and_by_keys(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])
    middle, y = browser.centre(".profile .plot")
    width = browser.run("document.querySelector('.profile .plot').getBoundingClientRect().width")
    browser.mouse("Moved", middle + width * ((BROKEN + 0.5) / NODES - 0.5), y)
    reading = browser.text(".reading")
    assert f"Add_{BROKEN}" in reading and "own error 0.031" in reading and "allowed 1.9e-05" in reading
    assert browser.text(".reading .bad") == "0.031"
    browser.run("document.querySelector('.profile').focus()")
    browser.key("ArrowRight")
    assert f"Softmax_{BROKEN + 1}" in browser.text(".reading")
    browser.key("Home")
    assert "/layers.0/Cast_0" in browser.text(".reading")
    browser.key("Enter")
    assert "/layers.0/Cast_0" in browser.text("#graph-node")


def test_the_profile_marks_what_is_beyond(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])
    dots = browser.run("document.querySelector('.plot .own:not(.beyond)').getAttribute('d').match(/M/g).length")
    beyond = browser.run("document.querySelector('.plot .own.beyond').getAttribute('d').match(/M/g).length")
    assert (dots, beyond) == (NODES - 1, 1)
    assert browser.text(".profile tbody th") == f"/layers.128/Add_{BROKEN}"


def hint_in_the_middle(browser: Browser) -> str:
    """What the pointer finds in the middle of the graph's canvas."""
    browser.mouse("Moved", *browser.centre("#graph-canvas"))
    return "" if browser.run("document.getElementById('graph-hint').hidden") else browser.text("#graph-hint")


def picture(browser: Browser) -> str:
    browser.settle()
    return str(browser.run("document.getElementById('graph-canvas').toDataURL()"))


def test_the_graph_opens_at_the_first_difference(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])
    assert f"Add_{BROKEN}" in hint_in_the_middle(browser)
    assert browser.text("#graph-node code") == f"/layers.128/Add_{BROKEN}"
    red = browser.run("getComputedStyle(document.documentElement).getPropertyValue('--far')").strip()
    assert pixel(browser, -60, 0) == tuple(int(red[i : i + 2], 16) for i in (1, 3, 5))


def pixel(browser: Browser, x: int, y: int) -> tuple[int, ...]:
    """The colour of the canvas, that far from its middle."""
    script = f"""(() => {{ const c = document.getElementById('graph-canvas');
      return [...c.getContext('2d').getImageData(c.width / 2 + {x}, c.height / 2 + {y}, 1, 1).data].slice(0, 3) }})()"""
    return tuple(browser.run(script))


def test_search_centres_and_walks_through_the_matches(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])
    browser.click(*browser.centre("#graph-search"))
    browser.type("softmax_17")
    assert browser.text("#graph-found") == "1 of 6"
    assert "Softmax_1705" in hint_in_the_middle(browser)
    browser.key("Enter")
    assert browser.text("#graph-found") == "2 of 6"
    assert "Softmax_1721" in hint_in_the_middle(browser)
    browser.key("Enter", shift=True)
    browser.key("Enter", shift=True)
    assert browser.text("#graph-found") == "6 of 6"
    browser.click(*browser.centre("#graph-next"))
    assert browser.text("#graph-found") == "1 of 6"
    browser.click(*browser.centre("#graph-search"))
    browser.type("nowhere")
    assert browser.text("#graph-found") == "no match"
    browser.key("Escape")
    assert browser.text("#graph-found") == ""
    assert browser.text("#graph-node").startswith("Choose a node")


def test_pan_and_zoom_by_pointer_wheel_and_keys(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])
    x, y = browser.centre("#graph-canvas")
    start = picture(browser)

    browser.mouse("Pressed", x + 200, y, button="left", clickCount=1)
    browser.mouse("Moved", x + 200, y + 76 * 0.9, button="left", buttons=1)
    browser.mouse("Released", x + 200, y + 76 * 0.9, button="left", clickCount=1)
    assert f"MatMul_{BROKEN - 1}" in hint_in_the_middle(browser)

    browser.mouse("Wheel", x, y, deltaX=0, deltaY=-100, modifiers=2)
    closer = picture(browser)
    assert closer != start
    browser.run("document.getElementById('graph-canvas').focus()")
    browser.key("-", "-")
    assert picture(browser) != closer
    browser.key("0", "0")
    whole = picture(browser)
    browser.click(*browser.centre("#graph-fit"))
    browser.mouse("Moved", 1, 1)
    assert picture(browser) == whole
    browser.click(*browser.centre("#graph-culprit"))
    assert f"Add_{BROKEN}" in hint_in_the_middle(browser)


def test_the_wheel_scrolls_the_page_until_the_graph_is_used(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])
    x, y = browser.centre("#graph-canvas")
    before = browser.run("scrollY")
    browser.mouse("Wheel", x, y, deltaX=0, deltaY=-100)
    browser.until(lambda: browser.run("scrollY") < before)


def test_the_legend_counts_every_node_once(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])

    def counts() -> list[int]:
        found = browser.run("[...document.querySelectorAll('#graph-legend span')].map(s => Number(s.dataset.count))")
        return [int(count) for count in found]

    own = counts()
    assert sum(own) == NODES and own[-1] == 1
    browser.run("document.getElementById('graph-measure').value = 'path'")
    browser.run("document.getElementById('graph-measure').dispatchEvent(new Event('change'))")
    assert sum(counts()) == NODES and counts()[-1] == NODES - BROKEN


def test_the_graph_answers_at_once(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["large"])
    took = browser.run(
        """(() => { const search = document.getElementById('graph-search'), began = performance.now();
        for (const word of ['MatMul', 'add', 'layers.77', '']) {
          search.value = word; search.dispatchEvent(new Event('input')); }
        return performance.now() - began })()"""
    )
    assert took < 1000


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [380, 1280])
def test_the_page_fits_its_window_and_its_text_can_be_read(
    browser: Browser, pages: dict[str, Path], width: int, dark: bool
) -> None:
    for name in EVERY:
        browser.open(pages[name], width=width, dark=dark)
        assert browser.run("document.documentElement.scrollWidth") <= width, name
        assert browser.run(CONTRAST) == [], name


CONTRAST = """(() => {
  const part = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4 };
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const colour = (text) => text.match(/[\\d.]+/g).map(Number);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const c = colour(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] === 1) return c;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const e of document.querySelectorAll('main *')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.checkVisibility()) continue;
    const [a, b] = [light(colour(getComputedStyle(e).color)), light(ground(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(`${e.tagName} ${e.className} ${e.textContent.slice(0, 20)}`);
  }
  return poor;
})()"""
"""The elements whose text stands out less from its ground than WCAG's level AA asks for."""


def test_the_page_is_made_for_everyone(browser: Browser, pages: dict[str, Path]) -> None:
    """Headings in order, a name for every control, figure and table, and no id twice."""
    browser.open(pages["large"])
    levels = browser.run("[...document.querySelectorAll('h1,h2,h3')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    nameless = """[...document.querySelectorAll('button, input, select, canvas, svg[role=img], [role=region]')]
      .filter(e => !(e.ariaLabel || e.labels?.length || e.textContent.trim())).length"""
    assert browser.run(nameless) == 0
    assert browser.run("document.documentElement.lang") == "en"
    ids = browser.run("[...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


def test_a_report_without_values_inside_still_shows_its_graph(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["same"])
    assert browser.count_of("#profile") == 0
    assert browser.text("#graph-legend") == ""
    browser.click(*browser.centre("#graph-search"))
    browser.type("conv_5")
    assert "conv_5" in hint_in_the_middle(browser)
    assert "not compared" in browser.text("#graph-node")


def test_values_that_are_infinite_or_missing_are_shown() -> None:
    errors = (
        NodeError("a", "n0", "Exp", math.inf, math.inf, 1e-6),
        NodeError("b", "n1", "Log", math.nan, None, 0.0),
        NodeError("c", "n2", "Relu", 0.0, 0.0, 0.0),
    )
    text = page(Report("m.onnx", "onnxruntime", [SideResult("torch", profile=errors)], graph=samples.chain(3)))
    data = json.loads(re.search(r'id="report-data">(.*?)</script>', text)[1])  # type: ignore[index]
    assert data["sides"][0]["path"] == ["Infinity", "NaN", 0.0]
    assert data["sides"][0]["own"] == ["Infinity", None, 0.0]
    assert "nan" not in re.search(r"<svg viewBox=.*?</svg>", text)[0].lower()  # type: ignore[index]
    assert "∞" in text


def test_a_scale_keeps_zero_apart_and_leaves_out_nothing() -> None:
    scale = LogScale.of([0.0, 3e-7, 2e-3, math.inf])
    heights = [scale.y(value) for value in (0.0, 3e-7, 2e-3, math.inf)]
    assert heights == sorted(heights, reverse=True) and len(set(heights)) == 4
    assert all(0 < height < 1000 for height in heights)


def test_nodes_lie_in_layers_and_do_not_overlap() -> None:
    graph = samples.network(400)
    layout = layered(graph)
    for source, node, bends in layout.edges:
        span = layout.y[node] - layout.y[source]
        assert span >= 1
        assert len(bends) in (0, span - 1)
    rows: dict[int, list[float]] = {}
    for x, y in zip(layout.x, layout.y, strict=True):
        rows.setdefault(y, []).append(x)
    for row in rows.values():
        row.sort()
        assert all(right - left >= 1 - 1e-9 for left, right in pairwise(row))
    assert max(map(abs, layout.x)) < 4, "a deep graph does not drift sideways"


def test_a_constant_lies_next_to_its_first_reader() -> None:
    graph = samples.chain(9)
    graph.insert(0, {"name": "k", "op": "Constant", "inputs": [], "outputs": ["k"]})
    graph.insert(1, {"name": "c", "op": "Cast", "inputs": ["k"], "outputs": ["c"]})
    graph[8]["inputs"].append("c")
    layout = layered(graph)
    assert layout.y[1] == layout.y[8] - 1 and layout.y[0] == layout.y[8] - 2
