"""Memory of the program that stays registered with a network for as long as its array lives.

An RDMA network reads and writes registered memory only, and registering takes longer than sending
a short message. So the memory of a NumPy array that owns it is registered when it is first used
for a long message, and a weak reference to the array ends the registration before the memory is freed.
Memory that can't be watched so (a bytearray, memory mapped by others) is registered for each operation.
"""

import weakref

from gormapy._ext import core, fast

# Shorter data is copied to registered memory of the transport.
_FROM = 16 << 10
# Registered memory is pinned; beyond this number of arrays, the oldest registrations are removed.
_MOST = 256

_kept = {}  # id of an array -> finalizer; in the order in which they were registered


def start():
    """Start to watch arrays, if the network needs registered memory."""
    if core.NetworkKeys():
        fast.watch(_FROM, watch)


def _owner(obj):
    """Return the array that owns the memory of obj, None if there is none or it can't be watched."""
    ndarray = _ndarray()
    for _ in range(8):
        if isinstance(obj, memoryview):
            obj = obj.obj
        elif ndarray is not None and isinstance(obj, ndarray):
            if obj.flags.owndata:
                return obj
            obj = obj.base
        else:
            return None
    return None


def _ndarray():
    import sys

    numpy = sys.modules.get("numpy")
    return getattr(numpy, "ndarray", None)


def watch(obj):
    """Keep the memory of an array registered as long as the array lives."""
    array = _owner(obj)
    if array is None or id(array) in _kept or array.nbytes < _FROM or not array.flags.forc:
        return
    handle = core.KeepMemory(array.__array_interface__["data"][0], array.nbytes)
    if not handle:
        return
    while len(_kept) >= _MOST:
        next(iter(_kept.values()))()
    _kept[id(array)] = weakref.finalize(array, _forget, id(array), handle)
    _kept[id(array)].atexit = False


def _forget(key, handle):
    _kept.pop(key, None)
    core.ReleaseKept(handle)
