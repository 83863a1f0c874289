"""Calls that this version does not implement: their names, arguments and meaning.

Each class is a mix-in for the class that it names. A call leaves this file when it is implemented.
"""
# ruff: noqa: E501, E704
# fmt: off

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .constants import ANY_SOURCE, ANY_TAG
from .info import INFO_NULL
from .unimplemented import unimplemented, unimplemented_calls

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike

    from typing_extensions import Self

    from gormapy.typing import Buffer, BufSpec

    from .comm import Comm
    from .errhandler import Errhandler
    from .group import Group
    from .info import Info
    from .intracomm import Intercomm, Intracomm
    from .request import Prequest, Request


@unimplemented_calls("Datatype")
class DatatypeCalls:
    __slots__ = ()

    @classmethod
    def Create_f90_integer(cls, r: int) -> Self: """Return a bounded integer datatype."""
    @classmethod
    def Create_f90_real(cls, p: int, r: int) -> Self: """Return a bounded real datatype."""
    @classmethod
    def Create_f90_complex(cls, p: int, r: int) -> Self: """Return a bounded complex datatype."""
    def Pack_external(self, datarep: str, inbuf: BufSpec, outbuf: BufSpec, position: int) -> int: """Pack elements into contiguous memory in a portable representation."""
    def Unpack_external(self, datarep: str, inbuf: BufSpec, position: int, outbuf: BufSpec) -> int: """Unpack elements from contiguous memory in a portable representation."""
    def Pack_external_size(self, datarep: str, count: int) -> int: """Return the number of bytes that Pack_external needs at most."""


@unimplemented_calls("Prequest")
class PrequestCalls:
    __slots__ = ()

    def Pready(self, partition: int) -> None: """Mark a given partition as ready."""
    def Pready_range(self, partition_low: int, partition_high: int) -> None: """Mark a range of partitions as ready."""
    def Pready_list(self, partitions: Sequence[int]) -> None: """Mark a sequence of partitions as ready."""
    def Parrived(self, partition: int) -> bool: """Test partial completion of a partitioned receive operation."""


@unimplemented_calls("Session")
class SessionCalls:
    __slots__ = ()

    @classmethod
    def Init(cls, info: Info = INFO_NULL, errhandler: Errhandler | None = None) -> Self: """Create a new session."""
    def Finalize(self) -> None: """Finalize a session."""
    def Get_num_psets(self, info: Info = INFO_NULL) -> int: """Return the number of available process sets."""
    def Get_nth_pset(self, n: int, info: Info = INFO_NULL) -> str: """Return the name of the n-th process set."""
    def Get_info(self) -> Info: """Return the current hints for a session."""
    def Get_pset_info(self, pset_name: str) -> Info: """Return the current hints for a session and process set."""
    def Create_group(self, pset_name: str) -> Group: """Create a new group from session and process set."""
    def Attach_buffer(self, buf: Buffer | None) -> None: """Attach a user-provided buffer for sending in buffered mode."""
    def Detach_buffer(self) -> Buffer | None: """Remove an existing attached buffer."""
    def Flush_buffer(self) -> None: """Block until all buffered messages have been transmitted."""
    def Iflush_buffer(self) -> Request: """Nonblocking flush for buffered messages."""
    @classmethod
    def Create_errhandler(cls, errhandler_fn: Callable[..., None]) -> Errhandler: """Create a new error handler for sessions."""
    def Get_errhandler(self) -> Errhandler: """Get the error handler for a session."""
    def Set_errhandler(self, errhandler: Errhandler) -> None: """Set the error handler for a session."""
    def Call_errhandler(self, errorcode: int) -> None: """Call the error handler installed on a session."""


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
    def Psend_init(self, buf: BufSpec, partitions: Any, dest: int, tag: int = 0, info: Info = INFO_NULL) -> Prequest: """Create request for a partitioned send operation."""
    def Precv_init(self, buf: BufSpec, partitions: Any, source: int = ANY_SOURCE, tag: int = ANY_TAG, info: Info = INFO_NULL) -> Prequest: """Create request for a partitioned recv operation."""
    @classmethod
    def Join(cls, fd: int) -> Intercomm: """Interconnect two processes connected by a socket."""


@unimplemented_calls("Intracomm")
class IntracommCalls:
    __slots__ = ()

    def Create_intercomm(self, local_leader: int, peer_comm: Intracomm, remote_leader: int, tag: int = 0) -> Intercomm: """Create intercommunicator."""
    def Spawn(self, command: str | bytes | PathLike[str] | PathLike[bytes], args: Sequence[str] | None = None, maxprocs: int = 1, info: Info = INFO_NULL, root: int = 0, errcodes: list[int] | None = None) -> Intercomm: """Spawn instances of a single MPI application."""
    def Spawn_multiple(self, command: Sequence[str | bytes | PathLike[str] | PathLike[bytes]], args: Sequence[Sequence[str]] | None = None, maxprocs: Sequence[int] | None = None, info: Info = INFO_NULL, root: int = 0, errcodes: list[list[int]] | None = None) -> Intercomm: """Spawn instances of multiple MPI applications."""
    def Accept(self, port_name: str, info: Info = INFO_NULL, root: int = 0) -> Intercomm: """Accept a request to form a new intercommunicator."""
    def Connect(self, port_name: str, info: Info = INFO_NULL, root: int = 0) -> Intercomm: """Make a request to form a new intercommunicator."""


@unimplemented_calls("Intercomm")
class IntercommCalls:
    __slots__ = ()

    @classmethod
    def Create_from_groups(cls, local_group: Group, local_leader: int, remote_group: Group, remote_leader: int, stringtag: str = "org.mpi4py", info: Info = INFO_NULL, errhandler: Errhandler | None = None) -> Intracomm: """Create communicator from groups."""
    def Get_remote_group(self) -> Group: """Access the remote group associated with the inter-communicator."""
    def Get_remote_size(self) -> int: """Intercommunicator remote size."""
    def Merge(self, high: bool = False) -> Intracomm: """Merge intercommunicator into an intracommunicator."""
    @property
    def remote_group(self) -> Group: """Remote group."""
    @property
    def remote_size(self) -> int: """Number of remote processes."""


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
def Register_datarep(datarep: str, read_fn: Callable[..., None], write_fn: Callable[..., None], extent_fn: Callable[..., int]) -> None: """Register user-defined data representations."""
@unimplemented
def Get_abi_version() -> tuple[int, int]: """Obtain the version of the MPI ABI standard."""
@unimplemented
def Get_abi_info() -> Info: """Obtain information about the MPI ABI."""
@unimplemented
def Get_abi_fortran_info() -> Info: """Obtain information about the Fortran MPI ABI."""
@unimplemented
def _comm_lock(comm: Comm, key: Any = None) -> Any: """Return the lock of a communicator."""
@unimplemented
def _comm_lock_table(comm: Comm) -> Any: """Return the locks of a communicator."""
@unimplemented
def _commctx_intra(comm: Comm) -> Any: """Create or get an internal communication context."""
@unimplemented
def _commctx_inter(comm: Comm) -> Any: """Create or get an internal communication context."""
