"""How long the first page of a large zoo takes to open: `python benchmarks/site_speed.py --models 1000`.

Made-up results of so many models on eight targets are written as pages, and the first page is opened in Chromium. Times
are the browser's own, from the start of the navigation. They depend on what else the machine does; the processor time
of the page does so less.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))

import zoo_samples
from browser import Browser, find

from onward.report.zoo import history, site

MEASURES = """(async () => {
  const turn = () => new Promise(done => setTimeout(done, 1));
  const count = () => document.querySelectorAll("#models tbody tr").length;
  while (count() < MODELS) await turn();
  const whole = performance.now();
  const [page] = performance.getEntriesByType("navigation");
  const began = performance.now(), field = document.getElementById("verdict");
  field.value = "different";
  field.dispatchEvent(new Event("input", { bubbles: true }));
  while (count() === MODELS) await turn();
  return {
    "first paint": performance.getEntriesByName("first-contentful-paint")[0].startTime,
    "first rows can be used": page.domContentLoadedEventEnd,
    "all rows are there": whole,
    "a filter has been applied": performance.now() - began,
  };
})()"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--times", type=int, default=5)
    args = parser.parse_args()
    program = find()
    if program is None:
        sys.exit("no Chromium: apt-get install chromium")
    results = zoo_samples.large(args.models)
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        site.write(Path(folder), results, history.with_run([], results))
        made = time.process_time() - began
        page = Path(folder, "index.html")
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(
            f"{args.models:,} models × {len(results.targets)} targets: {len(files):,} files, {size / 1e6:.1f} MB, ",
            end="",
        )
        print(f"made in {made:.1f} s of processor time; index.html {page.stat().st_size / 1e3:,.0f} kB")
        browser = Browser(program)
        try:
            report(browser, page, args.models, args.times)
        finally:
            browser.close()


def report(browser: Browser, page: Path, models: int, times: int) -> None:
    browser.send("Performance.enable")
    found: dict[str, list[float]] = {}
    for _ in range(times):
        browser.open(page.parent / "speed.html")
        used = processor(browser)
        browser.open(page)
        for name, value in browser.run(MEASURES.replace("MODELS", str(models))).items():
            found.setdefault(name, []).append(value)
        found.setdefault("processor time of the page, for all of it", []).append(1000 * (processor(browser) - used))
    for name, values in found.items():
        print(f"{name:42} median {median(values):6.0f} ms, worst {max(values):6.0f} ms of {len(values)}")


def processor(browser: Browser) -> float:
    """Seconds that the thread of the page has worked."""
    metrics = {one["name"]: one["value"] for one in browser.send("Performance.getMetrics")["metrics"]}
    return float(metrics["ThreadTime"])


if __name__ == "__main__":
    main()
