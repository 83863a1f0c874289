"""The memory that a process has attached to a dynamic window, shared between slots."""

from gormapy import MPI


class Attached:
    """Pieces of memory that are attached as long as a slot needs them.

    A window refuses overlapping pieces, but slots may overlap: only memory that no other slot has attached is
    attached, in contiguous pieces, and a piece is detached with the last slot that needs it.
    """

    def __init__(self, win):
        self._win = win
        self._pieces = {}  # address -> [end, number of slots that need it, object that keeps the memory]

    def add(self, address, nbytes, owner):
        """Attach memory, and return the argument for `remove`."""
        end = address + nbytes
        used, made = [], []
        at = address
        try:
            for start in sorted(self._pieces):
                stop = self._pieces[start][0]
                if stop <= at or start >= end:
                    continue
                if start > at:
                    made.append(self._attach(at, start, owner))
                used.append(start)
                at = stop
            if at < end:
                made.append(self._attach(at, end, owner))
        except BaseException:
            for start in made:
                self._detach(start)
            raise
        for start in used:
            self._pieces[start][1] += 1
        return used + made

    def remove(self, starts):
        """Detach the memory that `add` attached, as far as no other slot needs it."""
        for start in starts:
            piece = self._pieces[start]
            piece[1] -= 1
            if piece[1] == 0:
                self._detach(start)

    def _attach(self, start, end, owner):
        self._win.Attach(MPI.buffer.fromaddress(start, end - start))
        self._pieces[start] = [end, 1, owner]
        return start

    def _detach(self, start):
        end = self._pieces[start][0]
        self._win.Detach(MPI.buffer.fromaddress(start, end - start))
        del self._pieces[start]
