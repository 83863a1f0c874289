"""Calls that this version does not implement: their names, arguments and meaning.

Each class is a mix-in for the class that it names. A call leaves this file when it is implemented.
"""
# ruff: noqa: E501, E704
# fmt: off

from .constants import ANY_SOURCE, ANY_TAG
from .info import INFO_NULL
from .unimplemented import unimplemented, unimplemented_calls


@unimplemented_calls("Datatype")
class DatatypeCalls:
    __slots__ = ()

    @classmethod
    def Create_f90_integer(cls, r): """Return a bounded integer datatype."""
    @classmethod
    def Create_f90_real(cls, p, r): """Return a bounded real datatype."""
    @classmethod
    def Create_f90_complex(cls, p, r): """Return a bounded complex datatype."""
    def Pack_external(self, datarep, inbuf, outbuf, position): """Pack elements into contiguous memory in a portable representation."""
    def Unpack_external(self, datarep, inbuf, position, outbuf): """Unpack elements from contiguous memory in a portable representation."""
    def Pack_external_size(self, datarep, count): """Return the number of bytes that Pack_external needs at most."""


@unimplemented_calls("Prequest")
class PrequestCalls:
    __slots__ = ()

    def Pready(self, partition): """Mark a given partition as ready."""
    def Pready_range(self, partition_low, partition_high): """Mark a range of partitions as ready."""
    def Pready_list(self, partitions): """Mark a sequence of partitions as ready."""
    def Parrived(self, partition): """Test partial completion of a partitioned receive operation."""


@unimplemented_calls("Session")
class SessionCalls:
    __slots__ = ()

    @classmethod
    def Init(cls, info=INFO_NULL, errhandler=None): """Create a new session."""
    def Finalize(self): """Finalize a session."""
    def Get_num_psets(self, info=INFO_NULL): """Return the number of available process sets."""
    def Get_nth_pset(self, n, info=INFO_NULL): """Return the name of the n-th process set."""
    def Get_info(self): """Return the current hints for a session."""
    def Get_pset_info(self, pset_name): """Return the current hints for a session and process set."""
    def Create_group(self, pset_name): """Create a new group from session and process set."""
    def Attach_buffer(self, buf): """Attach a user-provided buffer for sending in buffered mode."""
    def Detach_buffer(self): """Remove an existing attached buffer."""
    def Flush_buffer(self): """Block until all buffered messages have been transmitted."""
    def Iflush_buffer(self): """Nonblocking flush for buffered messages."""
    @classmethod
    def Create_errhandler(cls, errhandler_fn): """Create a new error handler for sessions."""
    def Get_errhandler(self): """Get the error handler for a session."""
    def Set_errhandler(self, errhandler): """Set the error handler for a session."""
    def Call_errhandler(self, errorcode): """Call the error handler installed on a session."""


@unimplemented_calls("Comm")
class CommCalls:
    __slots__ = ()

    def Revoke(self): """Revoke a communicator."""
    def Is_revoked(self): """Indicate whether the communicator has been revoked."""
    def Get_failed(self): """Extract the group of failed processes."""
    def Ack_failed(self, num_to_ack=None): """Acknowledge failures on a communicator."""
    def Agree(self, flag): """Blocking agreement."""
    def Iagree(self, flag): """Nonblocking agreement."""
    def Shrink(self): """Shrink a communicator to remove all failed processes."""
    def Ishrink(self): """Nonblocking shrink a communicator to remove all failed processes."""
    def Psend_init(self, buf, partitions, dest, tag=0, info=INFO_NULL): """Create request for a partitioned send operation."""
    def Precv_init(self, buf, partitions, source=ANY_SOURCE, tag=ANY_TAG, info=INFO_NULL): """Create request for a partitioned recv operation."""
    @classmethod
    def Join(cls, fd): """Interconnect two processes connected by a socket."""


@unimplemented_calls("Intracomm")
class IntracommCalls:
    __slots__ = ()

    def Create_intercomm(self, local_leader, peer_comm, remote_leader, tag=0): """Create intercommunicator."""
    def Spawn(self, command, args=None, maxprocs=1, info=INFO_NULL, root=0, errcodes=None): """Spawn instances of a single MPI application."""
    def Spawn_multiple(self, command, args=None, maxprocs=None, info=INFO_NULL, root=0, errcodes=None): """Spawn instances of multiple MPI applications."""
    def Accept(self, port_name, info=INFO_NULL, root=0): """Accept a request to form a new intercommunicator."""
    def Connect(self, port_name, info=INFO_NULL, root=0): """Make a request to form a new intercommunicator."""


@unimplemented_calls("Intercomm")
class IntercommCalls:
    __slots__ = ()

    @classmethod
    def Create_from_groups(cls, local_group, local_leader, remote_group, remote_leader, stringtag="org.mpi4py", info=INFO_NULL, errhandler=None): """Create communicator from groups."""
    def Get_remote_group(self): """Access the remote group associated with the inter-communicator."""
    def Get_remote_size(self): """Intercommunicator remote size."""
    def Merge(self, high=False): """Merge intercommunicator into an intracommunicator."""
    @property
    def remote_group(self): """Remote group."""
    @property
    def remote_size(self): """Number of remote processes."""


# Module functions
# ----------------


@unimplemented
def Open_port(info=INFO_NULL): """Return an address used to connect group of processes."""
@unimplemented
def Close_port(port_name): """Close a port."""
@unimplemented
def Publish_name(service_name, port_name, info=INFO_NULL): """Publish a service name."""
@unimplemented
def Unpublish_name(service_name, port_name, info=INFO_NULL): """Unpublish a service name."""
@unimplemented
def Lookup_name(service_name, info=INFO_NULL): """Lookup a port name given a service name."""
@unimplemented
def Register_datarep(datarep, read_fn, write_fn, extent_fn): """Register user-defined data representations."""
@unimplemented
def Get_abi_version(): """Obtain the version of the MPI ABI standard."""
@unimplemented
def Get_abi_info(): """Obtain information about the MPI ABI."""
@unimplemented
def Get_abi_fortran_info(): """Obtain information about the Fortran MPI ABI."""
@unimplemented
def _comm_lock(comm, key=None): """Return the lock of a communicator."""
@unimplemented
def _comm_lock_table(comm): """Return the locks of a communicator."""
@unimplemented
def _commctx_intra(comm): """Create or get an internal communication context."""
@unimplemented
def _commctx_inter(comm): """Create or get an internal communication context."""
