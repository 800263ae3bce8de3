"""Functions of pandas, Polars and narwhals as ONNX beside their library; writes docs/measured/dataframes.md.

python benchmarks/dataframes.py                  all of them, and the pipelines of scikit-learn
python benchmarks/dataframes.py --only rolling   those whose names have the pattern; writes nothing

The cases are those of the tests, in tests/frontends/dataframe.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests/frontends/dataframe"
sys.path[:0] = [str(TESTS), str(TESTS / "battery")]

import machine  # noqa: E402
from frame_cases import Case, Refusal  # noqa: E402
from frame_modules import CASES, REFUSALS  # noqa: E402
from judge import Verdict, judge, judge_refusal  # noqa: E402
from pipelines import PIPELINES  # noqa: E402

import onward  # noqa: E402

PAGE = ROOT / "docs/measured/dataframes.md"
WORDS = """# Functions on data frames to ONNX

Each case is a function as people write it, in plain pandas, Polars or narwhals. It is converted on a sample of 40 rows,
then run in its library and, converted, in ONNX Runtime on four frames: the sample, 12 rows of edge cases (missing
values, infinities, extremes of integers, empty and foreign strings, leap days, times before 1970), one row and none. It
is the same if names, rows, nulls and values are: floats to 1e-12 of themselves, all else exactly. Made by
`benchmarks/dataframes.py`; the same cases run in the tests."""
OUTCOMES = ("same", "refused", "wrong", "crash")


def by_theme(verdicts: dict[Case, Verdict]) -> list[list[str]]:
    """A row a theme, and one for all."""
    table = []
    for library, theme in dict.fromkeys((case.library, case.theme) for case in verdicts):
        found = [v.word for case, v in verdicts.items() if (case.library, case.theme) == (library, theme)]
        table.append([library, theme, str(len(found)), *(str(found.count(word)) for word in OUTCOMES)])
    words = Counter(verdict.word for verdict in verdicts.values())
    return [*table, ["all", "", str(len(verdicts)), *(str(words[word]) for word in OUTCOMES)]]


def by_name(verdicts: dict[Case, Verdict]) -> list[list[str]]:
    """A row for each case that is not the same, with what was said about it."""
    return [[f"`{c.name}`", c.library, v.word, cell(v.detail)] for c, v in verdicts.items() if v.word != "same"]


def refusals(verdicts: dict[Refusal, Verdict]) -> list[list[str]]:
    return [[f"`{one.name}`", one.library, v.word, cell(v.detail)] for one, v in verdicts.items()]


def cell(text: str) -> str:
    """A message in one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def section(title: str, words: str, columns: list[str], rows: list[list[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return f"## {title}\n\n{words}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def pipelines(pattern: str) -> list[list[str]]:
    """Each pipeline and what became of it."""
    from test_dataframe_pipelines import test_the_pipeline_computes_the_same as check

    table = []
    for name in PIPELINES:
        if re.search(pattern, name):
            try:
                check(name)
                table.append([f"`{name}`", "same"])
            except Exception as error:
                table.append([f"`{name}`", f"{type(error).__name__}: {cell(str(error))[:200]}"])
    return table


def page(pattern: str) -> str:
    verdicts = {case: judge(case) for case in CASES if re.search(pattern, case.name)}
    refused = {one: judge_refusal(one) for one in REFUSALS if re.search(pattern, one.name)}
    piped = pipelines(pattern)
    words = Counter(verdict.word for verdict in verdicts.values())
    share = 100 * words["same"] / max(1, len(verdicts))
    summary = (
        f"{words['same']} of {len(verdicts)} functions that should convert do and compute the same ({share:.1f} %); "
        f"{words['refused']} are refused, {words['wrong']} are wrong, {words['crash']} crash."
    )
    named = sum(verdict.word == "refused" for verdict in refused.values())
    same = sum(row[1] == "same" for row in piped)
    columns = ["function", "library", "outcome", "what is said"]
    parts = [
        WORDS,
        section("By theme", summary, ["library", "theme", "functions", *OUTCOMES], by_theme(verdicts)),
        section("What is not the same", "What is refused says what to write instead.", columns, by_name(verdicts)),
        section(
            "What should be refused",
            f"{named} of {len(refused)} functions that no graph can stand for are refused by name.",
            columns,
            refusals(refused),
        ),
        section(
            "Pipelines of scikit-learn",
            f"{same} of {len(piped)} pipelines with such a function inside become one model that computes the same.",
            ["pipeline", "outcome"],
            piped,
        ),
        machine.describe("pandas", "polars", "narwhals", "scikit-learn", "onnxruntime"),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", help="a regular expression for names; writes nothing")
    args = parser.parse_args()
    if not hasattr(onward, "from_dataframe"):
        raise SystemExit("this version of onward does not convert functions on data frames")
    text = page(args.only or "")
    print(text)
    if not args.only:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
