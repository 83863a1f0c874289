"""Object store: blocks of memory that one rank publishes and any rank reads."""

import json
from dataclasses import dataclass, field

import numpy as np

from .errors import SlotError


@dataclass(frozen=True)
class Handle:
    """The name of a published object: send it, or `bytes(handle)`, to the ranks that read the object."""

    rank: int
    id: int
    nbytes: int
    dtype: str  # of the array that was published; "" for bytes
    shape: tuple
    slot: bytes = field(repr=False)

    def __bytes__(self):
        fields = [self.rank, self.id, self.nbytes, self.dtype, list(self.shape), self.slot.hex()]
        return json.dumps(fields).encode()


class ObjectStore:
    """Objects of the ranks of a space: `publish` and `get` are one-sided."""

    def __init__(self, space, tag="objects"):
        self._space, self._tag = space, tag
        self._mine = {}  # id -> (global slot, local slot)
        self._next = 0

    def publish(self, data, id=None):
        """Publish bytes or an array, of which a copy is made, and return its handle.

        Local. `data` may be changed when it returns. `id` is a number that the program chooses, by default the next
        free one. An object does not change.

        Errors: SlotError for an id that is published, until it is destroyed; TypeError for Python objects, structured
        types, and what is no memory.
        """
        if id is None:
            while self._next in self._mine:
                self._next += 1
            id = self._next
        if id in self._mine:
            raise SlotError(f"object {id} of rank {self._space.rank} is published already: destroy it first")
        if isinstance(data, np.ndarray):
            if data.dtype.hasobject:
                raise TypeError(f"publish: {data.dtype} has Python objects in it: pickle them first")
            memory, dtype, shape = np.ascontiguousarray(data), data.dtype.str, data.shape
            if data.dtype.names is not None:
                raise TypeError(f"publish: {data.dtype} is a structured type: publish its fields, or its bytes")
            memory = memory.reshape(-1).view("u1")
        else:
            try:
                memory = np.frombuffer(memoryview(data).cast("B"), "u1") if len(memoryview(data)) else np.empty(0, "u1")
            except TypeError:
                raise TypeError(f"publish: expecting bytes or an array, got {type(data).__name__}") from None
            dtype, shape = "", ()
        local = self._space.allocate(memory.size)
        local.array[:] = memory
        shown = self._space.promote(local, self._tag)
        self._mine[id] = shown, local
        return Handle(self._space.rank, id, memory.size, dtype, shape, shown.serialize())

    def handle(self, data):
        """Return the handle that was turned into bytes by `bytes(handle)`.

        Errors: ValueError for other bytes.
        """
        try:
            rank, id, nbytes, dtype, shape, slot = json.loads(bytes(data))
            handle = Handle(int(rank), int(id), int(nbytes), str(dtype), tuple(map(int, shape)), bytes.fromhex(slot))
            self._space.deserialize(handle.slot, self._tag)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the bytes are no handle of an object: {error}") from None
        return handle

    def get(self, handle):
        """Return a copy of a published object: bytes, or an array as it was published.

        One-sided: the rank that has published it takes no part.

        Errors: SlotError if it was destroyed; TypeError for what is no Handle.
        """
        if not isinstance(handle, Handle):
            raise TypeError(f"get: expecting a Handle, got {type(handle).__name__}: see ObjectStore.handle for bytes")
        theirs = self._space.deserialize(handle.slot, self._tag)
        if theirs.nbytes != handle.nbytes:
            raise ValueError(f"get: the handle says {handle.nbytes} bytes, its slot has {theirs.nbytes}")
        local = self._space.allocate(handle.nbytes)
        try:
            self._space.memcpy(local, 0, theirs, 0, handle.nbytes)
        finally:
            self._space.free(local)
        if not handle.dtype:
            return local.array.tobytes()
        return local.array.view(handle.dtype).reshape(handle.shape)

    def fence(self):
        """Wait until all ranks have called it: all earlier gets are complete; collective."""
        self._space.fence(self._tag)

    def destroy(self, handle):
        """Destroy an object that this rank published.

        Local; a later `get` of it raises SlotError. Errors: SlotError if this rank has not published it.
        """
        if handle.rank != self._space.rank or handle.id not in self._mine:
            raise SlotError(f"object {handle.id} of rank {handle.rank} is not published by rank {self._space.rank}")
        shown, local = self._mine.pop(handle.id)
        self._space.destroy(shown)
        self._space.free(local)
