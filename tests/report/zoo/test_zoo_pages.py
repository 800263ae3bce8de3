"""The pages of a zoo in a browser: filters, search, sorting, keys and links do what they say, without a complaint."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import zoo_samples as samples
from browser import Browser
from links import Links, lost

from onward.report.html import asset
from onward.report.zoo import history, site
from onward.report.zoo.changes import changes
from onward.report.zoo.verdicts import ORDER, kind

NAMES = ["a/net.onnx", "b/net.onnx", "c/Éx<b>.tflite", "lone"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("zoo")
    old, new = samples.small("2026-11-10T09:00", a="different", b="same"), samples.small()
    assert site.write(out, new, history.with_run(history.with_run([], old), new), changes(old, new))
    return out


@pytest.fixture
def shown(browser: Browser, pages: Path) -> Iterator[Browser]:
    browser.open(pages / "index.html")
    yield browser
    assert browser.console == []


def rows(browser: Browser) -> list[str]:
    """The names of the models in the table."""
    return list(browser.run("[...document.querySelectorAll('#models tbody th a')].map(a => a.title)"))


def choose(browser: Browser, field: str, value: str) -> None:
    """Set a field, as a reader does, and wait for the table."""
    browser.run(f"""(() => {{
        const field = document.getElementById({field!r});
        field.value = {value!r};
        field.dispatchEvent(new Event("input", {{ bubbles: true }}));
        return new Promise(done => setTimeout(done, 120));
    }})()""")


def click(browser: Browser, selector: str) -> None:
    browser.click(*browser.centre(selector))


def focused(browser: Browser) -> str:
    return str(browser.run("document.activeElement.getAttribute('href') ?? document.activeElement.className"))


@pytest.mark.parametrize(
    ("field", "value", "found"),
    [
        ("q", "NET", NAMES[:2]),
        ("q", "b== net", NAMES[1:2]),
        ("q", "sigsegv", NAMES[2:3]),
        ("q", "nothing such", []),
        ("format", "tflite", NAMES[1:3]),
        ("task", "object detection", NAMES[3:]),
        ("opset", "ai.onnx 17", NAMES[:1]),
        ("op", "conv", NAMES[:1]),
        ("op", "microsoft", NAMES[:1]),
        ("verdict", "timeout", NAMES[1:2]),
        ("target", "tflite", [NAMES[0], NAMES[2]]),
        ("target", "peer:onnx2torch", NAMES[:2]),
    ],
)
def test_a_filter_leaves_what_it_says(shown: Browser, field: str, value: str, found: list[str]) -> None:
    choose(shown, field, value)
    assert rows(shown) == found
    assert shown.text("#found") == f"{len(found)} of 4 models"
    click(shown, "#clear")
    shown.until(lambda: rows(shown) == NAMES)


def test_filters_add_up_and_are_kept_in_the_address(shown: Browser, pages: Path) -> None:
    choose(shown, "verdict", "same")
    choose(shown, "target", "torch")
    assert rows(shown) == ["a/net.onnx", "lone"]
    click(shown, "#models thead th.name button")
    assert shown.run("location.hash") == "#verdict=same&target=torch&sort=-name"
    shown.open(pages / "models/lone.html")
    shown.run("history.back()")
    shown.until(lambda: shown.run("document.readyState === 'complete' && !!document.querySelector('#models tbody a')"))
    assert rows(shown) == ["lone", "a/net.onnx"]
    assert shown.run("document.getElementById('verdict').value") == "same"


def test_a_count_chooses_what_it_counts(shown: Browser) -> None:
    click(shown, "button[data-target=torch][data-verdict=different]")
    assert rows(shown) == ["b/net.onnx"]
    assert shown.text(".totals tbody tr:first-child b") == "2"
    assert shown.count_of(".totals svg.spark") == 5, "this run and the one before"


def test_sorting_by_name_size_and_target(shown: Browser) -> None:
    click(shown, "#models th[data-sort=size] button")
    assert rows(shown) == NAMES[::-1], "the largest first"
    assert shown.run("document.querySelector('th[data-sort=size]').getAttribute('aria-sort')") == "descending"
    click(shown, "#models th[data-sort=torch] button")
    assert rows(shown) == ["b/net.onnx", "c/Éx<b>.tflite", "a/net.onnx", "lone"], "the worst first"
    assert shown.count_of("#models [aria-sort]") == 1
    choose(shown, "show", "seconds")
    click(shown, "#models th[data-sort=jax] button")
    assert rows(shown) == ["a/net.onnx", "b/net.onnx", "c/Éx<b>.tflite", "lone"], "9 s, 1.25 s twice, not run"


def test_cells_show_figures(shown: Browser) -> None:
    cell = "#models tbody tr:first-child td.target a"
    assert shown.text(cell) == "same"
    choose(shown, "show", "error")
    assert shown.text(cell) == "0.067"
    assert shown.run(f"document.querySelector('{cell}').getAttribute('aria-label')") == "same, 0.067"
    refused = "#models tbody tr:first-child td.target a.refused"
    assert shown.text(refused) == "refused", "what has no figure says what it is"
    choose(shown, "show", "size")
    assert shown.text(cell) == "5 kB"


def test_keys_go_from_cell_to_cell(shown: Browser) -> None:
    shown.key("/")
    assert shown.run("document.activeElement.id") == "q"
    shown.run("document.querySelector('#models tbody [tabindex=\"0\"]').focus()")
    assert focused(shown) == "models/a-net.onnx.html"
    shown.key("ArrowRight")
    assert focused(shown) == "models/a-net.onnx.html#torch"
    shown.key("ArrowDown")
    assert focused(shown) == "models/b-net.onnx.html#torch"
    shown.key("ArrowRight")
    assert focused(shown) == "target none", "where nothing was run, too"
    shown.key("End")
    assert focused(shown) == "models/b-net.onnx.html#peer-onnx2torch"
    shown.key("PageDown")
    shown.key("Home")
    assert focused(shown) == "models/lone.html"
    assert shown.count_of('#models tbody [tabindex="0"]') == 1, "Tab finds one of all cells"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert shown.run(f"document.activeElement.matches(':focus-visible') && {outline}") == "solid"
    shown.key("Enter", "\r")
    shown.until(lambda: shown.run("location.pathname").endswith("models/lone.html"))


def test_changes_since_last_time(shown: Browser) -> None:
    worse, better = shown.run("[...document.querySelectorAll('#changes tbody')].map(t => t.innerText)")
    assert "b/net.onnx" in worse and "PyTorch" in worse and "off at conv_3" in worse
    assert "a/net.onnx" in better
    assert "12 results of the same files compared." in shown.text("#changes")


def test_the_page_of_a_model(browser: Browser, pages: Path) -> None:
    browser.open(pages / "models/a-net.onnx.html")
    assert browser.count_of("#evil") == 0, "what files say is never read as HTML"
    assert browser.text("#tflite .message") == f"no rule for Resize: {samples.HOSTILE}"
    assert "up (Resize)" in browser.text("#tflite")
    assert browser.text("#tflite .command code") == "onward convert a/net.onnx --to tflite"
    assert browser.text("#torch .runs") == "same since 2026-11-18" and browser.count_of("#torch .runs i") == 2
    assert browser.text("#jax .runs") == "same in all 2 runs"
    assert browser.text("#glance tbody .error") == "2.0e-06 of 3.0e-05"
    assert browser.run("[...document.querySelectorAll('.outline text')].map(t => t.textContent)") == [
        *("Conv ×2", "Relu", "LSTM", "Add")
    ]
    assert "1 × 3 × n × ?" in browser.text("#values") and "scalar" in browser.text("#values")
    assert browser.text("#torch pre") == samples.SOURCE
    coloured = "[...CSS.highlights.get('keyword')].map(String)"
    assert browser.run("CSS.highlights.size") == 0
    click(browser, "#torch summary")
    browser.until(lambda: browser.run("CSS.highlights.size") == 5)
    assert browser.run(coloured)[:4] == ["import", "from", "import", "class"]
    assert browser.run("[...CSS.highlights.get('comment')].map(String)") == ["# <b id=evil> & more"]
    assert browser.run("[...CSS.highlights.get('number')].map(String)") == ["3", "8", "3", "1", "0.5e-3"]
    click(browser, "#torch .copy")
    browser.until(lambda: browser.text("#torch .copy") != "Copy")
    assert browser.console == []


def test_ops_are_found_and_have_pages(browser: Browser, pages: Path) -> None:
    browser.open(pages / "ops/index.html")
    everything = browser.count_of("#all-ops tbody tr")
    assert everything > 200
    click(browser, "#used")
    used = "[...document.querySelectorAll('#all-ops tbody tr:not([hidden]) a')].map(a => a.textContent)"
    assert browser.run(used) == ["Add", "Conv", "Gather", "LSTM", "MatMul", "NoSuchOp", "Relu", "Resize", "Softmax",
                                 "com.microsoft::Attention"]  # fmt: skip
    click(browser, "#gaps")
    assert "NoSuchOp" in browser.run(used) and "Add" not in browser.run(used)
    browser.follow("#all-ops tr:not([hidden]) a")
    browser.open(pages / "ops/Conv.html")
    assert browser.run(
        "[...document.querySelectorAll('section:last-of-type tbody tr')].map(r => r.cells[1].innerText)"
    ) == ["1"]
    assert "PyTorch\t✓ exact" in browser.run("document.querySelector('section tbody').innerText")
    browser.follow("header a[href*='#op=']")
    browser.until(
        lambda: browser.run("document.readyState === 'complete' && !!document.querySelector('#models tbody a')")
    )
    assert rows(browser) == ["a/net.onnx"]
    assert browser.console == []


def test_speed_is_drawn_by_target(browser: Browser, pages: Path) -> None:
    browser.open(pages / "speed.html")
    table = browser.run(
        "[...document.querySelectorAll('main > .scroll tbody tr')].map(r => r.innerText.split(/\\s*\\t\\s*/))"
    )
    assert [(row[0].split(" ")[0], row[1]) for row in table] == [
        *(("PyTorch", "2"), ("JAX", "1"), ("training", "1"), ("onnx2torch", "1"))
    ]
    assert browser.text("section tbody tr").startswith("lone")
    assert browser.console == []


def test_every_link_leads_somewhere_and_nothing_is_fetched(pages: Path) -> None:
    assert len(list(pages.rglob("*.html"))) == 4 + 10 + 3
    assert lost(pages.resolve()) == []
    assert not [path for path in pages.rglob("*.html") if Links(path.read_text()).fetched]


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_the_window(browser: Browser, pages: Path, width: int) -> None:
    for page in ("index.html", "models/a-net.onnx.html", "ops/index.html", "ops/Conv.html", "speed.html"):
        for dark in (False, True):
            browser.open(pages / page, width=width, dark=dark)
            assert not browser.run("document.documentElement.scrollWidth > document.documentElement.clientWidth"), page
            cut = "[...document.querySelectorAll('.scroll:has(.stacked)')].filter(e => e.scrollWidth > e.clientWidth)"
            assert browser.run(f"{cut}.length") == 0, page
            assert browser.console == []


def test_it_prints_whole(browser: Browser, pages: Path) -> None:
    browser.open(pages / "index.html", width=520)
    browser.send("Emulation.setEmulatedMedia", media="print")
    assert browser.run("document.querySelector('#models tbody th').getBoundingClientRect().width") > 140
    style = "getComputedStyle(document.querySelector('.tall'))"
    assert browser.run(f"[{style}.maxHeight, {style}.overflowY]") == ["none", "visible"]
    assert browser.run("getComputedStyle(document.getElementById('filters')).display") == "none"
    browser.send("Emulation.setEmulatedMedia", media="")


def test_nothing_moves_where_that_is_asked_for(browser: Browser, pages: Path) -> None:
    browser.open(pages / "index.html")
    for wish, behaviour in (("no-preference", "smooth"), ("reduce", "auto")):
        browser.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": wish}])
        assert browser.run("getComputedStyle(document.documentElement).scrollBehavior") == behaviour


Rgb = tuple[float, float, float]
EYES = {
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
    "all colours": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
}
"""What light of three colours, linear, becomes in eyes that lack a kind of cone."""


def linear(code: str) -> Rgb:
    values = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values)
    return red, green, blue


def lab(light: Rgb, eye: str) -> Rgb:
    """In a space where distance is difference as it is seen (Oklab)."""
    red, green, blue = (min(max(sum(w * v for w, v in zip(row, light, strict=True)), 0), 1) for row in EYES[eye])
    long = (0.4122214708 * red + 0.5363325363 * green + 0.0514459929 * blue) ** (1 / 3)
    middle = (0.2119034982 * red + 0.6806995451 * green + 0.1073969566 * blue) ** (1 / 3)
    short = (0.0883024619 * red + 0.2817188376 * green + 0.6299787005 * blue) ** (1 / 3)
    return (
        0.2104542553 * long + 0.793617785 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.428592205 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.808675766 * short,
    )


def palettes() -> list[dict[str, str]]:
    """The colours of verdicts, light and dark."""
    style = asset("site.css")
    blocks = style.split(":root {")[1:3]
    return [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block.partition("}")[0])) for block in blocks]


@pytest.mark.parametrize("eye", EYES)
def test_colours_can_be_told_apart_and_read(eye: str) -> None:
    for palette in palettes():
        kinds = [kind(verdict) for verdict in ORDER]
        seen = {name: lab(linear(palette[name]), eye) for name in kinds}
        for place, first in enumerate(kinds):
            for second in kinds[place + 1 :]:
                apart = sum((a - b) ** 2 for a, b in zip(seen[first], seen[second], strict=True)) ** 0.5
                assert apart > 0.045, (first, second, apart)
        for name in kinds:
            light = [
                0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (linear(palette[n]) for n in (name, f"{name}-ink"))
            ]
            assert (max(light) + 0.05) / (min(light) + 0.05) > 4.5, f"{name} is hard to read"


def test_each_verdict_has_its_sign() -> None:
    signs = dict(re.findall(r"\.([\w-]+) \{ --tone:[^}]*--sign: \"(.)\"", asset("site.css")))
    assert set(signs) == {kind(verdict) for verdict in ORDER} and len(set(signs.values())) == len(ORDER)
