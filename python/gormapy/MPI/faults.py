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
        """Revoke the communicator at all processes.

        One process calls it; the others need not. From then on, operations in the communicator end with
        ERR_REVOKED at all processes, also those that are under way. Only Shrink, Agree, Get_failed, Ack_failed
        and Free are possible.
        """
        check(core.CommRevoke(self._h))

    def Is_revoked(self) -> bool:
        """Return whether the communicator is known to have been revoked."""
        return bool(check(core.CommIsRevoked(self._h)))

    def Get_failed(self) -> Group:
        """Return the group of those processes of the communicator that are known here to have failed.

        The group of an earlier call is the beginning of that of a later one. An intercommunicator's has processes of
        both groups.
        """
        return Group._made(core.CommGetFailed(self._h))

    def Ack_failed(self, num_to_ack: int | None = None) -> int:
        """Acknowledge the first `num_to_ack` failed processes of Get_failed, by default all; return how many are.

        Receives from ANY_SOURCE ignore acknowledged failures. So does Agree, if all processes have acknowledged them.
        """
        number = _LARGEST if num_to_ack is None else num_to_ack
        return check(core.CommAckFailed(self._h, index(number, "Ack_failed: num_to_ack")))

    def Agree(self, flag: int) -> int:
        """Return the bitwise and of the flags of all processes, the same at all that live; collective.

        It completes whoever fails meanwhile, and in a revoked communicator, too. It raises ERR_PROC_FAILED at all
        processes if not all have acknowledged all failures; `Iagree` has stored the result in that case as well.
        `flag` is a C int.
        """
        flag = index(flag, "Agree: flag")
        if not _SMALLEST <= flag <= _LARGEST:
            raise OverflowError(f"Agree: the flag {flag} does not fit into a C int")
        return fast.result(check(core.CommAgree(self._h, flag)))

    def Iagree(self, flag: Buffer) -> Request:
        """Begin Agree. `flag` is a writable buffer of one C int, where the result is stored."""
        address, nbytes, format, _, _, holder = acquire(flag, False)
        if nbytes != _C_INT or format.strip("@=<") not in ("i", "l", "B", "b", "c"):
            raise ValueError(f"Iagree: flag: expecting a buffer of one C int, got {nbytes} bytes of format {format!r}")
        request = Request._from_handle(check(core.CommIagree(self._h, address)))
        request._buf = holder
        return request

    def Shrink(self) -> Self:
        """Make a communicator of the processes that have not failed, in the same order; collective.

        It completes whoever fails meanwhile, and in a revoked communicator, too.
        """
        return self._family_class()._from_handle(fast.result(check(core.CommShrink(self._h))))

    def Ishrink(self) -> tuple[Self, Request]:
        """Begin Shrink. The communicator can be used when the request is complete."""
        handle, number = fields(core.CommIshrink(self._h))
        made = self._family_class().__new__(self._family_class())
        made._h = handle
        return made, Request._from_handle(number)
