"""Memory slots and channels: the communication model of HiCR on gormapy's windows.

    from gormapy import slots

    space = slots.Space(comm)                    # collective
    mine = space.allocate(256)                   # a local slot; register(array) makes one of an array
    space.exchange(tag, {rank: mine})            # collective: global slots, by tag and key
    theirs = space.get(tag, other)
    space.memcpy(theirs, 0, mine, 0, 256)        # a put: one-sided
    space.fence(tag)                             # collective; fence(mine, received=1) is not

A *local slot* is memory of this process, a *global slot* is a name of such memory for all ranks. `Space.promote`
makes a global slot without the other ranks; `serialize` and `deserialize` pass it to them. Each slot counts
the messages that it sent and received. On top of slots there are channels (`spsc`, `mpsc`: queues of tokens
from one or many producers to one consumer) and an `ObjectStore`.

Where ranks share memory, slots that `allocate` made are accessed by loads and stores, and registered arrays
by copies of the kernel; over a network, slots are accessed by one-sided calls. The target's program takes no part.
`help(gormapy.slots.space)` has the protocol.
"""

from .channel import mpsc, spsc
from .errors import Closed, Empty, Full, HolderDied, SlotError, SlotRangeError
from .slot import GlobalSlot, LocalSlot
from .space import Space
from .store import Handle, ObjectStore

__all__ = [
    "Closed",
    "Empty",
    "Full",
    "GlobalSlot",
    "Handle",
    "HolderDied",
    "LocalSlot",
    "ObjectStore",
    "SlotError",
    "SlotRangeError",
    "Space",
    "mpsc",
    "spsc",
]
