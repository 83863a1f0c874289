"""Communicators."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from gormapy._ext import core, fast

from . import bsend, commlock, constants
from .coll import Collectives
from .collinit import PersistentCollectives
from .errhandler import ErrorHandling
from .exception import Exception, check, error, fields, last_used_code
from .faults import FaultTolerance
from .group import Group
from .handle import Handle, adopt, expect, named
from .hot import hot
from .info import INFO_NULL, Info
from .msgbuffer import index
from .naming import Attributed, Named, _attributes
from .objcomm import ObjectCollectives, ObjectMessages
from .p2p import PointToPoint
from .request import Request
from .wininfo import given

if TYPE_CHECKING:
    from typing_extensions import Self

    from gormapy.typing import Buffer

    from .intercomm import Intercomm

_WORLD, _SELF = 1, 2
_HARDWARE_SPLITS = (
    constants.COMM_TYPE_HW_GUIDED,
    constants.COMM_TYPE_HW_UNGUIDED,
    constants.COMM_TYPE_RESOURCE_GUIDED,
)
_DEFAULT_NAMES = {_WORLD: "MPI_COMM_WORLD", _SELF: "MPI_COMM_SELF"}

_TOPOLOGIES = {constants.CART: "Cartcomm", constants.GRAPH: "Graphcomm", constants.DIST_GRAPH: "Distgraphcomm"}

# The subclasses that calls return; the modules that define them fill this in.
_subclasses = {}


class Comm(
    PointToPoint,
    Collectives,
    PersistentCollectives,
    ObjectMessages,
    ObjectCollectives,
    ErrorHandling,
    Attributed,
    Named,
    Handle,
    FaultTolerance,
    fast.Comm,
):
    """Communicator: ranks that exchange messages in a context of their own."""

    _family = "Comm"
    # Rank and size do not change in the life of a communicator.
    _rank = _size = -1
    _two_groups = False  # whether it is an intercommunicator
    _remote_size = -1
    _groups = 0  # that communicators of this class have; 0: one or two

    def __new__(cls, comm: Comm | None = None) -> Self:
        self = adopt(Comm, super().__new__(cls), comm)
        if comm is not None:
            self._rank, self._size, self._two_groups = comm._rank, comm._size, comm._two_groups
            if comm and cls._groups and cls._groups != 1 + comm._two_groups:
                raise TypeError(f"expecting an {('intra', 'inter')[cls._groups - 1]}communicator")
        return self

    @classmethod
    def _from_handle(cls, handle):
        kind = cls
        if cls is Comm and handle:
            kind = _subclasses[_kind(handle)]
        return _object(kind, handle)

    @classmethod
    def fromhandle(cls, handle: int) -> Self:
        """Return the communicator of a handle."""
        return Comm._from_handle(handle)  # of the class that the communicator has, as in mpi4py

    @classmethod
    def fromint(cls, arg: int, /) -> Self:
        """Return the communicator of an integer handle."""
        return Comm._from_handle(arg)

    @classmethod
    def f2py(cls, arg: int) -> Self:
        """Return the communicator of a Fortran handle."""
        return Comm._from_handle(arg)

    @classmethod
    def _wrap(cls, handle):
        """Make the object for the handle that a communicator constructor of the core returned."""
        if not handle:
            return Comm(COMM_NULL)
        return cls._from_handle(handle)

    def free(self) -> None:
        """Call Free, if the communicator is neither null nor predefined."""
        if self._h in (_WORLD, _SELF):
            super().free()
        elif self:
            self.Free()

    # Group and processes
    # -------------------

    @hot
    def Get_group(self) -> Group:
        """Return the group of the communicator."""
        return Group._made(core.CommGroup(self._h))

    @hot
    def Get_size(self) -> int:
        """Return the number of ranks."""
        if self._size < 0 or not self._h:
            self._size = check(core.CommSize(self._h))
        return self._size

    @hot
    def Get_rank(self) -> int:
        """Return the rank of this process."""
        if self._rank < 0 or not self._h:
            self._rank = check(core.CommRank(self._h))
        return self._rank

    group = property(fast.Comm.Get_group, doc="Group of the communicator.")
    size = property(fast.Comm.Get_size, doc="Number of ranks.")
    rank = property(fast.Comm.Get_rank, doc="Rank of this process.")

    @property
    def _peers(self):
        """Number of processes that collectives exchange data with."""
        return self._far_size() if self._two_groups else self.size

    def _far_size(self):
        if self._remote_size < 0 or not self._h:
            self._remote_size = check(core.CommRemoteSize(self._h))
        return self._remote_size

    def _is_root(self, root):
        """Return whether this process is the root of a collective."""
        return root == constants.ROOT if self._two_groups else self.rank == root

    def Compare(self, comm: Comm) -> int:
        """Compare two communicators."""
        return check(core.CommCompare(self._h, expect("Comm", comm, "Compare")))

    # Constructors and destructors
    # ----------------------------

    def Clone(self) -> Self:
        """Duplicate the communicator without its attributes."""
        return self._duplicate(attributes=False)

    @hot
    def Dup(self, info: Info | None = None) -> Self:
        """Duplicate the communicator."""
        if info is None:
            return self._duplicate(attributes=True)
        hints = given(info)
        made = self._duplicate(attributes=True)
        _hints[made._h] = hints
        return made

    def Dup_with_info(self, info: Info) -> Self:
        """Duplicate the communicator, with hints."""
        return self.Dup(info)

    def Idup(self, info: Info | None = None) -> tuple[Self, Request]:
        """Start to duplicate the communicator."""
        hints = None if info is None else given(info)
        handle, number = fields(core.CommIdup(self._h))
        made, request = self._twin(handle), Request._from_handle(number)
        self._pass_on(made, True, request)
        if hints is not None:
            _hints[made._h] = hints
        return made, request

    def Idup_with_info(self, info: Info) -> tuple[Self, Request]:
        """Start to duplicate the communicator, with hints."""
        return self.Idup(info)

    def _duplicate(self, attributes):
        made = self._twin(fast.comm_dup(self._h))
        if _topologies or _attributes:
            self._pass_on(made, attributes)
        return made

    def _twin(self, handle):
        """Make the object for a duplicate: of the same class, and of as many groups.

        The core may not know the kind of a communicator that is still being made.
        """
        made = _object(type(self), handle)
        if self._two_groups:
            made._two_groups = True
        return made

    def _pass_on(self, made, attributes, request=None):
        """Give a duplicate the topology of this communicator, and its attributes if wanted.

        The duplicate is dropped if a function that copies an attribute raises.
        It can't be freed: the other ranks may have theirs. `request` is that of Idup.
        """
        try:
            if self._h in _topologies:
                _topologies[made._h] = _topologies[self._h]
            if attributes:
                made._copy_attributes(self)
        except BaseException:
            if request is not None:
                request.Wait()
            check(core.CommDrop(made._forgotten()))
            raise

    def Create(self, group: Group) -> Comm:
        """Create a communicator of a part of the ranks."""
        return self._family_class()._wrap(fast.comm_create(self._h, expect("Group", group, "Create")))

    @hot
    def Split(self, color: int = 0, key: int = 0) -> Comm:
        """Split the communicator by colors."""
        return self._family_class()._wrap(fast.comm_split(self._h, color, key))

    def Split_type(self, split_type: int, key: int = 0, info: Info = INFO_NULL) -> Comm:
        """Split the communicator by what ranks have in common, such as memory."""
        if split_type in _HARDWARE_SPLITS and info.get("mpi_hw_resource_type") == "mpi_shared_memory":
            split_type = constants.COMM_TYPE_SHARED
        if split_type in _HARDWARE_SPLITS:
            self._checked()
            return Comm(COMM_NULL)  # the result that MPI specifies where nothing is known of the hardware
        return self._family_class()._wrap(fast.comm_split_type(self._h, split_type, key))

    def _family_class(self):
        """Return the class of what Split and Create make: intercommunicators make others."""
        return _subclasses["Intercomm" if self._two_groups else "Intracomm"]

    @hot
    def Free(self) -> None:
        """Free the communicator."""
        if self._h in (_WORLD, _SELF):
            raise error(
                constants.ERR_COMM, f"{_DEFAULT_NAMES[self._h]} can't be freed: it lives as long as the process"
            )
        self._leave(fast.comm_free)

    def _leave(self, call):
        self._checked()
        call(self._forgotten())

    def _forgotten(self):
        """Return the handle, after all that Python has of the communicator is gone."""
        if _attributes:
            self._delete_attributes()
        self._forget_name()
        self._forget_errhandler()
        handle = self._h
        _hints.pop(handle, None)
        _topologies.pop(handle, None)
        bsend.forget(handle)
        commlock.forget(self)
        self._h = 0
        if self._rank >= 0 or self._size >= 0:
            self._rank = self._size = -1
        return handle

    def Disconnect(self) -> None:
        """Free the communicator when all operations that this rank has started in it are complete."""
        self._checked()
        settling = check(core.CommSettle(self._h))
        with suppress(Exception):  # what can't complete is not waited for, and its own request says why
            fast.result(settling)
        self._leave(fast.comm_disconnect)

    # Buffered mode
    # -------------

    def Attach_buffer(self, buf: Buffer | None) -> None:
        """Attach a buffer for messages in buffered mode."""
        self._checked()
        bsend.attach(self._h, buf)

    def Detach_buffer(self) -> Buffer | None:
        """Detach the buffer for messages in buffered mode."""
        self._checked()
        return bsend.detach(self._h)

    def Flush_buffer(self) -> None:
        """Wait until all buffered messages have been sent."""
        self._checked()  # no message is ever in the buffer: see bsend

    def Iflush_buffer(self) -> Request:
        """Start to wait until all buffered messages have been sent."""
        self.Flush_buffer()
        return Request()

    # Hints
    # -----

    def Set_info(self, info: Info) -> None:
        """Change the hints of the communicator."""
        self._checked()
        _hints[self._h] = {**_hints.get(self._h, {}), **given(info)}

    def Get_info(self) -> Info:
        """Return the hints of the communicator."""
        self._checked()
        return Info.Create(_hints.get(self._h))

    info = property(Get_info, Set_info, doc="Hints of the communicator.")

    def _checked(self):
        if not self._h:
            raise error(constants.ERR_COMM, "the communicator is COMM_NULL (it was never made, or has been freed)")

    # Kind
    # ----

    def Is_inter(self) -> bool:
        """Report whether it is an intercommunicator."""
        self._checked()
        return self._two_groups

    def Is_intra(self) -> bool:
        """Report whether it is an intracommunicator."""
        self._checked()
        return not self._two_groups

    def Get_topology(self) -> int:
        """Return the kind of topology."""
        self._checked()
        return _topologies.get(self._h, (constants.UNDEFINED,))[0]

    @property
    def is_inter(self) -> bool:
        """Whether it is an intercommunicator."""
        return self.Is_inter()

    @property
    def is_intra(self) -> bool:
        """Whether it is an intracommunicator."""
        return self.Is_intra()

    @property
    def topology(self) -> int:
        """Kind of topology."""
        return self.Get_topology()

    @property
    def is_topo(self) -> bool:
        """Whether it has a topology."""
        return bool(self) and self.Get_topology() != constants.UNDEFINED

    @classmethod
    def Get_parent(cls) -> Intercomm:
        """Return the intercommunicator with the ranks that have spawned this job."""
        kind = _subclasses["Intercomm"]
        handle = core.CommParent()
        return kind._wrap(handle) if handle else kind()

    @classmethod
    def Join(cls, fd: int) -> Intercomm:
        """Create an intercommunicator of two processes that a socket connects."""
        request = core.CommJoin(index(fd, "Join: fd"))
        return _subclasses["Intercomm"]._wrap(fast.result(check(request)))

    def _attribute(self, keyval):
        if keyval == constants.TAG_UB:
            return (1 << 31) - 1
        if keyval == constants.IO:
            return constants.ANY_SOURCE  # every process can do it
        if keyval == constants.WTIME_IS_GLOBAL:
            return int(core.Hosts() == 1)  # ranks on one host read one clock
        if keyval == constants.APPNUM:
            return core.Program()
        if keyval == constants.UNIVERSE_SIZE:
            return check(core.CommSize(_WORLD))
        if keyval == constants.LASTUSEDCODE:
            return last_used_code()
        raise Exception(constants.ERR_KEYVAL)

    def _default_name(self):
        return _DEFAULT_NAMES.get(self._h, "")

    def Abort(self, errorcode: int = 0) -> NoReturn:
        """End the job."""
        fast.abort(self._h, errorcode)


_new = fast.Comm.__new__
_plain = Comm.__new__


def _object(kind, handle):
    """Make an object of a class for a handle, without the arguments that Comm.__new__ has for programs."""
    made = _new(kind) if kind.__new__ is _plain else kind.__new__(kind)
    made._h = handle
    return made


def _kind(handle):
    """Return the name of the class of a communicator."""
    if handle in _topologies:
        return _TOPOLOGIES[_topologies[handle][0]]
    return "Intercomm" if core.CommTestInter(handle) == 1 else "Intracomm"


_hints = {}  # handle -> hints
_topologies = {}  # handle -> (kind, topology)


COMM_NULL = Comm()
named("Comm", 0, "COMM_NULL")
