"""Nodes by number, for algorithms that let every node forward.

A node that must not (one of `Problem.endpoints`) becomes two: one that edges only leave and one that they
only enter.
"""

from __future__ import annotations

from gomr.problem import Edge, Problem


class Numbering:
    """The nodes of a problem by number.

    Attributes:
        count: How many numbers there are.
    """

    def __init__(self, problem: Problem) -> None:
        self._exit: dict[str, int] = {}
        self._entry: dict[str, int] = {}
        self.count = 0
        ends = (node for edge in problem.edges for node in (edge.tail, edge.head))
        for node in dict.fromkeys([*ends, *sorted(problem.isolated)]):
            self._exit[node] = self.count
            self.count += node in problem.endpoints
            self._entry[node] = self.count
            self.count += 1

    def __contains__(self, node: str) -> bool:
        return node in self._exit

    def of_edge(self, edge: Edge) -> tuple[int, int]:
        """Return the numbers of the nodes where an edge begins and ends."""
        return self._exit[edge.tail], self._entry[edge.head]

    def of_ends(self, source: str, destination: str) -> tuple[int, int]:
        """Return the numbers of the node where data enters and of that where it leaves."""
        return self._exit[source], self._entry[destination]
