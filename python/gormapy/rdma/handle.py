"""The base class of objects of the core."""

from contextlib import suppress

from .._ext import core
from .errors import check


class Handle:
    """An object of the core: a context manager that closes it.

    Closing an object first closes all objects made of it; using a closed one raises `Error` with status EBADF.
    """

    _handle = 0

    @property
    def closed(self):
        """Whether this object is closed, itself or with one that it was made of."""
        return not self._handle or core.RdmaAlive(self._handle) == 0

    def close(self):
        """Close this object and all objects made of it; closing it twice is no error."""
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
