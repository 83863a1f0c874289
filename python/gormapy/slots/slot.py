"""Memory slots: local ones are memory of this process, global ones name memory of any rank."""

from contextlib import contextmanager

from . import cells
from .errors import SlotError, SlotRangeError
from .lock import Lock


def check_range(what, slot, offset, size):
    """Raise SlotRangeError unless the bytes are all in the slot."""
    if offset < 0 or size < 0:
        raise SlotRangeError(f"memcpy: {what} offset ({offset}) and size ({size}) must not be negative")
    if offset + size > slot.nbytes:
        raise SlotRangeError(
            f"memcpy: size ({size}) + offset ({offset}) = ({offset + size}) exceeds {what} slot {slot!r} "
            f"capacity ({slot.nbytes})"
        )


class Counted:
    """The numbers of messages of a slot."""

    @property
    def messages_received(self):
        """Number of messages that were written to this slot, by `Space.memcpy`."""
        return self._check()._received.load()

    @property
    def messages_sent(self):
        """Number of messages that were read from this slot, by `Space.memcpy`."""
        return self._check()._sent.load()


class LocalSlot(Counted):
    """Memory of this process, with the numbers of messages that it sent and received.

    `array` is the memory as bytes or as the array that was registered; `Space.allocate` and `Space.register`
    make local slots.
    """

    def __init__(self, space, array, memory, mapped):
        self.array = array
        self._space = space
        self._memory = memory  # a one-dimensional array of its bytes
        self._mapped = mapped  # in memory that all ranks can map
        self.nbytes = memory.nbytes
        self.address = memory.ctypes.data
        self._cell = space._cells.take()
        self._received = space._word(space.rank, self._cell + 8 * cells.RECEIVED, "slots.fence", space)
        self._sent = space._word(space.rank, self._cell + 8 * cells.SENT, "slots.fence", space)
        self._fenced = [0, 0]  # sent, received: what counting fences have waited for
        self._globals = set()  # global slots of this memory that live

    def __repr__(self):
        return f"<local slot of {self.nbytes} bytes on rank {self._space.rank}>"

    def _check(self):
        if self._cell is None:
            raise SlotError("the local slot has been freed: allocate or register another one")
        return self

    def __len__(self):
        return self.nbytes


class GlobalSlot(Counted):
    """Memory of a rank, which every rank can name.

    `rank` is the owner of the memory, `nbytes` its size, `tag` and `key` those of the exchange (the key of a promoted
    slot is None), `source` the local slot if the memory is this process's, else None.
    """

    def __init__(self, space, tag, key, where, source=None):
        self.tag, self.key, self.source = tag, key, source
        self.rank, self.address, self.nbytes, self._mapped, self._counts, self._cell, self._number = where
        self._space = space
        self._promoted = False
        self._pieces = None
        self._base = None  # where the memory is mapped here; 0: it is not
        self._gone = None  # the reason why the slot can't be used any more
        self._received = self._sent = self._alive = self._lock = None

    def __repr__(self):
        name = "promoted" if self.key is None else f"key {self.key!r}"
        return f"<global slot of {self.nbytes} bytes on rank {self.rank}, tag {self.tag!r}, {name}>"

    def _where(self):
        return (self.rank, self.address, self.nbytes, self._mapped, self._counts, self._cell, self._number)

    def _check(self):
        """Raise SlotError if the slot is known to be destroyed."""
        if self._space._win is None:
            self._space._check()
        if self._gone is None and self._base is None:
            self._find()
        if self._gone is not None:
            raise SlotError(f"{self!r} can't be used: {self._gone}")
        if self._alive.load() != self._number:
            self._gone = "its owner has destroyed it"
            raise SlotError(f"{self!r} can't be used: {self._gone}")
        return self

    def _find(self):
        space, rank = self._space, self.rank
        self._alive = space._word(rank, self._cell + 8 * cells.ALIVE, "slots", space, wakes=False)
        if self._alive.load() != self._number:
            self._gone = "its owner has destroyed it"
            return
        self._received = space._word(rank, self._counts + 8 * cells.RECEIVED, "slots.fence", space)
        self._sent = space._word(rank, self._counts + 8 * cells.SENT, "slots.fence", space)
        self._lock = Lock(
            space,
            space._word(rank, self._cell + 8 * cells.LOCK, "slots.acquire", space, wakes=False),
            space._word(rank, self._cell + 8 * cells.WAITERS, "slots.acquire", space, wakes=False),
            repr(self),
        )
        self._base = space._map(rank, self.address, self.nbytes)

    def place(self, offset):
        """Return the address of an offset, for the methods of words of this slot's rank that put data.

        `offset` is in bytes. Errors: SlotError for a slot that was destroyed.
        """
        self._check()
        return (self._base if self._direct() else self.address) + offset

    def _direct(self):
        return self._mapped and self._space.mapped

    def word(self, offset, label="slots"):
        """Return the word of 8 bytes at an offset: a counter that ranks store, add to and wait for.

        `offset` is in bytes. Errors: SlotRangeError for an offset that is no multiple of 8, or beyond the slot;
        SlotError for a slot that was destroyed.
        """
        self._check()
        if offset % 8 or offset < 0 or offset + 8 > self.nbytes:
            raise SlotRangeError(f"{self!r} has no word at offset {offset}: words are 8 bytes, at multiples of 8")
        return self._space._word(self.rank, self.address + offset, label, self, direct=self._direct())

    def acquire(self, timeout=None):
        """Acquire the slot's lock; wait for it at most `timeout` seconds (None: as long as it takes).

        Errors: TimeoutError when time is over; SlotError if this rank has the lock already; HolderDied if the rank that
        had it has ended: then the lock is free again, and what it protects may be half written.
        """
        self._check()._lock.acquire(timeout)

    def try_acquire(self):
        """Acquire the slot's lock if it is free, and report whether it was acquired.

        It never waits. Errors: SlotError for a slot that was destroyed.
        """
        return self._check()._lock.try_acquire()

    def release(self):
        """Release the slot's lock.

        Errors: SlotError if this rank does not have it.
        """
        self._check()._lock.release()

    @contextmanager
    def locked(self, timeout=None):
        """Hold the slot's lock in a `with` statement.

        `timeout` and errors are those of `acquire`.
        """
        self.acquire(timeout)
        try:
            yield self
        finally:
            self.release()

    def serialize(self):
        """Return the slot as bytes, which `Space.deserialize` makes a slot of on any rank of the space.

        Errors: SlotError for a slot that was destroyed.
        """
        return self._space._serialize(self)

    def destroy(self):
        """Destroy the slot: at once if it was promoted, else at the next `Space.fence` of its tag.

        Errors: SlotError if it was promoted by another rank.
        """
        self._space.destroy(self)
