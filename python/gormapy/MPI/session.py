"""Sessions: not implemented yet; all calls exist by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .handle import Handle, adopt, named
from .missing import SessionCalls

if TYPE_CHECKING:
    from typing_extensions import Self


class Session(SessionCalls, Handle):
    """Context of an independent use of MPI."""

    _family = "Session"
    __slots__ = ("__weakref__", "_h")

    def __new__(cls, session: Session | None = None) -> Self:
        return adopt(Session, super().__new__(cls), session)

    def free(self) -> None:
        """Call Finalize if not null."""
        if self:
            self.Finalize()


SESSION_NULL = Session()
named("Session", 0, "SESSION_NULL")
