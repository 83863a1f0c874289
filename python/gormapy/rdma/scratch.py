"""Memory for the work requests and completions that Python and the core exchange."""

from .._ext import fast


class Scratch:
    """A pool of buffers of one size: `take` returns one, `give` takes it back.

    A buffer belongs to one caller at a time, also if other threads and signal handlers use the pool.
    """

    def __init__(self, nbytes):
        self.nbytes = nbytes
        self._pool = []

    def take(self):
        """Return a buffer and its address."""
        try:
            return self._pool.pop()
        except IndexError:
            memory = bytearray(self.nbytes)
            info = fast.buffer_info(memory, True)
            return memory, info[0], info[5]  # with the object that keeps it in place

    def give(self, buffer):
        """Take a buffer back."""
        self._pool.append(buffer)
