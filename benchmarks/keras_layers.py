"""Every layer class of Keras, with its main options, as ONNX beside Keras; writes docs/measured/keras-layers.md.

python benchmarks/keras_layers.py                   all of them
python benchmarks/keras_layers.py --only Conv2D     those whose names have the pattern; writes nothing

The cases are those of the tests, in tests/frontends/keras.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from pathlib import Path

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "frontends" / "keras"))

import machine  # noqa: E402
from all_cases import CASES, REFUSED_CASES, REFUSED_CLASSES, class_of, classes  # noqa: E402
from onnx_on_keras import check  # noqa: E402
from tf_models import section  # noqa: E402

from onward.errors import UnsupportedError  # noqa: E402
from onward.exporters import from_keras  # noqa: E402

PAGE = ROOT / "docs/measured/keras-layers.md"
WORDS = """# Layers of Keras to ONNX

Each case is a small model with random weights, run in Keras and, converted, in ONNX Runtime: verified means the same
shape, dtype and numbers, to 2e-5 in float32. Made by `benchmarks/keras_layers.py`; the same cases run in the tests."""


def verdict(name: str) -> str:
    """`verified`, `refused`, or what went wrong."""
    case = CASES[name]
    try:
        model = case.model()
        if name in REFUSED_CASES:
            from_keras(model, check=False)
            return "converted after all"
        check(model, *case.data, rtol=case.rtol)
    except UnsupportedError:
        return "refused"
    except AssertionError:
        return "**wrong**"
    except Exception as error:
        return f"**fails**: {type(error).__name__}"
    return "verified"


def rows(verdicts: dict[str, str]) -> list[list[str]]:
    """A row a class: its cases, without the name of the class."""
    table = []
    for kind in classes():
        cases = {name: found for name, found in verdicts.items() if class_of(name) == kind}
        if kind in REFUSED_CLASSES:
            table.append([kind, "", REFUSED_CLASSES[kind]])
        elif cases:
            told: dict[str, list[str]] = {}
            for name, found in cases.items():
                told.setdefault(found, []).append(name.removeprefix(kind).strip() or "plain")
            rest = [f"{found}: {'; '.join(names)}" for found, names in told.items() if found != "verified"]
            reasons = sorted({REFUSED_CASES[name] for name, found in cases.items() if found == "refused"})
            table.append([kind, "; ".join(told.get("verified", [])), ". ".join(rest + reasons)])
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="PATTERN", help="a regular expression for names; writes nothing")
    args = parser.parse_args()
    verdicts = {name: verdict(name) for name in CASES if re.search(args.only or "", name)}
    counted = Counter(verdicts.values())
    verified = {class_of(name) for name, found in verdicts.items() if found == "verified"}
    summary = (
        f"{counted['verified']} of {len(verdicts)} cases are verified, {counted['refused']} refused; of "
        f"{len(classes())} classes {len(verified)} have verified cases."
    )
    table = section("The classes", summary, ["class", "verified", "not verified"], rows(verdicts))
    text = f"{WORDS}\n\n{table}\n\n{machine.describe('tensorflow-cpu', 'keras', 'onnxruntime')}\n"
    print(text)
    if not args.only:
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
