"""Pages on real models, made from what `zoo.py --keep` stored: nothing is converted.

python benchmarks/zoo_pages.py    writes docs/measured/zoo.md, and what README.md and docs/measured/index.md say of it
"""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from onward.report.wording import counted, listing
from onward.report.zoo.summary import markdown, tally
from onward.report.zoo.verdicts import PEERS_MAKE, is_peer, title
from onward.writing import write_text
from onward.zoo.results import ASKED, TARGETS, TRAIN, Results, read

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "benchmarks/zoo-results.jsonl"
PAGE = "docs/measured/zoo.md"
ONNX, LITE, KERAS = ("onnx",), ("tflite",), ("savedmodel", "keras", "h5")
FROM_ONNX = tuple(target for target in (*TARGETS, *ASKED) if target != "onnx")
SCRIPT = "[`zoo.py`](benchmarks/zoo.py)"
ABOUT = """Published models, in packages on PyPI and npm (`benchmarks/zoo.csv`), converted and trained by
`onward zoo run`. `benchmarks/zoo.py` added other converters, and `benchmarks/zoo_pages.py` wrote this page from
`benchmarks/zoo-results.jsonl`. Several states of Onward are named below, as results are of different days; each result
names its own. `onward site` shows all of them: errors and what is allowed, times, sizes, generated source. Results of
other converters that are dated 2026-11-17 were made by an earlier form of the script, in the same versions and judged
in the same way. onnx2torch and onnx2pytorch ran with a stand-in for torchvision, which did not work on the machine:
what needs its ops fails."""


def page(results: Results) -> str:
    headline, first, *rest = markdown(results).split("\n\n")
    assert first.startswith("Written by")
    return "\n\n".join([headline, ABOUT, *rest])


def readme_rows(results: Results) -> list[str]:
    """Of the table of other converters."""
    many = sum(facts.format in ONNX for facts in results.models.values())
    rows = []
    for target in (each for each in FROM_ONNX if tally(results, each, ONNX)[1]):
        what = f"{many} published ONNX files, to {title(target)}" if not rows else f"the same, to {title(target)}"
        rows.append(_row(results, what, target, ONNX))
    rows.append(_row(results, "{} published TensorFlow Lite files, to ONNX", "onnx", LITE))
    rows.append(_row(results, "{} SavedModels and files of Keras, to ONNX", "onnx", KERAS))
    rows.append(_row(results, "{} models of all these formats, made trainable", TRAIN, (*ONNX, *LITE, *KERAS)))
    return rows


def _row(results: Results, what: str, target: str, formats: Collection[str]) -> str:
    same, tried = tally(results, target, formats)
    refused = sum(
        cell.verdict == "refused" and cell.target == target and results.models[cell.model].format in formats
        for cell in results.cells.values()
    )
    remark = f", {refused} refused" if refused > 1 else ""
    return f"| [{what.format(tried)}]({PAGE}) | **{same}**{remark} | {_peers(results, target, formats)} | {SCRIPT} |"


def _peers(results: Results, target: str, formats: Collection[str]) -> str:
    """Other converters on these models; of how many, where they were not tried on all."""
    said, asked = [], tally(results, target, formats)[1]
    for peer in filter(is_peer, results.targets):
        same, tried = tally(results, peer, formats)
        if tried and PEERS_MAKE.get(title(peer)) == target:
            said.append(f"{title(peer)} {same}" + (f" of {tried}" if tried < asked else ""))
    return ", ".join(said)


def index_rows(results: Results) -> dict[str, str]:
    """By the question, its answer in the table of all measurements."""
    many = len(results.models)
    counts = [(title(target), *tally(results, target, (*ONNX, *LITE, *KERAS))) for target in (*TARGETS, *ASKED)]
    said = [f"{name} {same} of {tried}" for name, same, tried in counts if tried]
    onnx, lite, keras = (
        _beside(results, target, fs) for target, fs in (("torch", ONNX), ("onnx", LITE), ("onnx", KERAS))
    )
    trained = tally(results, TRAIN, (*ONNX, *LITE, *KERAS))
    return {
        "Do real pretrained models come out the same?": f"[{many} models on each target](zoo.md): {listing(said)};"
        f" of ONNX files, to PyTorch, {onnx}",
        "Do files of TensorFlow and Keras become the same ONNX?": f"[SavedModels and files of Keras](zoo.md): {keras};"
        f" TensorFlow Lite files: {lite}",
        "Can real models be trained?": f"[{trained[0]} of {trained[1]}](zoo.md); [beside"
        " onnxruntime-training](speed-training.md); [loss curves](curves.md); [every training of the tests,"
        " exported](exported-trainings.md)",
    }


def _beside(results: Results, target: str, formats: Collection[str]) -> str:
    same, tried = tally(results, target, formats)
    peers = _peers(results, target, formats)
    return f"{same} of {tried}" + (f" ({peers})" if peers else "")


def with_rows(text: str, rows: Iterable[str]) -> str:
    """Rows of a table in the place of those that lead to the page, where the first of them was."""
    lines = text.splitlines()
    old = [place for place, line in enumerate(lines) if line.startswith("| [") and f"({PAGE})" in line]
    kept = [line for place, line in enumerate(lines) if place not in old]
    return "\n".join([*kept[: old[0]], *rows, *kept[old[0] :]]) + "\n"


def with_answers(text: str, answers: dict[str, str]) -> str:
    lines = text.splitlines()
    for question, answer in answers.items():
        (place,) = [place for place, line in enumerate(lines) if line.startswith(f"| {question} |")]
        lines[place] = f"| {question} | {answer} |"
    return "\n".join(lines) + "\n"


CHANGES: dict[str, Callable[[str, Results], str]] = {
    PAGE: lambda text, results: page(results),
    "README.md": lambda text, results: with_rows(text, readme_rows(results)),
    "docs/measured/index.md": lambda text, results: with_answers(text, index_rows(results)),
}
"""By file, what becomes of its text."""


def main() -> None:
    results = read(KEPT)
    for name, change in CHANGES.items():
        file = ROOT / name
        write_text(file, change(file.read_text(encoding="utf-8"), results))
    print(f"{', '.join(CHANGES)}: {counted(len(results.cells), 'result')}")


if __name__ == "__main__":
    main()
