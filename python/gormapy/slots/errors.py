"""The errors of slots and channels."""


class SlotError(RuntimeError):
    """A slot, lock or object can't be used as asked for."""


class SlotRangeError(SlotError, ValueError):
    """An access is outside of the bytes of a slot."""


class HolderDied(SlotError):
    """The rank that held a lock has ended; the lock is free again."""


class Full(SlotError):
    """The channel has no room for the token."""


class Empty(SlotError):
    """The channel has no such token."""


class Closed(Empty):
    """The channel is empty, and its producers have closed it."""


class FullTimeout(Full, TimeoutError):
    """The channel had no room for the token within the time given."""


class EmptyTimeout(Empty, TimeoutError):
    """No token came within the time given."""
