"""Puts of strips into the neighbours' memory, independent of the synchronisation."""

import numpy as np

from gormapy import MPI

from ..strips import OPPOSITE
from .exchange import Exchange, copy


class OneSided(Exchange):
    """The base class of the methods that put strips into a window of the neighbour.

    With the memories "direct" and "window" the window is over the fields. Strips go from field to field, described by
    a datatype on either side, and there is nothing to pack. With the others it is over receive buffers, one for each
    side, and the neighbour's strip is put into the one of the opposite side. They are as long as the longest on any
    rank, so that all ranks know where they begin.
    """

    MEMORIES = ("window", "direct", "packed", "implicit")

    def __init__(self, grid, fields, corners, memory):
        super().__init__(grid, fields, corners, memory)
        self.in_place = memory in ("direct", "window")
        self.win = None
        if memory == "window":
            self.win = fields.win
        elif memory == "direct":
            self.win = MPI.Win.Create(fields.block, disp_unit=8, comm=grid.comm)
        if self.in_place:
            self.puts = [{strip: self.describe(strip, k) for strip in self.strips} for k in range(2)]
        else:
            longest = max((strip.shape[0] * strip.shape[1] for strip in self.strips), default=0)
            self.length = grid.comm.allreduce(longest, op=MPI.MAX)
            self.packed = {strip: np.empty(strip.shape) for strip in self.strips}
            if memory == "packed":
                self.new_window()

    def describe(self, strip, k):
        """Return the origin, rank and target of the Put of a strip from field to field."""
        here = self.fields.flat[self.index(k, strip.out) :]
        there = self.fields.place(self.grid, strip.neighbour, k, *strip.there)
        row_length = self.grid.shape_of(strip.neighbour)[1]
        origin = [here, 1, self.block_type(strip.shape, self.grid.shape[1])]
        return origin, strip.neighbour, [there, 1, self.block_type(strip.shape, row_length)]

    def new_window(self):
        """Make receive buffers and a window over them; collective."""
        self.received = np.empty((4, self.length))
        self.win = MPI.Win.Create(self.received, disp_unit=8, comm=self.grid.comm)

    def begin(self):
        """Make what an exchange needs; with the memory "implicit", a window."""
        if self.memory == "implicit":
            self.new_window()

    def end(self):
        """Free the objects that `begin` has made."""
        if self.memory == "implicit":
            self.win.Free()
            self.win = None

    def put(self, strip, k):
        """Put a strip of fields[k] where the neighbour wants it."""
        if self.in_place:
            self.win.Put(*self.puts[k][strip])
            return
        cells = self.cells[k][strip][0]
        if self.memory == "implicit":
            self.packed[strip] = cells.copy()
        else:
            copy(self.packed[strip], cells)
        self.win.Put(self.packed[strip], strip.neighbour, OPPOSITE[strip.side] * self.length)

    def unpack(self, strip, k):
        """Copy what the neighbour has put into the halo of fields[k], if it isn't there already."""
        if not self.in_place:
            halo = self.cells[k][strip][1]
            copy(halo, self.received[strip.side][: halo.size].reshape(halo.shape))

    def free(self):
        """Free the window and the datatypes; collective."""
        if self.memory in ("direct", "packed"):
            self.win.Free()
        super().free()
