"""Spaces: the slots of the ranks of a communicator.

# How slots map to windows

A space has one dynamic window, in a passive-target epoch for all of the space's life. A slot that other ranks may
access is attached to it, which is a local operation: hence `promote` does not need other ranks. Beside its memory each
slot has a cell of words (`cells.py`) in memory of its owner: the numbers of messages received and sent. Each global
slot has a cell with its number while it lives, and its lock. A rank that has a slot's description (the addresses of
the memory and the cells, and the number) can do all that follows with it.

When the space is made, the ranks agree on whether each of them can map the memory of all others (`Space.mapped`).
If so, words are changed by the processor's atomic instructions, and slots that `allocate` made are accessed by loads
and stores; memory of the program is accessed by the window's Put and Get, which the kernel carries out. If not, as over
a network, all accesses are calls of the window. Words are made atomic in the same way by all ranks, always.

# The order of writes

* received: the origin of a put adds one, after the data are there: a process that sees the count sees the data. Over a
  network the data are flushed before the count is sent.
* sent: the origin of a put adds one to its own slot's, the origin of a get to that of the slot read, afterwards.
* alive: only the owner writes it. A number is never used again, and cells stay until the space is closed, so that an
  origin sees whether a slot still lives, before any data moves.
* lock: see `lock.py`.

A process that waits for a count waits for words in its own memory. The origin rings its doorbell if it sleeps
(`gocore/mpi/word.go`). A wait ends with an error when all other ranks that could write are gone, and by time-out or
Ctrl-C with no effect. An origin that dies between data and count leaves a message that is not counted.
"""

from weakref import WeakSet

import numpy as np

import gormapy
from gormapy import MPI
from gormapy._ext import core, fast

from . import description
from .attached import Attached
from .cells import Cells
from .errors import SlotError
from .slot import GlobalSlot, LocalSlot, check_range
from .wait import Deadline, look_until

__all__ = ["Space"]


