"""What all objects of the core have in common."""

from contextlib import suppress

from .._ext import core
from .errors import check


class Handle:
    """An object of the core: a context manager that closes it.

    Closing an object closes what was made of it, first; using a closed one raises `Error` with status EBADF.
    """

    _handle = 0

    @property
    def closed(self):
        """Whether this object, or one that it was made of, is closed."""
        return not self._handle or core.RdmaAlive(self._handle) == 0

    def close(self):
        """Close this object and all that was made of it; doing so twice is no error."""
        handle, self._handle = self._handle, 0
        if handle:
            check(core.RdmaClose(handle))

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def __del__(self):
        with suppress(Exception):  # a forked child, the end of the interpreter
            self.close()
