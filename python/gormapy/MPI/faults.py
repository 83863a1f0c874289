"""Communicators whose processes fail: what the program can learn, revoke, agree on, and go on with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gormapy._ext import core, fast

from .exception import check, fields
from .group import Group
from .msgbuffer import acquire, index
from .request import Request

if TYPE_CHECKING:
    from typing_extensions import Self

    from gormapy.typing import Buffer

_C_INT = 4  # bytes
_SMALLEST, _LARGEST = -(1 << 31), (1 << 31) - 1


class FaultTolerance:
    """Calls for programs that go on when processes fail (User Level Failure Mitigation, ULFM).

    Without `mpiexec --enable-recovery` the job ends when one of its processes fails.
    """

    __slots__ = ()

    def Revoke(self) -> None:
        """Revoke the communicator at all ranks."""
        check(core.CommRevoke(self._h))

    def Is_revoked(self) -> bool:
        """Report whether the communicator is known to have been revoked."""
        return bool(check(core.CommIsRevoked(self._h)))

    def Get_failed(self) -> Group:
        """Return the group of the ranks that are known here to have failed."""
        return Group._made(core.CommGetFailed(self._h))

    def Ack_failed(self, num_to_ack: int | None = None) -> int:
        """Acknowledge the first `num_to_ack` failed ranks of Get_failed, and return how many are acknowledged."""
        number = _LARGEST if num_to_ack is None else num_to_ack
        return check(core.CommAckFailed(self._h, index(number, "Ack_failed: num_to_ack")))

    def Agree(self, flag: int) -> int:
        """Return the bitwise and of the flags of all ranks."""
        flag = index(flag, "Agree: flag")
        if not _SMALLEST <= flag <= _LARGEST:
            raise OverflowError(f"Agree: the flag {flag} does not fit into a C int")
        return fast.result(check(core.CommAgree(self._h, flag)))

    def Iagree(self, flag: Buffer) -> Request:
        """Start to agree on the bitwise and of the flags of all ranks."""
        address, nbytes, format, _, _, holder = acquire(flag, False)
        if nbytes != _C_INT or format.strip("@=<") not in ("i", "l", "B", "b", "c"):
            raise ValueError(f"Iagree: flag: expecting a buffer of one C int, got {nbytes} bytes of format {format!r}")
        request = Request._from_handle(check(core.CommIagree(self._h, address)))
        request._buf = holder
        return request

    def Shrink(self) -> Self:
        """Create a communicator of the ranks that have not failed."""
        return self._family_class()._from_handle(fast.result(check(core.CommShrink(self._h))))

    def Ishrink(self) -> tuple[Self, Request]:
        """Start to create a communicator of the ranks that have not failed."""
        handle, number = fields(core.CommIshrink(self._h))
        made = self._family_class().__new__(self._family_class())
        made._h = handle
        return made, Request._from_handle(number)
