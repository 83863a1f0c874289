"""Windows: memory that other processes access."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Literal

from gormapy._ext import core, fast

from . import constants, wininfo
from .buffer import view
from .errhandler import ErrorHandling
from .exception import Exception, check, error, fields
from .group import Group
from .handle import Handle, adopt, named
from .hot import hot
from .info import INFO_NULL
from .intracomm import COMM_SELF
from .msgbuffer import acquire, index, message, parse_access, same_type, single
from .naming import Attributed, Named, _attributes
from .op import SUM, handle_of
from .request import Request
from .sentinel import BOTTOM

if TYPE_CHECKING:
    from typing_extensions import Self

    from gormapy.typing import Bottom, Buffer, BufSpec, TargetSpec

    from .buffer import buffer
    from .comm import Comm
    from .info import Info
    from .intracomm import Intracomm
    from .op import Op

_rma = fast.rma

# Operations that may go on after their call keep their origin's memory. At this number of them on one target, they are
# completed first.
_MOST_KEPT = 256
_NOT_KEPT = ()


def _to_a_rank(method):
    """Make a one-sided call without a target rank raise an error that says how to pass it."""
    position = method.__code__.co_varnames.index("target_rank")

    @wraps(method)
    def call(self, *args, **kwargs):
        if len(args) < position and "target_rank" not in kwargs:
            from .explain import no_target_rank

            raise no_target_rank(method.__name__, method.__code__.co_varnames[1 : method.__code__.co_argcount])
        return method(self, *args, **kwargs)

    return call


def _memory_of(memory):
    """Return address, size and holder of the memory that a window exposes."""
    try:
        address, nbytes, _, _, _, holder = acquire(memory, False, window=True)
    except TypeError:
        from .explain import no_memory

        raise no_memory(memory) from None
    return address, nbytes, holder


def _group(group, call):
    """Return the handle of an epoch's group."""
    if not isinstance(group, Group):
        raise TypeError(f"{call}: expecting the Group of the ranks at the other side, got {type(group).__name__}")
    return group._h


