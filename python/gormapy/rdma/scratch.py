"""Memory in which Python and the core pass each other work requests and completions."""

from .._ext import fast


class Scratch:
    """A pool of buffers of one size: `take` one, and `give` it back.

    A buffer belongs to one caller at a time, whatever other threads and signal handlers do.
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
            return memory, info[0], info[5]  # what keeps it from moving goes along

    def give(self, buffer):
        """Take a buffer back."""
        self._pool.append(buffer)
