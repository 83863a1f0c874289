"""The description of a global slot as bytes."""

import os
import struct
import zlib

_FORMAT = struct.Struct("<4s16sIQQBQQQ")
_MAGIC = b"gms1"


def new_id():
    """Return a name for a space that no other one has."""
    return os.urandom(16)


def pack(space_id, where):
    """Return a slot's description as bytes."""
    body = _FORMAT.pack(_MAGIC, space_id, *where)
    return body + struct.pack("<I", zlib.crc32(body))


def unpack(space_id, size, data):
    """Return the description in bytes; ValueError if they are not a slot of this space of `size` ranks."""
    try:
        data = bytes(memoryview(data))
    except TypeError:
        raise TypeError(f"deserialize: expecting bytes, got {type(data).__name__}") from None
    if len(data) != _FORMAT.size + 4:
        raise ValueError(f"deserialize: a slot is {_FORMAT.size + 4} bytes, these are {len(data)}")
    body, check = data[:-4], struct.unpack("<I", data[-4:])[0]
    magic, of, *where = _FORMAT.unpack(body)
    if magic != _MAGIC or zlib.crc32(body) != check:
        raise ValueError("deserialize: the bytes are not a slot, or are damaged")
    if of != space_id:
        raise ValueError("deserialize: the slot belongs to another space")
    if where[0] >= size:
        raise ValueError(f"deserialize: the slot is of rank {where[0]}, and the space has {size} ranks")
    where[3] = bool(where[3])
    return tuple(where)
