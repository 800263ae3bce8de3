"""Minimum cuts by Dinic's algorithm: breadth-first levels, then blocking flows along them."""

from collections import deque

SOURCE, SINK = 0, 1


class Network:
    """A directed network; nodes are numbers, of which 0 is the source and 1 the sink."""

    def __init__(self) -> None:
        self._arcs: list[list[int]] = [[], []]
        self._heads: list[int] = []
        self._capacities: list[int] = []

    def node(self) -> int:
        self._arcs.append([])
        return len(self._arcs) - 1

    def edge(self, tail: int, head: int, capacity: int) -> None:
        """An edge and its reverse, which has the next number and no capacity."""
        for start, end, room in ((tail, head, capacity), (head, tail, 0)):
            self._arcs[start].append(len(self._heads))
            self._heads.append(end)
            self._capacities.append(room)

    def maximum_flow(self) -> int:
        total = 0
        while (levels := self._levels()) is not None:
            total += self._blocking_flow(levels)
        return total

    def from_source(self) -> set[int]:
        """The nodes on the source's side of the minimum cut that has fewest there, after `maximum_flow`."""
        return self._reachable(SOURCE, 0)

    def to_sink(self) -> set[int]:
        """The nodes on the sink's side of the minimum cut that has fewest there, after `maximum_flow`."""
        return self._reachable(SINK, 1)

    def _reachable(self, start: int, against: int) -> set[int]:
        """Where arcs with room lead; with `against`, from where they come."""
        seen, pending = {start}, [start]
        while pending:
            for arc in self._arcs[pending.pop()]:
                head = self._heads[arc]
                if head not in seen and self._capacities[arc ^ against]:
                    seen.add(head)
                    pending.append(head)
        return seen

    def _levels(self) -> list[int] | None:
        """Each node's distance to the sink, -1 where there is no way; None once the source has none."""
        levels = [-1] * len(self._arcs)
        levels[SINK] = 0
        pending = deque([SINK])
        while pending:
            node = pending.popleft()
            for arc in self._arcs[node]:
                tail = self._heads[arc]
                if levels[tail] < 0 and self._capacities[arc ^ 1]:
                    levels[tail] = levels[node] + 1
                    pending.append(tail)
        return levels if levels[SOURCE] >= 0 else None

    def _blocking_flow(self, levels: list[int]) -> int:
        """Depth first, with the path on a stack: graphs are deeper than Python's recursion."""
        total, path, node = 0, list[int](), SOURCE
        current = [0] * len(self._arcs)
        while True:
            if node == SINK:
                pushed = min(self._capacities[arc] for arc in path)
                total += pushed
                for arc in path:
                    self._capacities[arc] -= pushed
                    self._capacities[arc ^ 1] += pushed
                full = next(i for i, arc in enumerate(path) if not self._capacities[arc])
                node = self._heads[path[full] ^ 1]
                del path[full:]
            arcs = self._arcs[node]
            while current[node] < len(arcs):
                arc = arcs[current[node]]
                if self._capacities[arc] and levels[self._heads[arc]] == levels[node] - 1:
                    path.append(arc)
                    node = self._heads[arc]
                    break
                current[node] += 1
            else:
                if not path:
                    return total
                arc = path.pop()
                node = self._heads[arc ^ 1]
                current[node] += 1
