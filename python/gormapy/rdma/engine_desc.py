"""Descriptors of engines and of their memory, which programs exchange as bytes."""

import struct
import zlib
from dataclasses import dataclass, field

from .constants import Access
from .errors import integer, invalid, mismatch

__all__ = ["EngineDesc", "MemoryDesc"]

_HEAD = struct.Struct("<4sBBH")  # magic, version, kind, length of all
_VERSION = 1
_MAGIC = b"gRDE"


def _seal(kind, body):
    length = _HEAD.size + len(body) + 4
    packed = _HEAD.pack(_MAGIC, _VERSION, kind, length) + body
    return packed + struct.pack("<I", zlib.crc32(packed))


def _unseal(kind, packed, operation):
    try:
        packed = bytes(memoryview(packed))
    except TypeError:
        raise mismatch(operation, "packed", "bytes", packed) from None
    if len(packed) < _HEAD.size + 4 or packed[:4] != _MAGIC:
        raise invalid(operation, f"these {len(packed)} bytes are no descriptor", length=len(packed))
    _, version, found, length = _HEAD.unpack_from(packed)
    if version != _VERSION:
        raise invalid(operation, f"the descriptor has version {version}; this is version {_VERSION}")
    if length != len(packed):
        raise invalid(operation, f"the descriptor has {len(packed)} bytes and should have {length}", length=len(packed))
    if zlib.crc32(packed[:-4]) != int.from_bytes(packed[-4:], "little"):
        raise invalid(operation, "the descriptor is damaged")
    if found != kind:
        raise invalid(operation, "this descriptor is of another kind: engines have EngineDesc, memory has MemoryDesc")
    return packed[_HEAD.size : -4]


class _Reader:
    """Take packed fields out of bytes."""

    def __init__(self, body, operation):
        self.body, self.operation = body, operation

    def take(self, length):
        part, self.body = self.body[:length], self.body[length:]
        if len(part) < length:
            raise invalid(self.operation, "the descriptor ends too early")
        return part

    def number(self, length):
        return int.from_bytes(self.take(length), "little")

    def text(self):
        try:
            return self.take(self.number(2)).decode()
        except UnicodeDecodeError:
            raise invalid(self.operation, "the descriptor has text that is not UTF-8") from None

    def end(self):
        if self.body:
            raise invalid(self.operation, f"the descriptor has {len(self.body)} bytes too many")


def _text(value):
    encoded = value.encode()
    return struct.pack("<H", len(encoded)) + encoded


@dataclass(frozen=True, slots=True)
class EngineDesc:
    """The descriptor of an engine: what `Engine.desc` returns and `Engine.register_remote` takes.

    A process that has it, with the engine's `secret`, may transfer from and to all memory that the engine has
    registered, if it has that memory's `MemoryDesc`, too. `id` distinguishes engines of the same name, `address` is
    the host and port of its socket, `pid` and `hostname` say where it runs. It can be pickled.
    """

    name: str
    id: bytes
    backend: str
    device: str
    address: str
    hostname: str
    pid: int
    secret: bytes = field(repr=False)

    def pack(self):
        """Return the descriptor as bytes, at most 4096."""
        texts = (self.name, self.backend, self.device, self.address, self.hostname)
        return _seal(1, self.id + self.secret + struct.pack("<I", self.pid) + b"".join(map(_text, texts)))

    @classmethod
    def unpack(cls, packed):
        """Return the descriptor of bytes that `pack` returned.

        Errors: `Error` for other bytes.
        """
        reader = _Reader(_unseal(1, packed, "EngineDesc.unpack"), "EngineDesc.unpack")
        id, secret, pid = reader.take(16), reader.take(32), reader.number(4)
        name, backend, device, address, hostname = (reader.text() for _ in range(5))
        reader.end()
        return cls(name, id, backend, device, address, hostname, pid, secret)


@dataclass(frozen=True, slots=True)
class MemoryDesc:
    """The descriptor of registered memory of an engine: what `Engine.register_memory` returns.

    `engine` and `engine_id` name the engine, `id` the memory there, `addr` and `rkey` are its address and key on the
    device, `size` is in bytes, and `access` is the access that it allows. It can be pickled.
    """

    engine: str
    engine_id: bytes
    id: int
    addr: int
    size: int
    rkey: int
    access: Access

    def __post_init__(self):
        if not isinstance(self.engine, str) or not isinstance(self.engine_id, bytes) or len(self.engine_id) != 16:
            raise mismatch("MemoryDesc", "engine and engine_id", "a name and 16 bytes", (self.engine, self.engine_id))
        for name, most in (("id", 2**63 - 1), ("addr", 2**64 - 1), ("size", 2**63 - 1), ("rkey", 2**64 - 1)):
            integer("MemoryDesc", name, getattr(self, name), 0, most)
        integer("MemoryDesc", "access", self.access, 0, 15)

    def pack(self):
        """Return the descriptor as bytes, at most 4096."""
        numbers = struct.pack("<5Q", self.id, self.addr, self.size, self.rkey, self.access)
        return _seal(2, self.engine_id + numbers + _text(self.engine))

    @classmethod
    def unpack(cls, packed):
        """Return the descriptor of bytes that `pack` returned.

        Errors: `Error` for other bytes.
        """
        reader = _Reader(_unseal(2, packed, "MemoryDesc.unpack"), "MemoryDesc.unpack")
        engine_id = reader.take(16)
        id, addr, size, rkey, access = (reader.number(8) for _ in range(5))
        engine = reader.text()
        reader.end()
        if access > 15:
            raise invalid("MemoryDesc.unpack", f"the descriptor has access {access:#x}")
        return cls(engine, engine_id, id, addr, size, rkey, Access(access))