class Win(ErrorHandling, Attributed, Named, Handle, fast.Win):
    """Window of memory that other ranks access by one-sided communication."""

    _family = "Win"
    _memory = None
    _origins = None
    _attached = None
    # All memory that the core or other ranks may access until the window is freed; kept by the extension as well,
    # because a program may drop the window, or end, without freeing it.
    _until_free = None
    # (base, size, disp_unit, flavor, rank, group size)
    _description = None

    def __new__(cls, win: Win | None = None) -> Self:
        self = adopt(Win, super().__new__(cls), win)
        self._origins = {}  # target rank -> memory of operations that are not complete
        self._attached = {}  # address -> memory attached to a dynamic window
        if win is not None:
            self._take_over(win._description)
            self._memory, self._until_free = win._memory, win._until_free
            self._origins, self._attached = win._origins, win._attached
        return self

    def _take_over(self, description):
        self._description = description

    @classmethod
    def _from_handle(cls, handle):
        self = _new(cls) if cls.__new__ is _plain else cls.__new__(cls)
        self._h = handle
        self._origins, self._attached = {}, {}
        if handle:
            self._describe()
        return self

    def _describe(self):
        self._take_over(fast.win_describe(self._h))

    def _checked(self):
        if not self._h:
            raise error(constants.ERR_WIN, "the window is WIN_NULL (it was never made, or has been freed)")
        check(core.WinCheck(self._h))  # another object may have freed it
        return self._description

    # Creation
    # --------

    @classmethod
    def _create(cls, flavor, address, nbytes, disp_unit, info, comm, memory):
        disp_unit = index(disp_unit, "disp_unit")
        if not isinstance(comm, fast.Comm):
            raise TypeError(f"comm: expecting a communicator, got {type(comm).__name__}")
        hints = wininfo.hints(info, flavor)
        made = fast.win_create(flavor, address, nbytes, disp_unit, comm._h, hints.bits, hints.alignment)
        self = cls._from_handle(made)
        if memory is not None:
            self._memory = memory
        self._until_free = (memory, self._origins, self._attached)
        fast.retain(self._until_free)
        wininfo.remember(self._h, hints)
        return self

    @classmethod
    def Create(
        cls, memory: Buffer | Bottom, disp_unit: int = 1, info: Info = INFO_NULL, comm: Intracomm = COMM_SELF
    ) -> Self:
        """Create a window over memory of the program."""
        if memory is None or memory is BOTTOM:
            address, nbytes, holder = 0, 0, None
        else:
            address, nbytes, holder = _memory_of(memory)
        flavor = constants.WIN_FLAVOR_CREATE
        return cls._create(flavor, address, nbytes, disp_unit, info, comm, holder)

    @classmethod
    def Allocate(cls, size: int, disp_unit: int = 1, info: Info = INFO_NULL, comm: Comm = COMM_SELF) -> Self:
        """Create a window with memory of its own."""
        size = index(size, "Win.Allocate: size, a number of bytes")
        return cls._create(constants.WIN_FLAVOR_ALLOCATE, 0, size, disp_unit, info, comm, None)

    @classmethod
    def Allocate_shared(cls, size: int, disp_unit: int = 1, info: Info = INFO_NULL, comm: Comm = COMM_SELF) -> Self:
        """Create a window with memory that all ranks on a host load from and store to."""
        size = index(size, "Win.Allocate_shared: size, a number of bytes")
        return cls._create(constants.WIN_FLAVOR_SHARED, 0, size, disp_unit, info, comm, None)

    @classmethod
    def Create_dynamic(cls, info: Info = INFO_NULL, comm: Comm = COMM_SELF) -> Self:
        """Create a window without memory, to which each rank attaches some later."""
        return cls._create(constants.WIN_FLAVOR_DYNAMIC, 0, 0, 1, info, comm, None)

    def Attach(self, memory: Buffer) -> None:
        """Let others access memory of this rank through a dynamic window."""
        self._checked()
        address, nbytes, holder = _memory_of(memory)
        check(core.WinAttach(self._h, address, nbytes))
        self._attached[address] = holder

    def Detach(self, memory: Buffer) -> None:
        """Take attached memory out of a dynamic window."""
        self._checked()
        address, _, _ = _memory_of(memory)
        check(core.WinDetach(self._h, address))
        self._attached.pop(address, None)

    def Shared_query(self, rank: int) -> tuple[buffer, int]:
        """Return (buffer, disp_unit) of a rank's part, mapped in this process."""
        self._checked()
        address, nbytes, disp_unit = fields(core.WinShared(self._h, rank))
        # all parts of a window that the core allocated are in one piece, which stays mapped as in tomemory
        owner = fast.win_memory(self._h, address, nbytes) if nbytes else None
        return view(address, nbytes, False, self._memory if owner is None else owner), disp_unit

    def Free(self) -> None:
        """Free the window."""
        fast.win_check_free(self._h)  # before anything of it is gone
        if _attributes:
            self._delete_attributes()
        self._forget_name()
        self._forget_errhandler()
        wininfo.forget(self._h)
        handle, self._h = self._h, 0
        fast.win_free(handle)
        fast.release(self._until_free)
        self._description = self._memory = self._until_free = None
        self._attached.clear()
        if self._origins:
            self._completed()

    # Hints, group and attributes
    # ---------------------------

    def Set_info(self, info: Info) -> None:
        """Change the hints of the window."""
        self._checked()
        wininfo.change(self._h, info)

    def Get_info(self) -> Info:
        """Return the hints of the window."""
        self._checked()
        return wininfo.current(self._h)

    info = property(Get_info, Set_info, doc="Hints of the window.")

    def Get_group(self) -> Group:
        """Return the group of the ranks that made the window."""
        self._checked()
        return Group._made(core.WinGroup(self._h))

    group = property(Get_group, doc="Group of the ranks that made the window.")

    @property
    def group_size(self) -> int:
        """Number of ranks in the window."""
        return self._checked()[5]

    @property
    def group_rank(self) -> int:
        """Rank of this process in the window."""
        return self._checked()[4]

    @property
    def attrs(self) -> tuple[int, int, int]:
        """Base address, size and displacement unit."""
        return self._checked()[:3]

    @property
    def flavor(self) -> int:
        """Kind of the window."""
        return self._checked()[3]

    @property
    def model(self) -> int:
        """Memory model of the window."""
        self._checked()
        return constants.WIN_UNIFIED

    def _attribute(self, keyval):
        base, size, disp_unit, flavor = self._checked()[:4]
        values = {
            constants.WIN_BASE: base,
            constants.WIN_SIZE: size,
            constants.WIN_DISP_UNIT: disp_unit,
            constants.WIN_CREATE_FLAVOR: flavor,
            constants.WIN_MODEL: constants.WIN_UNIFIED,
        }
        if keyval not in values:
            raise Exception(constants.ERR_KEYVAL)
        return values[keyval]

    def tomemory(self) -> buffer:
        """Return the memory of this rank's part."""
        base, size = self._checked()[:2]
        # memory of the core stays mapped as long as anything shows it, also after Free
        owner = fast.win_memory(self._h, base, size) if size else None
        return view(base if size else 0, size, False, self._memory if owner is None else owner)

    # Communication
    # -------------

    def _keep_origin(self, target_rank, holder):
        """Keep origin memory until the operation on it, which the caller starts next, is complete."""
        try:
            kept = self._origins.get(target_rank)
        except TypeError:  # not hashable, so no rank
            kept = None
        if kept is None:
            target_rank = index(target_rank, "target_rank")
            kept = self._origins[target_rank] = [] if core.WinLater(self._h, target_rank) else _NOT_KEPT
        if kept is _NOT_KEPT:
            return
        if len(kept) >= _MOST_KEPT:
            fast.complete_at(self._h, target_rank)
            kept.clear()
        kept.append(holder)

    def _completed(self, target_rank=None):
        """Release the memory of complete operations on one target or on all."""
        ranks = list(self._origins) if target_rank is None else [target_rank]
        for rank in ranks:
            if self._origins.get(rank):
                self._origins[rank].clear()

    def _access(self, kind, target_rank, source, fetched, spec, op=0, call=_rma, more=()):
        """Start an operation of the core; source and fetched are (address, count, datatype), spec the parsed target."""
        to, room, kept_type = fetched[:3] if fetched else (0, 0, source[2])
        address, count, datatype = source[:3]
        disp, n, target_type = spec[:3]
        return call(
            kind,
            self._h,
            address,
            count,
            datatype._h,
            to,
            room,
            kept_type._h,
            target_rank,
            disp,
            n,
            target_type._h,
            op,
            *more,
        )

    def _request(self, kind, target_rank, source, fetched, spec, holder, op=0):
        """Start an operation of the core and return its request."""
        # the window keeps the memory too: the request may be freed before the operation is complete
        self._keep_origin(target_rank, holder)
        return Request._started(self._access(kind, target_rank, source, fetched, spec, op, fast.rma_request, (holder,)))

    @hot
    @_to_a_rank
    def Put(self, origin: BufSpec, target_rank: int, target: TargetSpec | None = None) -> None:
        """Start to copy `origin` to a place in the part of `target_rank`."""
        source, spec, holder = parse_access(origin, True, target_rank, target)
        self._keep_origin(target_rank, holder)
        self._access(fast.PUT, target_rank, source, None, spec)

    @hot
    @_to_a_rank
    def Get(self, origin: BufSpec, target_rank: int, target: TargetSpec | None = None) -> None:
        """Start to copy a place in the part of `target_rank` to `origin`."""
        source, spec, holder = parse_access(origin, False, target_rank, target)
        self._keep_origin(target_rank, holder)
        self._access(fast.GET, target_rank, source, None, spec)

    @hot
    @_to_a_rank
    def Accumulate(self, origin: BufSpec, target_rank: int, target: TargetSpec | None = None, op: Op = SUM) -> None:
        """Start to combine the elements at a place in the part of `target_rank` with those of `origin`."""
        source, spec, holder = parse_access(origin, True, target_rank, target)
        self._keep_origin(target_rank, holder)
        self._access(fast.ACC, target_rank, source, None, spec, handle_of(op))

    @hot
    @_to_a_rank
    def Get_accumulate(
        self, origin: BufSpec, result: BufSpec, target_rank: int, target: TargetSpec | None = None, op: Op = SUM
    ) -> None:
        """Start to combine elements as Accumulate does, and to fetch their old values into `result`."""
        source, spec, holder = parse_access(origin, True, target_rank, target)
        fetched = message(result, False, target_rank, 0)
        self._keep_origin(target_rank, (holder, fetched[3]))
        self._access(fast.GET_ACC, target_rank, source, fetched, spec, handle_of(op))

    @hot
    @_to_a_rank
    def Fetch_and_op(
        self, origin: BufSpec, result: BufSpec, target_rank: int, target_disp: int = 0, op: Op = SUM
    ) -> None:
        """Start to combine one element with `origin`, and to fetch its old value into `result`."""
        source = single("origin", origin, True, target_rank)
        fetched = single("result", result, False, target_rank)
        same_type(target_rank, origin=source, result=fetched)
        one = (source[0], 1, source[2])
        self._keep_origin(target_rank, (source[3], fetched[3]))
        self._access(
            fast.FETCH_OP, target_rank, one, (fetched[0], 1, source[2]), (target_disp, 1, source[2]), handle_of(op)
        )

    @hot
    @_to_a_rank
    def Compare_and_swap(
        self, origin: BufSpec, compare: BufSpec, result: BufSpec, target_rank: int, target_disp: int = 0
    ) -> None:
        """Start to replace one element by `origin` if it equals `compare`, and to fetch its old value."""
        source = single("origin", origin, True, target_rank)
        expected = single("compare", compare, True, target_rank)
        fetched = single("result", result, False, target_rank)
        same_type(target_rank, origin=source, compare=expected, result=fetched)
        self._keep_origin(target_rank, (source[3], expected[3], fetched[3]))
        fast.compare_and_swap(self._h, source[0], expected[0], fetched[0], source[2]._h, target_rank, target_disp)

    # Request-based communication
    # ---------------------------

    @hot
    @_to_a_rank
    def Rput(self, origin: BufSpec, target_rank: int, target: TargetSpec | None = None) -> Request:
        """Start a Put, and return its request."""
        source, spec, holder = parse_access(origin, True, target_rank, target)
        return self._request(fast.PUT, target_rank, source, None, spec, holder)

    @hot
    @_to_a_rank
    def Rget(self, origin: BufSpec, target_rank: int, target: TargetSpec | None = None) -> Request:
        """Start a Get, and return its request."""
        source, spec, holder = parse_access(origin, False, target_rank, target)
        return self._request(fast.GET, target_rank, source, None, spec, holder)

    @hot
    @_to_a_rank
    def Raccumulate(self, origin: BufSpec, target_rank: int, target: TargetSpec | None = None, op: Op = SUM) -> Request:
        """Start an Accumulate, and return its request."""
        source, spec, holder = parse_access(origin, True, target_rank, target)
        return self._request(fast.ACC, target_rank, source, None, spec, holder, handle_of(op))

    @hot
    @_to_a_rank
    def Rget_accumulate(
        self, origin: BufSpec, result: BufSpec, target_rank: int, target: TargetSpec | None = None, op: Op = SUM
    ) -> Request:
        """Start a Get_accumulate, and return its request."""
        source, spec, holder = parse_access(origin, True, target_rank, target)
        fetched = message(result, False, target_rank, 0)
        return self._request(fast.GET_ACC, target_rank, source, fetched, spec, (holder, fetched[3]), handle_of(op))

    # Synchronization
    # ---------------

    @hot
    def Fence(self, assertion: int = 0) -> None:
        """End the epoch before, with all its operations, and begin the next one."""
        fast.fence(self._h, assertion)
        self._completed()

    @hot
    def Start(self, group: Group, assertion: int = 0) -> None:
        """Begin access to the parts of the ranks in `group`."""
        fast.win_start(self._h, _group(group, "Start"), assertion)

    @hot
    def Complete(self) -> None:
        """End the access that Start began."""
        fast.win_complete(self._h)
        self._completed()

    @hot
    def Post(self, group: Group, assertion: int = 0) -> None:
        """Begin to expose this rank's part to the ranks in `group`."""
        fast.win_post(self._h, _group(group, "Post"), assertion)

    @hot
    def Wait(self) -> Literal[True]:
        """End the exposure that Post began: wait until all its ranks have called Complete."""
        fast.win_wait(self._h)
        return True

    def Test(self) -> bool:
        """Report whether all ranks of Post's group have called Complete, and end the exposure if so."""
        return fast.win_test(self._h)

    @hot
    def Lock(self, rank: int, lock_type: int = constants.LOCK_EXCLUSIVE, assertion: int = 0) -> None:
        """Begin access to one rank by a lock."""
        fast.lock(self._h, rank, lock_type, assertion)

    @hot
    def Unlock(self, rank: int) -> None:
        """End access to one rank, with all operations on it."""
        fast.unlock(self._h, rank)
        self._completed(rank)

    @hot
    def Lock_all(self, assertion: int = 0) -> None:
        """Begin access to all ranks by shared locks."""
        fast.lock_all(self._h, assertion)

    @hot
    def Unlock_all(self) -> None:
        """End access to all ranks, with all operations."""
        fast.unlock_all(self._h)
        self._completed()

    @hot
    def Flush(self, rank: int) -> None:
        """Complete all operations on one rank, here and at the target."""
        fast.flush(self._h, rank)
        self._completed(rank)

    @hot
    def Flush_all(self) -> None:
        """Complete all operations on all ranks, here and at the targets."""
        fast.flush_all(self._h)
        self._completed()

    @hot
    def Flush_local(self, rank: int) -> None:
        """Complete all operations on one rank at this side only."""
        fast.flush_local(self._h, rank)
        self._completed(rank)

    @hot
    def Flush_local_all(self) -> None:
        """Complete all operations on all ranks at this side only."""
        fast.flush_local_all(self._h)
        self._completed()

    @hot
    def Sync(self) -> None:
        """Order this rank's loads and stores to its window: a memory barrier."""
        fast.win_sync(self._h)


# What makes objects without the arguments that Win.__new__ has for programs.
_new = fast.Win.__new__
_plain = Win.__new__

WIN_NULL = Win()
named("Win", 0, "WIN_NULL")
