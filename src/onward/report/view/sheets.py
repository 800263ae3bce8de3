"""The pictures of a model: its modules as boxes that open, each on a sheet of its own, and all nodes on one.

A sheet is small enough to be laid out in no time, whatever the size of the model: what has no modules, or too many
nodes in one, is cut into slices of what comes after one another.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from onward.backends.emit.statements import Scope
from onward.report.layered import layered
from onward.report.view.contents import Contents, Part

FLAT = 150
"""Nodes of a graph that is shown without modules at first."""
MOST_FLAT = 12_000
"""Nodes of a graph that can be shown without modules."""
MOST_ITEMS = 1200
"""On a sheet with modules, beyond which its nodes are cut into slices."""
SLICE = 400
LEAST = 5
"""Nodes that are worth a box."""
LONGEST_LIST = 64
"""Boxes of a list that are shown in the place of the list."""
MOST_PORTS = 60
DEEPEST = 12
"""Of modules in one another; what is deeper counts as in these."""

Entry = tuple[Literal["node", "sheet", "input", "output", "outside"], int]
"""What stands at a place of a sheet, and its place in the list of those."""


@dataclass
class Module:
    label: str
    nodes: list[int] = field(default_factory=list)
    """Those directly in it."""
    children: dict[str, Module] = field(default_factory=dict)

    def every(self) -> list[int]:
        """Its nodes and those of all below it."""
        found, pending = list[int](), [self]
        while pending:
            module = pending.pop()
            found += module.nodes
            pending += module.children.values()
        return sorted(found)


def sheets(contents: Contents) -> tuple[list[dict[str, Any]], list[dict[str, int]]]:
    """All sheets, and for each part which of them shows it by `modules` and which `flat`, where there is such a one."""
    drawer = _Drawer(contents)
    shown = [drawer.part(number, part) for number, part in enumerate(contents.parts)]
    return drawer.sheets, shown


class _Drawer:
    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.sheets: list[dict[str, Any]] = []
        self.readers: dict[int, list[int]] = {}
        for number, node in enumerate(contents.nodes):
            for value in _reads(node):
                self.readers.setdefault(value, []).append(number)
        self.results = {value for part in contents.parts for value in part.outputs}

    def part(self, number: int, part: Part) -> dict[str, int]:
        shown: dict[str, int] = {}
        module = _modules(part, self.contents.scopes)
        if len(part.nodes) > FLAT and (module.children or len(part.nodes) > MOST_FLAT):
            shown["modules"] = self._sheet(module, number, None)
        if len(part.nodes) <= MOST_FLAT:
            shown["flat"] = self._sheet(Module(part.title, part.nodes), number, None, whole=True)
        return shown

    def _sheet(self, module: Module, number: int, up: int | None, whole: bool = False) -> int:
        """Draw a module, after what is in it; in slices, unless it is wanted as a whole."""
        place = len(self.sheets)
        sheet: dict[str, Any] = {"title": module.label, "part": number, "up": up}
        self.sheets.append(sheet)
        if not whole:
            module = _sliced(module)
        boxes: list[tuple[Entry, list[int]]] = [(("node", node), [node]) for node in module.nodes]
        for child in module.children.values():
            inside = child.every()
            boxes.append((("sheet", self._sheet(child, number, place)), inside))
        sheet["count"] = sum(len(inside) for _, inside in boxes)
        self._draw(sheet, boxes, self.contents.parts[number] if up is None else None)
        return place

    def _draw(self, sheet: dict[str, Any], boxes: list[tuple[Entry, list[int]]], part: Part | None) -> None:
        items = [_Item(entry, inside, self.contents) for entry, inside in boxes]
        made = {value for item in items for value in item.makes}
        read = dict.fromkeys(value for item in items for value in item.reads if value not in made)
        foreign = [value for value in read if "weight" not in self.contents.values[value]]
        if part is not None:
            given = dict.fromkeys([*part.inputs, *foreign])
            ports: list[Entry] = [("input" if value in part.inputs else "outside", value) for value in given]
            ends = list(dict.fromkeys(part.outputs))
        else:
            ports = [("outside", value) for value in foreign[:MOST_PORTS]]
            inside = {node for _, nodes in boxes for node in nodes}
            ends = self._leaving(inside, made)[:MOST_PORTS]
        first = [_Item.port(entry, [], [entry[1]]) for entry in ports]
        last = [_Item.port(("output", value), [value], []) for value in ends]
        ordered = [*first, *_ordered(items), *last]
        sheet["items"] = [item.entry for item in ordered]
        sheet |= _laid_out(ordered)

    def _leaving(self, inside: set[int], made: set[int]) -> list[int]:
        """The values that are read outside of a module, or that are outputs of the model."""
        return [v for v in sorted(made) if v in self.results or any(r not in inside for r in self.readers.get(v, ()))]


class _Item:
    """A box: what it reads and what it makes."""

    def __init__(self, entry: Entry, nodes: Iterable[int], contents: Contents) -> None:
        self.entry = entry
        self.nodes = list(nodes)
        self.makes = [value for n in self.nodes for _, value in contents.nodes[n]["outputs"]]
        own = set(self.makes)
        every = dict.fromkeys(value for n in self.nodes for value in _reads(contents.nodes[n]))
        self.reads = [value for value in every if value not in own]

    @classmethod
    def port(cls, entry: Entry, reads: list[int], makes: list[int]) -> _Item:
        made = cls.__new__(cls)
        made.entry, made.nodes, made.reads, made.makes = entry, [], reads, makes
        return made


def _reads(node: Mapping[str, Any]) -> list[int]:
    return [*(value for _, value in node["inputs"]), *node.get("captured", ())]


def _ordered(items: Sequence[_Item]) -> list[_Item]:
    """Each after what it reads; where modules read one another, the one whose nodes come first is first."""
    makers = {value: place for place, item in enumerate(items) for value in item.makes}
    before = [{makers[v] for v in item.reads if v in makers} - {place} for place, item in enumerate(items)]
    after: list[list[int]] = [[] for _ in items]
    for place, sources in enumerate(before):
        for source in sources:
            after[source].append(place)
    rank = [min(item.nodes, default=0) for item in items]
    ready = [(rank[place], place) for place, sources in enumerate(before) if not sources]
    heapq.heapify(ready)
    waiting = sorted((rank[place], place) for place in range(len(items)))
    missing, done, found = [len(sources) for sources in before], [False] * len(items), list[_Item]()
    position = 0
    while len(found) < len(items):
        if ready:
            place = heapq.heappop(ready)[1]
        else:
            while done[waiting[position][1]]:
                position += 1
            place = waiting[position][1]
        if done[place]:
            continue
        done[place] = True
        found.append(items[place])
        for reader in after[place]:
            missing[reader] -= 1
            if not missing[reader] and not done[reader]:
                heapq.heappush(ready, (rank[reader], reader))
    return found


def _laid_out(items: Sequence[_Item]) -> dict[str, Any]:
    """Where the boxes are, the edges between them, and the values that each edge carries."""
    layout = layered([{"inputs": map(_named, item.reads), "outputs": map(_named, item.makes)} for item in items])
    makers = {value: place for place, item in enumerate(items) for value in item.makes}
    carried: dict[tuple[int, int], list[int]] = {}
    for place, item in enumerate(items):
        for value in item.reads:
            if makers.get(value, place) != place:
                carried.setdefault((makers[value], place), []).append(value)
    bends = {(source, node): bends for source, node, bends in layout.edges}
    edges = [[*ends, *(round(x, 2) for x in bends.get(ends, ()))] for ends in carried]
    values = list(carried.values())
    return {"x": [round(x, 2) for x in layout.x], "y": layout.y, "edges": edges, "values": values}


def _named(value: int) -> str:
    return str(value)


def _modules(part: Part, scopes: Sequence[Scope]) -> Module:
    """The modules of a graph, without those that are not worth a box."""
    root = Module(part.title)
    for node in part.nodes:
        module = root
        for name in scopes[node][:DEEPEST]:
            module = module.children.setdefault(name, Module(name))
        module.nodes.append(node)
    _settle(root)
    return root


def _settle(module: Module) -> None:
    """Deepest first: dissolve small modules, and join those that hold nothing but others to these."""
    children = list[Module]()
    for child in module.children.values():
        _settle(child)
        if not child.children and len(child.nodes) < LEAST:
            module.nodes += child.nodes
            continue
        lists = all(one.label.isdigit() for one in child.children.values()) and len(child.children) <= LONGEST_LIST
        if not child.nodes and (len(child.children) == 1 or lists):
            for one in child.children.values():
                one.label = f"{child.label}.{one.label}"
                children.append(one)
        else:
            children.append(child)
    module.children = {str(place): child for place, child in enumerate(children)}
    module.nodes.sort()


def _sliced(module: Module) -> Module:
    if len(module.nodes) + len(module.children) <= MOST_ITEMS:
        return module
    slices = {}
    for first in range(0, len(module.nodes), SLICE):
        nodes = module.nodes[first : first + SLICE]
        slices[f"slice {first}"] = Module(f"nodes {first + 1:,} to {first + len(nodes):,}", nodes)
    return Module(module.label, [], module.children | slices)
