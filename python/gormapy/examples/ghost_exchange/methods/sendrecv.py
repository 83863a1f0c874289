"""Nonblocking messages, as in the original: Irecv, Isend, Waitall."""

import numpy as np

from gormapy import MPI

from .exchange import Exchange, copy


class Sendrecv(Exchange):
    """Exchange halos by nonblocking messages."""

    MEMORIES = ("packed", "implicit", "direct")
    OVERLAPS = True

    def __init__(self, grid, fields, corners, memory):
        super().__init__(grid, fields, corners, memory)
        if memory == "packed":
            self.buffers = {strip: (np.empty(strip.shape), np.empty(strip.shape)) for strip in self.strips}
        elif memory == "direct":
            self.types = {strip: self.block_type(strip.shape, grid.shape[1]) for strip in self.strips}

    def update(self, k):
        """Fill the halo of fields[k]."""
        self.start(k)
        self.finish(k)

    def start(self, k):
        """Send and receive what needs nothing of the halo."""
        self.underway = [self.post(phase, k) for phase in self.first]

    def finish(self, k):
        """Fill the halo, with the rest of the phases."""
        for posted in self.underway:
            self.complete(posted, k)
        for phase in self.later:
            self.complete(self.post(phase, k), k)
        self.underway = []

    def post(self, phase, k):
        """Start the messages of a phase; return their requests and what is to be unpacked."""
        comm = self.grid.comm
        received, requests = [], []
        for strip in phase:
            out, into, unpack = self.prepare(strip, k)
            requests.append(comm.Irecv(into, strip.neighbour, strip.tag_in))
            requests.append(comm.Isend(out, strip.neighbour, strip.tag_out))
            if unpack:
                received.append((strip, into))
        return requests, received

    def complete(self, posted, k):
        """Wait for the messages of a phase, and unpack them."""
        requests, received = posted
        MPI.Request.Waitall(requests)
        for strip, into in received:
            copy(self.cells[k][strip][1], into)

    def prepare(self, strip, k):
        """Return what to send, where to receive, and whether that has to be unpacked."""
        if self.memory == "direct":
            cells, block = self.fields.flat, self.types[strip]
            out, into = (cells[self.index(k, part) :] for part in (strip.out, strip.into))
            return [out, 1, block], [into, 1, block], False
        cells, halo = self.cells[k][strip]
        if self.memory == "implicit":
            return cells.copy(), np.empty(strip.shape), True
        if cells.flags.c_contiguous:  # whole rows are contiguous
            return cells, halo, False
        out, into = self.buffers[strip]
        copy(out, cells)
        return out, into, True
