"""Tries graphs of a seed and prints what is left of those that fail: `python -m differential SEED COUNT [RUNNER]`."""

import sys

import onnx

from differential.compare import check, random_graph, smallest


def main(seed: int, count: int, runner: str = "torch") -> int:
    failed = 0
    for i in range(count):
        print(f"\rgraph {i} of seed {seed}", end="", file=sys.stderr, flush=True)
        g = random_graph([seed, i])
        wrong = check(g, runner=runner)
        if wrong:
            failed += 1
            nodes, outputs, wrong = smallest(g, wrong, runner)
            model, inputs, _ = g.model(nodes, outputs, unused=False)
            print(f"\n--- graph {i}: {wrong}\n{onnx.printer.to_text(model)}\ninputs: {[x.tolist() for x in inputs]}")
    print(f"\n{failed} of {count} graphs differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:4]))
