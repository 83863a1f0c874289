"""Sessions: not implemented yet, all calls are there by name."""

from .handle import Handle, adopt, named
from .missing import SessionCalls


class Session(SessionCalls, Handle):
    """Context of an independent use of MPI."""

    _family = "Session"
    __slots__ = ("__weakref__", "_h")

    def __new__(cls, session=None):
        return adopt(Session, super().__new__(cls), session)

    def free(self):
        """Call Finalize if not null."""
        if self:
            self.Finalize()


SESSION_NULL = Session()
named("Session", 0, "SESSION_NULL")
