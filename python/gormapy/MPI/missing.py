"""Calls that this version does not implement: their names, arguments and meaning.

Each class is a mix-in for the class that it names. A call leaves this file when it is implemented.
"""
# ruff: noqa: E501, E704
# fmt: off

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .info import INFO_NULL
from .unimplemented import unimplemented, unimplemented_calls

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from .comm import Comm
    from .group import Group
    from .info import Info
    from .intercomm import Intercomm
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
    @classmethod
    def Join(cls, fd: int) -> Intercomm: """Interconnect two processes connected by a socket."""


@unimplemented_calls("Intracomm")
class IntracommCalls:
    __slots__ = ()

    def Spawn(self, command: str | bytes | PathLike[str] | PathLike[bytes], args: Sequence[str] | None = None, maxprocs: int = 1, info: Info = INFO_NULL, root: int = 0, errcodes: list[int] | None = None) -> Intercomm: """Spawn instances of a single MPI application."""
    def Spawn_multiple(self, command: Sequence[str | bytes | PathLike[str] | PathLike[bytes]], args: Sequence[Sequence[str]] | None = None, maxprocs: Sequence[int] | None = None, info: Info = INFO_NULL, root: int = 0, errcodes: list[list[int]] | None = None) -> Intercomm: """Spawn instances of multiple MPI applications."""
    def Accept(self, port_name: str, info: Info = INFO_NULL, root: int = 0) -> Intercomm: """Accept a request to form a new intercommunicator."""
    def Connect(self, port_name: str, info: Info = INFO_NULL, root: int = 0) -> Intercomm: """Make a request to form a new intercommunicator."""


# Module functions
# ----------------


@unimplemented
def Open_port(info: Info = INFO_NULL) -> str: """Return an address used to connect group of processes."""
@unimplemented
def Close_port(port_name: str) -> None: """Close a port."""
@unimplemented
def Publish_name(service_name: str, port_name: str, info: Info = INFO_NULL) -> None: """Publish a service name."""
@unimplemented
def Unpublish_name(service_name: str, port_name: str, info: Info = INFO_NULL) -> None: """Unpublish a service name."""
@unimplemented
def Lookup_name(service_name: str, info: Info = INFO_NULL) -> str: """Lookup a port name given a service name."""
@unimplemented
def Get_abi_version() -> tuple[int, int]: """Obtain the version of the MPI ABI standard."""
@unimplemented
def Get_abi_info() -> Info: """Obtain information about the MPI ABI."""
@unimplemented
def Get_abi_fortran_info() -> Info: """Obtain information about the Fortran MPI ABI."""
