"""Persistent requests: the messages are described once, and started in every iteration."""

import numpy as np

from gormapy import MPI

from .exchange import Exchange, copy


class Persistent(Exchange):
    """Exchange halos by persistent requests.

    A request is bound to its memory. Where that is the field itself, there is one for each of the two fields.
    """

    MEMORIES = ("packed", "direct")
    OVERLAPS = True

    def __init__(self, grid, fields, corners, memory):
        super().__init__(grid, fields, corners, memory)
        self.buffers = {strip: (np.empty(strip.shape), np.empty(strip.shape)) for strip in self.strips}
        self.types = {}
        if memory == "direct":
            self.types = {strip: self.block_type(strip.shape, grid.shape[1]) for strip in self.strips}
        self.plans = [[[self.plan(phase, k) for phase in part] for part in (self.first, self.later)] for k in range(2)]

    def plan(self, phase, k):
        """Return the requests of a phase, and what to copy before they start and after they end."""
        comm = self.grid.comm
        requests, before, after = [], [], []
        for strip in phase:
            out, into = self.cells[k][strip]
            if self.memory == "direct":
                cells, block = self.fields.flat, self.types[strip]
                send, receive = ([cells[self.index(k, part) :], 1, block] for part in (strip.out, strip.into))
            elif out.flags.c_contiguous:
                send, receive = out, into
            else:
                send, receive = self.buffers[strip]
                before.append((send, out))
                after.append((into, receive))
            requests.append(comm.Recv_init(receive, strip.neighbour, strip.tag_in))
            requests.append(comm.Send_init(send, strip.neighbour, strip.tag_out))
        return requests, before, after

    def update(self, k):
        """Fill the halo of fields[k]."""
        self.start(k)
        self.finish(k)

    def start(self, k):
        """Start the messages that need nothing of the halo."""
        for plan in self.plans[k][0]:
            begin(plan)

    def finish(self, k):
        """Fill the halo, with the rest of the phases."""
        first, later = self.plans[k]
        for plan in first:
            complete(plan)
        for plan in later:
            begin(plan)
            complete(plan)

    def free(self):
        """Free the requests and datatypes."""
        for first, later in self.plans:
            for requests, _, _ in (*first, *later):
                for request in requests:
                    request.Free()
        super().free()


def begin(plan):
    """Start the messages of a phase."""
    requests, before, _ = plan
    for to, cells in before:
        copy(to, cells)
    MPI.Prequest.Startall(requests)


def complete(plan):
    """Wait for the messages of a phase, and unpack them."""
    requests, _, after = plan
    MPI.Request.Waitall(requests)
    for to, cells in after:
        copy(to, cells)
