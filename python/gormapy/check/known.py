"""What this rank knows of its windows: their ranks, and the operations on them that are not complete."""

from gormapy._ext import fast

from . import accesses, elements, kinds
from .wrapping import event


class Known:
    """A window: its ranks in COMM_WORLD, and the operations on it that are not complete.

    Their buffers are kept by pybind/shim/pending.c.
    """

    def __init__(self, handle, ranks, near):
        self.handle = handle
        self.ranks = ranks
        self.awaited = []  # fetched values: (number, target, address, datatype, value that is swapped)
        self.watched = []  # (address, bytes)
        self.near = near  # no rank is behind libfabric, whose system calls can't use watched memory
        fast.pending_open(handle, near, *ranks)

    def close(self):
        """Forget the window, which is freed."""
        self.reset()
        fast.pending_close(self.handle)

    def keep(self, number, target, holder, *buffers):
        """Keep the buffers of an operation until it is complete, and watch them."""
        told = bool(self.awaited) and self.awaited[-1][0] == number
        flat = [word for place in elements.places(*buffers) for word in place]
        fast.pending_keep(self.handle, number, target, told, holder, *flat)

    def forget(self, number):
        """Forget an operation that has failed."""
        self.awaited = [awaited for awaited in self.awaited if awaited[0] != number]

    def complete(self, target=None, number=None, thread=None):
        """Release the buffers of operations that are complete: of all on a target or on all targets, or of one.

        A flush of one thread completes those of other threads, too, but only those that come before it: they are kept
        until their own thread flushes.

        It returns buffers of which nobody tells the checker when the program frees them: see `gone`.
        """

        def others(one, rank):
            return (number is not None and one != number) or (target is not None and rank != target)

        rest = []
        for awaited in self.awaited:
            one, rank, address, datatype, swap = awaited
            if others(one, rank):
                rest.append(awaited)
                continue
            value, _ = elements.value_at(address, datatype)
            event(kinds.OP_VALUE, 0, None, one, value, int(swap is None or swap == value))
        self.awaited = rest
        watched, unknown, holders = fast.pending_complete(
            self.handle, -1 if target is None else target, number or 0, thread or 0
        )
        accesses.release(watched)
        del holders  # only now: memory that is freed while it is watched is an error of the program
        return unknown

    def reset(self):
        """Release the buffers of all operations, of which none is in flight any more."""
        self.awaited = []
        gone(self.complete())


def gone(places):
    """Tell the checker to forget these buffers of complete operations: another thread may get the memory next."""
    for place in places:
        event(kinds.GONE, 0, None, *place, 1)


windows = {}  # handle -> Known
