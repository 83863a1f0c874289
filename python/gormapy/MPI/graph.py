"""Graphs of processes: the neighbors of each rank, without communication."""

from . import constants
from .exception import Exception


class Graph:
    """Graph that all processes know: `index` counts the edges of the nodes up to each, `edges` lists their ends."""

    __slots__ = ("edges", "index")

    def __init__(self, index, edges):
        self.index = [n.__index__() for n in index]
        self.edges = [n.__index__() for n in edges]
        if self.index and self.index[0] == 0 and self.index[-1] == len(self.edges):
            del self.index[0]  # mpi4py also takes adjacency arrays that begin with 0
        if any(b < a for a, b in zip([0, *self.index], self.index)) or len(self.edges) < (self.index or [0])[-1]:
            raise Exception(constants.ERR_ARG)
        del self.edges[(self.index or [0])[-1] :]
        if any(not 0 <= node < len(self.index) for node in self.edges):
            raise Exception(constants.ERR_ARG)

    def map(self, rank, size):
        """Return the rank of a process in the graph, UNDEFINED if there is no place for it."""
        if len(self.index) > size:
            raise Exception(constants.ERR_ARG)
        return rank if rank < len(self.index) else constants.UNDEFINED

    def neighbors(self, rank):
        """Return the neighbors of a rank."""
        if not 0 <= rank < len(self.index):
            raise Exception(constants.ERR_RANK)
        return self.edges[self.index[rank - 1] if rank else 0 : self.index[rank]]


class Edges:
    """The edges into and out of one process, in a graph that no process knows as a whole."""

    __slots__ = ("destinations", "sources", "weights")

    def __init__(self, size, sources, destinations, sourceweights=None, destweights=None):
        self.sources = ranks(size, sources)
        self.destinations = ranks(size, destinations)
        into, out = weights_of(sourceweights, self.sources), weights_of(destweights, self.destinations)
        if (into is None) != (out is None) and self.sources and self.destinations:
            raise ValueError("expecting weights for both directions, or for none")
        weighted = into is not None or out is not None
        self.weights = (into or [], out or []) if weighted else None

    @classmethod
    def of(cls, rank, size, lists):
        """Return the edges of a process, from lists of all processes' edges: (source, destination, weight)."""
        edges = [edge for some in lists for edge in some]
        into, out = [e for e in edges if e[1] == rank], [e for e in edges if e[0] == rank]
        weighted = any(weight is not None for _, _, weight in edges)
        return cls(
            size,
            [source for source, _, _ in into],
            [destination for _, destination, _ in out],
            [weight for _, _, weight in into] if weighted else None,
            [weight for _, _, weight in out] if weighted else None,
        )


def edge_list(size, sources, degrees, destinations, weights):
    """Return (source, destination, weight) for each edge that a process contributes."""
    sources = ranks(size, sources)
    if hasattr(degrees, "__index__"):
        degrees = [degrees.__index__()] * len(sources)
    degrees = [n.__index__() for n in degrees]
    destinations = ranks(size, destinations)
    if len(degrees) != len(sources) or any(n < 0 for n in degrees):
        raise ValueError(f"expecting a degree for each of {len(sources)} sources, got {degrees}")
    if sum(degrees) != len(destinations):
        raise ValueError(f"expecting {sum(degrees)} destinations, as the degrees say, got {len(destinations)}")
    found = weights_of(weights, destinations) or [None] * len(destinations)
    starts = [source for source, n in zip(sources, degrees) for _ in range(n)]
    return list(zip(starts, destinations, found))


def ranks(size, given):
    """Return a list of ranks, checked."""
    listed = [] if given is None else [rank.__index__() for rank in given]
    for rank in listed:
        if rank != constants.PROC_NULL and not 0 <= rank < size:
            raise Exception(constants.ERR_RANK)
    return listed


def weights_of(given, edges):
    """Return the weights of edges, None if they have none."""
    if given is None or (isinstance(given, int) and given == constants.UNWEIGHTED):
        return None
    if isinstance(given, int) and given == constants.WEIGHTS_EMPTY:
        given = []
    found = [weight.__index__() for weight in given]
    if len(found) != len(edges):
        raise ValueError(f"expecting {len(edges)} weights, one for each edge, got {len(found)}")
    if any(weight < 0 for weight in found):
        raise Exception(constants.ERR_ARG)
    return found