class Space:
    """Memory slots of the ranks of a communicator, by default COMM_WORLD; collective.

    `rank` and `size` are those of the communicator, `mapped` is whether all ranks share memory. As a context manager
    the space is closed at the end.

    >>> with Space() as space:
    ...     mine = space.allocate(8)
    ...     space.exchange('halo', {space.rank: mine})
    ...     space.memcpy(space.get('halo', space.rank), 0, mine, 0, 8)
    ...     space.fence('halo')
    """

    def __init__(self, comm=None):
        self._win = None  # in case the next line fails
        self._comm = (MPI.COMM_WORLD if comm is None else comm).Dup()
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        self._others = tuple(r for r in range(self.size) if r != self.rank)
        self._win = MPI.Win.Create_dynamic(comm=self._comm)
        self._win.Lock_all()
        self._attached = Attached(self._win)
        self._cells = Cells(self._attached.add)
        self._tags = {}  # tag -> key -> global slot
        self._ends = WeakSet()  # of channels
        self._doomed = {}  # tag -> keys of slots to be destroyed at the next fence
        self._promoted = []
        self.mapped = self._all_mapped()
        self._id = self._comm.bcast(description.new_id() if self.rank == 0 else None)

    def _all_mapped(self):
        samples = self._comm.allgather(self._cells.sample)
        mapped = all(fast.win_address(self._win._h, r, at, 8) for r, at in enumerate(samples))
        return self._comm.allreduce(mapped, MPI.LAND)

    def __repr__(self):
        return f"<slots.Space of {self.size} ranks{'' if self._win is not None else ', closed'}>"

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:  # otherwise the other ranks may not take part
            self.close()

    def close(self):
        """Destroy all slots and free the space's resources; collective.

        All copies of all ranks are complete when it returns. Memory of slots stays as long as the program has an object
        that shows it.
        """
        if self._win is None:
            return
        self._comm.Barrier()  # no rank accesses any slot any more
        self._win.Unlock_all()
        self._win.Free()
        self._comm.Free()
        self._win = None
        for end in self._ends:
            end._retire()
        self._tags, self._doomed, self._promoted = {}, {}, []

    # Used by the other modules
    # -------------------------

    def _check(self):
        if self._win is None:
            raise SlotError("the space has been closed: make another one")

    def _window(self):
        """Return the window, in a new epoch if a collective reset (gormapy.reset) has ended its epoch."""
        self._check()
        try:
            fast.flush(self._win._h, self.rank)
        except MPI.Exception as error:
            if error.Get_error_class() != MPI.ERR_RMA_SYNC:
                raise
            self._win.Lock_all()
        return self._win

    def _map(self, rank, address, nbytes):
        """Return the address at which memory of a rank is mapped here, 0 if it is not."""
        if nbytes == 0:
            return 0
        return fast.win_address(self._window()._h, rank, address, nbytes)

    def _word(self, rank, address, label, owner, wakes=True, direct=True):
        """Return the word at an address of a rank; a word with `wakes` False wakes no waiter."""
        if self.mapped and direct:
            at = self._map(rank, address, 8)
            return fast.Word(self._win._h, rank if wakes else -1, at, owner, label)
        from .remoteword import RemoteWord

        return RemoteWord(self, rank, address, owner, label)

    def _nap(self, seconds):
        """Sleep, and let signals and the transports have their turn."""
        import time

        time.sleep(seconds)
        core.Progress()

    # Local slots
    # -----------

    def allocate(self, nbytes):
        """Allocate memory, all zero, and return it as a local slot; its `array` has bytes (uint8).

        Local. `nbytes` is a number of bytes.

        Errors: ValueError for a negative number; SlotError for a space that was closed.
        """
        self._check()
        try:
            nbytes = nbytes.__index__()
        except AttributeError:
            raise TypeError(f"allocate: expecting a number of bytes, got {type(nbytes).__name__}") from None
        if nbytes < 0:
            raise ValueError(f"allocate: a slot can't have {nbytes} bytes")
        # whole cache lines, so that words in it share none with other memory
        array = gormapy.shared_zeros(-(-max(nbytes, 1) // 64) * 64 // 8, "i8").view("u1")[:nbytes]
        return LocalSlot(self, array, array, True)

    def register(self, array):
        """Make a local slot of an array or another writable buffer without gaps, which stays in use.

        Local. The slot keeps the memory alive until it is freed.

        Errors: TypeError for what is no such buffer; ValueError for one that is read-only.
        """
        self._check()
        try:
            memory = np.frombuffer(memoryview(array).cast("B"), "u1") if memoryview(array).nbytes else np.empty(0, "u1")
        except TypeError as error:
            raise TypeError(f"register: expecting an array without gaps or another buffer: {error}") from None
        if memory.size and not memory.flags.writeable:
            raise ValueError("register: the memory is read-only; register a writable copy")
        return LocalSlot(self, array, memory, False)

    def free(self, slot):
        """Free a local slot, and destroy the global slots of its memory, wherever they are known.

        The memory stays as long as the program has an object that shows it.
        """
        slot._check()
        for shown in list(slot._globals):
            self._bury(shown)
        cell, slot._cell = slot._cell, None
        self._cells.give_back(cell)

    deregister = free

    # Global slots
    # ------------

    def _expose(self, tag, key, local):
        """Make a global slot of local memory that other ranks can access."""
        if not isinstance(local, LocalSlot):
            raise TypeError(f"expecting a local slot, got {type(local).__name__}: allocate or register one")
        local._check()
        if local._space is not self:
            raise SlotError(f"{local!r} belongs to another space")
        cell, number = self._cells.take(), self._cells.number()
        pieces = self._attached.add(local.address, local.nbytes, local._memory) if local.nbytes else []
        slot = GlobalSlot(
            self, tag, key, (self.rank, local.address, local.nbytes, local._mapped, local._cell, cell, number), local
        )
        slot._pieces = pieces
        self._word(self.rank, cell, "slots", self, wakes=False).store(number)
        local._globals.add(slot)
        return slot

    def _bury(self, slot):
        """End a global slot of this process's memory."""
        if slot._pieces is None:
            return
        pieces, slot._pieces = slot._pieces, None
        slot._gone = "it has been destroyed"
        self._word(self.rank, slot._cell, "slots", self, wakes=False).store(0)
        self._attached.remove(pieces)
        self._cells.give_back(slot._cell)
        slot.source._globals.discard(slot)
        if slot in self._promoted:
            self._promoted.remove(slot)

    def exchange(self, tag, slots=None):
        """Make local slots global under a tag, each by a key: {key: slot}; collective.

        Every rank passes the slots of its own that it shares, if any. Tags and keys are integers, or any objects that
        can be pickled and hashed. A key that is already in use is a ValueError on all ranks, and nothing is changed.
        """
        self._check()
        mine, problem = {}, None
        try:
            for key, local in dict(slots or {}).items():
                mine[key] = self._expose(tag, key, local)
        except (TypeError, ValueError, SlotError) as error:  # the others wait: they must get the error, too
            problem = error
        offer = f"{type(problem).__name__}: {problem}" if problem else {k: s._where() for k, s in mine.items()}
        try:
            offers = self._comm.allgather(offer)
            if problem:
                raise problem
            self._check_offers(tag, self._tags.get(tag, {}), offers)
        except BaseException:
            for slot in mine.values():
                self._bury(slot)
            raise
        table = self._tags.setdefault(tag, {})
        for rank, offer in enumerate(offers):
            for key, where in offer.items():
                table[key] = mine[key] if rank == self.rank else GlobalSlot(self, tag, key, where)

    def _check_offers(self, tag, known, offers):
        owners = {}
        for rank, offer in enumerate(offers):
            if isinstance(offer, str):
                raise SlotError(f"exchange of tag {tag!r}: rank {rank} has no such slots to give ({offer})")
            for key in offer:
                if key in known:
                    raise ValueError(f"exchange of tag {tag!r}: the key {key!r} is there already; take another one")
                if key in owners:
                    raise ValueError(
                        f"exchange of tag {tag!r}: ranks {owners[key]} and {rank} both give the key {key!r}"
                    )
                owners[key] = rank

    def get(self, tag, key):
        """Return the global slot that was exchanged by a tag and a key.

        Local. Errors: KeyError if there is none, with those that there are.
        """
        self._check()
        if tag not in self._tags:
            there = ", ".join(map(repr, self._tags)) or "none"
            raise KeyError(f"no slots were exchanged with tag {tag!r}; tags there are: {there}")
        if key not in self._tags[tag]:
            there = ", ".join(map(repr, self._tags[tag])) or "none"
            raise KeyError(f"no slot was exchanged with tag {tag!r} and key {key!r}; keys there are: {there}")
        return self._tags[tag][key]

    def promote(self, local, tag=0):
        """Return a global slot of local memory, without the other ranks; `serialize` passes it to them.

        Local. Errors: SlotError for a slot of another space, or one that was freed; TypeError for what is no local
        slot.
        """
        self._check()
        slot = self._expose(tag, None, local)
        slot._promoted = True
        self._promoted.append(slot)
        return slot

    def _serialize(self, slot):
        slot._check()
        return description.pack(self._id, slot._where())

    def deserialize(self, data, tag=0):
        """Return the global slot that a rank of this space has turned into bytes by `serialize`.

        Local. Errors: ValueError for other bytes.
        """
        self._check()
        return GlobalSlot(self, tag, None, description.unpack(self._id, self.size, data))

    def deregister_global(self, slot):
        """Remove a global slot from this process; the other ranks still have it.

        Local.
        """
        if self._tags.get(slot.tag, {}).get(slot.key) is slot:
            del self._tags[slot.tag][slot.key]
        if slot.source is None:
            slot._gone = "it has been deregistered in this process"

    def destroy(self, slot):
        """Destroy a global slot: a promoted one at once, others at the next `fence` of their tag, on all ranks.

        One rank or several may call it. A promoted slot can only be destroyed by its owner.
        """
        self._check()
        if slot.key is None:
            if slot.source is None:
                raise SlotError(f"{slot!r} can be destroyed by its owner only: deregister_global forgets it here")
            self._bury(slot)
        elif slot._gone is None or slot.source is not None:
            self._doomed.setdefault(slot.tag, set()).add(slot.key)

    # Copies
    # ------

    def memcpy(self, dst, dst_offset, src, src_offset, size):
        """Copy bytes from one slot to another: local to local, local to global (a put), global to local (a get).

        Offsets and size are bytes. They are checked at both sides before anything moves (SlotRangeError). The
        data are there when the call returns, and then count as a message: received by `dst`, sent by `src`.
        """
        self._check()
        check_range("source", src, src_offset, size)
        check_range("destination", dst, dst_offset, size)
        if isinstance(src, LocalSlot):
            src._check()
            if isinstance(dst, LocalSlot):
                dst._check()
                dst._memory[dst_offset : dst_offset + size] = src._memory[src_offset : src_offset + size]
                dst._received.add(1)
            else:
                self._put(dst, dst_offset, src, src_offset, size)
            src._sent.add(1)
        elif isinstance(dst, LocalSlot):
            dst._check()
            self._get(dst, dst_offset, src, src_offset, size)
            dst._received.add(1)
        else:
            raise SlotError("memcpy: between two global slots nothing can be copied; one of them has to be local")

    def _put(self, dst, dst_offset, src, src_offset, size):
        dst._check()
        if dst._base and self.mapped:
            dst._received.move(dst._base + dst_offset, src.address + src_offset, size, 1)
            return
        if size:
            self._transfer(dst, self._window().Put, src._memory[src_offset : src_offset + size], dst_offset)
        dst._received.add(1)

    def _get(self, dst, dst_offset, src, src_offset, size):
        src._check()
        if src._base and self.mapped:
            src._sent.move(dst.address + dst_offset, src._base + src_offset, size, 1)
            return
        if size:
            self._transfer(src, self._window().Get, dst._memory[dst_offset : dst_offset + size], src_offset)
        src._sent.add(1)

    def _transfer(self, slot, call, memory, offset):
        try:
            call([memory, MPI.BYTE], slot.rank, slot.address + offset)
            self._win.Flush(slot.rank)
        except MPI.Exception as error:
            if error.Get_error_class() != MPI.ERR_RMA_RANGE:
                raise
            slot._gone = "its owner has destroyed it"
            raise SlotError(f"{slot!r} can't be used: {slot._gone}") from error

    # Synchronisation
    # ---------------

    def fence(self, what, sent=0, received=0, timeout=None, peers=None):
        """Wait for all ranks, with a tag, or for messages of one slot, with a slot.

        `fence(tag)` is collective: afterwards all earlier copies are complete, and the slots of the tag for which
        `destroy` was called are destroyed.

        `fence(slot, sent, received)` is not: it returns when these numbers of messages were sent from and received
        by the slot since the last such fence of it that succeeded. It raises TimeoutError after `timeout` seconds,
        with the numbers so far, and MPI.Exception when the ranks in `peers` (all others, unless given) have ended.
        """
        self._check()
        if isinstance(what, (LocalSlot, GlobalSlot)):
            self._fence_slot(what, sent, received, timeout, peers)
        else:
            self._fence_tag(what)

    def _fence_tag(self, tag):
        self._window().Flush_all()
        doomed = self._doomed.pop(tag, None)
        if not self._comm.allreduce(doomed is not None, MPI.LOR):
            return
        table = self._tags.get(tag, {})
        for key in set().union(*self._comm.allgather(doomed or set())):
            slot = table.pop(key, None)
            if slot is not None and slot.source is not None:
                self._bury(slot)
            elif slot is not None:
                slot._gone = "it has been destroyed"
        self._comm.Barrier()  # no rank finds memory of others that is about to be destroyed

    def _fence_slot(self, slot, sent, received, timeout, peers):
        slot._check()
        local = slot if isinstance(slot, LocalSlot) else slot.source
        peers = self._others if peers is None else tuple(peers)
        deadline = Deadline(timeout)
        fenced = self._fenced_of(slot if local is None else local)
        for word, target, name in (
            ((slot if local is None else local)._sent, fenced[0] + sent, "sent"),
            ((slot if local is None else local)._received, fenced[1] + received, "received"),
        ):
            if local is not None:
                count = word.wait(target, deadline.left(), peers)
            else:
                count = self._watch(slot, word, target, deadline)
            if count < target:
                raise TimeoutError(
                    f"fence: {slot!r} has {name} {count - fenced[name == 'received']} of the messages waited for "
                    f"({sent} sent, {received} received) within {timeout} s"
                )
        fenced[0] += sent
        fenced[1] += received

    @staticmethod
    def _fenced_of(slot):
        if isinstance(slot, GlobalSlot) and not hasattr(slot, "_fenced"):
            slot._fenced = [0, 0]
        return slot._fenced

    def _watch(self, slot, word, target, deadline):
        """Poll a word of another rank until it has a value or the time is over."""

        def look():
            count = word.load()
            if count >= target:
                return count
            how = core.WinGone(self._win._h, slot.rank)
            if how:
                raise SlotError(f"fence: {slot!r} gets no more messages: {how}")
            core.Progress()
            return None

        found = look_until(look, deadline.left())
        return word.load() if found is None else found

    def query_updates(self, slot):
        """Return how many messages a slot has sent and received, as two numbers, without waiting.

        Errors: SlotError for a slot that was freed or destroyed.
        """
        slot._check()
        if not self.mapped:
            core.Progress()  # messages that have arrived by the network are handled
        return slot._sent.load(), slot._received.load()

    # Locks
    # -----

    def acquire(self, slot, timeout=None):
        """Acquire the lock of a global slot: see `GlobalSlot.acquire`."""
        slot.acquire(timeout)

    def try_acquire(self, slot):
        """Acquire the lock of a global slot if it is free, and report whether it was acquired.

        See `GlobalSlot.try_acquire`.
        """
        return slot.try_acquire()

    def release(self, slot):
        """Release the lock of a global slot; see `GlobalSlot.release`."""
        slot.release()
