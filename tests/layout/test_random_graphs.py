"""Whatever the graph, the pass changes no result."""

import pytest
from random_graphs import Graph
from referee import check

RANKS = (3, 4, 5)


@pytest.mark.parametrize("canon", [False, True], ids=["as it is", "canonical"])
@pytest.mark.parametrize("seed", range(40))
def test_random_graph(seed: int, canon: bool) -> None:
    graph = Graph(seed if canon else 1000 + seed, nodes=5 + seed, dynamic=seed % 3 == 0)
    model = graph.model()
    inputs = [name for name, x in graph.feeds.items() if seed % 2 and x.ndim in RANKS]
    given_out = [output.name for output in model.graph.output]
    # with dynamic shapes the rank of some outputs is unknown
    outputs = [name for name in given_out if seed % 3 and seed % 4 > 1 and len(graph.shapes[name]) in RANKS]
    check(model, graph.feeds, inputs, outputs, canon=canon, tolerance=1e-4)
