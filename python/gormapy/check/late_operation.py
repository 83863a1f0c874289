"""An operation that is done later than it is called: what it will be done with."""

import contextlib
import operator

import numpy as np

from gormapy._ext import core, fast
from gormapy.MPI.buffer import view
from gormapy.MPI.msgbuffer import message, same_type
from gormapy.MPI.op import handle_of

from . import elements
from .operations import parsers

# in the order of core.RMACheck
NAMES = ("Put", "Get", "Accumulate", "Get_accumulate", "Fetch_and_op", "Compare_and_swap")
_RANK = {"Get_accumulate": 2, "Fetch_and_op": 2, "Compare_and_swap": 3}  # the place of the target's rank; else 1


_access, _fetching, _fetch, _swap = parsers()
_PARSERS = dict(zip(NAMES, (_access(True), _access(False), _access(True), _fetching, _fetch, _swap)))


class LateOperation:
    """One operation: what does it, and whether its effect has a place among those of other accumulates."""

    def __init__(self, name, method, win, args, kwargs):
        self.name, self.method, self.win = name, method, win
        self.args, self.kwargs = list(args), kwargs
        self.done = False
        place = _RANK.get(name, 1)
        self.rank = args[place] if len(args) > place else kwargs.get("target_rank")
        with contextlib.suppress(TypeError):  # no rank, of which the method tells
            self.rank = operator.index(self.rank)
        self.ordered = name not in ("Put", "Get")
        self.fills = name not in ("Put", "Accumulate")  # a buffer of this rank
        self._types = []  # that are this operation's

    def do(self):
        """Do it."""
        try:
            self.method(self.win, *self.args, **self.kwargs)
        except Exception:
            self._conclude()
            raise
        self._conclude()

    def _conclude(self):
        self.done = True
        for datatype in self._types:
            datatype.Free()
        self._types = []

    def can_be_late(self):
        """Report whether it has a target, and no error that can be told of now."""
        size = self.win._description[5] if self.win._description else 0
        if type(self.rank) is not int or not 0 <= self.rank < size:
            return False
        if self.name in ("Put", "Get") and (len(self.args) > 3 or "op" in self.kwargs):
            return False
        try:
            parsed = _PARSERS[self.name](*self.args, **self.kwargs)
            rank, origin, (disp, count, datatype), result, compared, op, _ = parsed
            if self.name in ("Fetch_and_op", "Compare_and_swap"):
                same_type(rank, origin=origin, result=result, compare=compared or origin)
            op = 0 if op is None else handle_of(op)
        except Exception:
            return False
        target = rank, disp, count, datatype._h
        origin = origin[1], origin[2]._h
        result = (0, 0) if result is None else (result[1], result[2]._h)
        return core.RMACheck(self.win._h, NAMES.index(self.name), *target, *origin, *result, op) == 0

    def take_origin(self):
        """Go on with a copy of the origin, since the program may change its own; report whether that is possible."""
        origin = self.args[0] if self.args else self.kwargs["origin"]
        address, count, datatype, _ = message(origin, True, self.rank, 0)
        if not count or not datatype._size:
            return True
        if not address or datatype._true_lb < 0 or datatype._extent < 0:
            return False
        runs = elements.runs(address, count, datatype)
        if not runs:
            return False
        copy = np.empty(datatype._true_lb + datatype._true_extent + (count - 1) * datatype._extent, "B")
        for start, blocks, nbytes, stride in runs:  # there may be no memory between them
            source = view(start, (blocks - 1) * stride + nbytes, True, None)
            shape, steps = (blocks, nbytes), (stride, 1)
            np.ndarray(shape, "B", copy, start - address, steps)[:] = np.ndarray(shape, "B", source, 0, steps)
        taken = [copy, count, datatype]
        if self.args:
            self.args[0] = taken
        else:
            self.kwargs["origin"] = taken
        return True

    def keep_type(self, freed):
        """Go on with a copy of a datatype that the program frees."""
        self.args = [self._kept(given, freed) for given in self.args]
        self.kwargs = {name: self._kept(given, freed) for name, given in self.kwargs.items()}

    def _kept(self, given, freed):
        if not isinstance(given, (list, tuple)):
            return given
        kept = list(given)
        for place, one in enumerate(given):
            if isinstance(one, fast.Datatype) and one._h == freed._h:
                kept[place] = freed.Dup()
                self._types.append(kept[place])
        return kept
