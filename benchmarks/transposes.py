"""How many transposes are left when every convolution, pool, normalisation and resize runs channels last?

python benchmarks/transposes.py           networks and pretrained models; writes docs/measured/transposes.md
python benchmarks/transposes.py ResNet    only those with `ResNet` in their name; writes nothing
"""

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import machine
import vision
from zoo_files import entries, there

from onward.errors import OnwardError
from onward.layout.channels_last import to_channels_last
from onward.layout.onnx_to_onnx import prepare, transposes
from onward.layout.roles import DOMAIN, TENSORFLOW
from onward.layout.standard import to_standard
from onward.model import Model, load
from onward.passes.pipelines import canonical
from onward.verification.verify import verify

PAGE = Path(__file__).parent.parent / "docs/measured/transposes.md"
MARKS = "<!-- transposes -->", "<!-- /transposes -->"
HEADER = "| model | images in and out | ops that run channels last | transposes before | after | worst error |"


@dataclass
class Row:
    name: str
    images: int
    ops: int
    before: int
    after: int
    verdict: str

    def __str__(self) -> str:
        return f"| {self.name} | {self.images} | {self.ops} | {self.before} | {self.after} | {self.verdict} |"


def measure(name: str, model: Model) -> Row | None:
    """Counts in canonical form, as a backend gets it; verified on ONNX Runtime in the opset of the file."""
    made = canonical(model, lambda op: True)
    to_channels_last(made, TENSORFLOW)
    ops = sum(node.domain == DOMAIN for node in made.graph)
    if not ops:
        return None
    ends = [*made.graph.inputs, *made.graph.outputs]
    images = sum(value.shape is not None and len(value.shape) == 4 for value in ends)
    return Row(name, images, ops, transposes(model.ir), transposes(made), checked(model))


def checked(model: Model) -> str:
    """What comes out of the pass, its ops between transposes as ONNX Runtime has them, against the original."""
    result = model.copy().ir
    prepare(result, model.ir_version)
    to_channels_last(result, TENSORFLOW)
    to_standard(result)
    try:
        report = verify(model, Model(result, ir_version=model.ir_version))
    except OnwardError as error:
        return str(error)
    return f"{report.worst.metrics.worst:.0e}" if report.status == "same" and report.worst else report.status


def cases(wanted: str) -> Iterator[tuple[str, Model]]:
    with tempfile.TemporaryDirectory() as folder:
        for name in vision.NETWORKS:
            if wanted in name:
                path = Path(folder) / f"{name}.onnx"
                vision.write(name, path)
                yield name, load(path)
    for name, path in there(entries([wanted])):
        yield f"`{name}`", load(path)


def main() -> None:
    parser = argparse.ArgumentParser(description="Count the transposes that channels last needs.")
    parser.add_argument("only", nargs="?", default="", help="a part of the names of the models to look at")
    wanted = parser.parse_args().only
    lines = [HEADER, "|---|---|---|---|---|---|"]
    print(*lines, sep="\n")
    for name, model in cases(wanted):
        row = measure(name, model)
        if row is not None:
            print(row, flush=True)
            lines.append(str(row))
    if not wanted:
        before, _, rest = PAGE.read_text().partition(MARKS[0])
        after = rest.partition(MARKS[1])[2]
        table = "\n".join([*lines, "", machine.describe("onnx", "onnxruntime", "torch")])
        PAGE.write_text(f"{before}{MARKS[0]}\n{table}\n{MARKS[1]}{after}")


if __name__ == "__main__":
    main()
