"""One-sided puts under locks: the target takes no part in them, so it has to be notified."""

from gormapy import MPI

from .onesided import OneSided
from .tokens import Tokens

READY, DONE = 1, 2


class Lock(OneSided):
    """Exchange halos by puts under shared locks.

    A lock only orders accesses. Neighbours have to notify each other that the halo may be written, and later that it
    has been: here by messages without data.
    """

    def __init__(self, grid, fields, corners, memory):
        super().__init__(grid, fields, corners, memory)
        neighbours = [strip.neighbour for strip in self.strips]
        self.ready = Tokens(grid.comm, neighbours, READY)
        self.done = [Tokens(grid.comm, [strip.neighbour for strip in phase], DONE) for phase in self.phases]

    def update(self, k):
        """Fill the halo of fields[k]."""
        self.begin()
        self.win.Sync()  # this rank's own stores come before the puts of others
        self.ready.exchange()
        for phase, done in zip(self.phases, self.done):
            for strip in phase:
                self.win.Lock(strip.neighbour, MPI.LOCK_SHARED)
                self.put(strip, k)
                self.win.Unlock(strip.neighbour)
            done.exchange()
            self.win.Sync()
            for strip in phase:
                self.unpack(strip, k)
        self.end()

    def free(self):
        """Free requests, window and datatypes; collective."""
        for tokens in (self.ready, *self.done):
            tokens.free()
        super().free()
