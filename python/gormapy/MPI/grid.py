"""Cartesian grids of processes: the arithmetic, without communication."""

from . import constants
from .exception import Exception

# How many answers a grid keeps: a program asks for the same few again and again.
_KEPT = 64


class Grid:
    """Grid with a number of processes and a periodicity in each direction, ranks in row-major order.

    It does not change, and neither does the rank of this process in it: duplicates of a communicator share both.
    """

    __slots__ = ("around", "dims", "periods", "places", "size")

    def __init__(self, dims, periods=None):
        self.dims = [dims] if isinstance(dims, int) else [d.__index__() for d in dims]
        if periods is None:
            periods = False
        if isinstance(periods, (bool, int)):
            periods = [periods] * len(self.dims)
        self.periods = [bool(p) for p in periods]
        if len(self.periods) != len(self.dims):
            raise ValueError(f"expecting as many periods as dimensions ({len(self.dims)}), got {len(self.periods)}")
        if any(d < 1 for d in self.dims):
            raise Exception(constants.ERR_DIMS)
        self.size = 1
        for d in self.dims:
            self.size *= d
        self.around = None  # the neighbors of this process, once somebody has asked
        self.places = {}  # rank -> coordinates

    def map(self, rank, size):
        """Return the rank of a process in the grid, UNDEFINED if there is no place for it."""
        if self.size > size:
            raise Exception(constants.ERR_DIMS)
        return rank if rank < self.size else constants.UNDEFINED

    def coords(self, rank):
        """Return the coordinates of a rank."""
        try:
            return self.places[rank][:]
        except (KeyError, TypeError):
            pass
        if not 0 <= rank < self.size:
            raise Exception(constants.ERR_RANK)
        found, rest = [], rank
        for d in reversed(self.dims):
            rest, coord = divmod(rest, d)
            found.append(coord)
        found.reverse()
        if type(rank) is int and len(self.places) < _KEPT:
            self.places[rank] = found[:]
        return found

    def rank(self, coords):
        """Return the rank at some coordinates."""
        if type(coords) not in (list, tuple):
            coords = list(coords)
        if len(coords) != len(self.dims):
            raise ValueError(f"expecting {len(self.dims)} coordinates, got {len(coords)}")
        rank = 0
        for c, d, periodic in zip(coords, self.dims, self.periods):
            coord = c if type(c) is int else c.__index__()
            if not (periodic or 0 <= coord < d):
                raise Exception(constants.ERR_ARG)
            rank = rank * d + coord % d
        return rank

    def neighbor(self, rank, direction, disp):
        """Return the rank at a distance in a direction, PROC_NULL beyond the edge."""
        if not 0 <= direction < len(self.dims):
            raise Exception(constants.ERR_DIMS)
        coords = self.coords(rank)
        coords[direction] += disp
        if not (self.periods[direction] or 0 <= coords[direction] < self.dims[direction]):
            return constants.PROC_NULL
        return self.rank(coords)

    def shift(self, rank, direction, disp):
        """Return the ranks from which and to which this process, of a rank, shifts data."""
        return self.neighbor(rank, direction, -disp), self.neighbor(rank, direction, disp)

    def without(self, kept):
        """Return the grid of the directions that are kept."""
        pairs = [(d, p) for d, p, keep in zip(self.dims, self.periods, kept) if keep]
        return Grid([d for d, _ in pairs], [p for _, p in pairs])
