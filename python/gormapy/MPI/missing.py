"""Calls that this version does not implement: their names, arguments and meaning.

Each class is a mix-in for the class that it names. A call leaves this file when it is implemented.
"""
# fmt: off

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .unimplemented import unimplemented_calls

if TYPE_CHECKING:
    from .comm import Comm
    from .group import Group
    from .intracomm import Intracomm
    from .request import Request


@unimplemented_calls("Comm")
class CommCalls:
    __slots__ = ()

    def Revoke(self) -> None: """Revoke a communicator."""
    def Is_revoked(self) -> bool: """Indicate whether the communicator has been revoked."""
    def Get_failed(self) -> Group: """Extract the group of failed processes."""
    def Ack_failed(self, num_to_ack: int | None = None) -> int: """Acknowledge failures on a communicator."""
    def Agree(self, flag: int) -> int: """Blocking agreement."""
    def Iagree(self, flag: Any) -> Request: """Nonblocking agreement."""
    def Shrink(self) -> Intracomm: """Shrink a communicator to remove all failed processes."""
    def Ishrink(self) -> tuple[Comm, Request]: """Nonblocking shrink a communicator to remove all failed processes."""
