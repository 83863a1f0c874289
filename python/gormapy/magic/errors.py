"""The errors by which a cell ends; the names are what a notebook shows."""

from .._resident.errors import Interrupted, RanksError, TimeOut


class MPICellError(RanksError):
    """A cell failed on some ranks; what happened there is in its output."""


class CellTimeout(TimeOut):
    """A cell took longer than its --timeout."""


class CellInterrupted(Interrupted):
    """The user interrupted a cell."""
