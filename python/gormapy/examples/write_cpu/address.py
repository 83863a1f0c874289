"""The server's address, and the exchange of connection infos between client and server."""

import socket
import struct
import time
import zlib
from dataclasses import dataclass

_HEAD = struct.Struct("<BBBH16s")  # version, lengths of back end and host, port, token
_HELLO = struct.Struct("<8s16sH")  # greeting, token, length of the info
_REPLY = struct.Struct("<BH")  # 0 or 1 (refused), length of the info or the reason
_GREETING = b"writeCPU"
_VERSION = 1
_MOST = 1024
_PATIENCE = 5.0  # seconds for messages that should arrive at once


class Refused(Exception):
    """One side refuses the other, with a reason."""


@dataclass(frozen=True)
class Address:
    """The server's address: its back end, and host and port of the socket where clients introduce themselves.

    `token` distinguishes clients of this server from others, and from clients of an earlier server at this port.
    """

    backend: str
    host: str
    port: int
    token: bytes

    def __str__(self):
        backend, host = self.backend.encode(), self.host.encode()
        data = _HEAD.pack(_VERSION, len(backend), len(host), self.port, self.token) + backend + host
        return (data + struct.pack("<I", zlib.crc32(data))).hex()

    @classmethod
    def parse(cls, text):
        """Read what the server has printed; raise ValueError if it is damaged."""
        try:
            data = bytes.fromhex(text)
        except ValueError:
            raise ValueError(f"{text!r} is no address: it must be the hex digits that the server prints") from None
        if len(data) < _HEAD.size + 4 or data[0] != _VERSION:
            raise ValueError(f"these {len(text)} hex digits are no address of a write_cpu server")
        if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
            raise ValueError(f"the address of {len(text)} hex digits is damaged or cut: copy the server's line again")
        _, n, m, port, token = _HEAD.unpack_from(data)
        names = data[_HEAD.size : -4]
        if len(names) != n + m:
            raise ValueError(f"the address has {len(names)} bytes of names instead of {n + m}")
        return cls(names[:n].decode("ascii"), names[n:].decode("ascii"), port, token)


def introduce(address, info):
    """Connect to the server, exchange infos; return the socket and the server's info."""
    try:
        sock = socket.create_connection((address.host, address.port), timeout=_PATIENCE)
    except OSError as error:
        raise Refused(f"no server at {address.host} port {address.port}: {error.strerror or error}") from None
    try:
        sock.sendall(_HELLO.pack(_GREETING, address.token, len(info)) + info)
        refused, n = _REPLY.unpack(_read(sock, _REPLY.size))
        data = _read(sock, n)
    except (OSError, Refused) as error:
        sock.close()
        what = "nothing" if isinstance(error, TimeoutError) else str(error)
        raise Refused(f"{address.host} port {address.port} is not the server of this address: {what}") from None
    if refused:
        sock.close()
        raise Refused("the server refused: " + data.decode("utf-8", "replace"))
    return sock, data


def welcome(sock, token):
    """Read a client's greeting; return its info. Raises `Refused` for a process without the token."""
    greeting, got, n = _HELLO.unpack(_read(sock, _HELLO.size))
    if greeting != _GREETING or n > _MOST:
        raise Refused("it does not speak as a client does")
    info = _read(sock, n)  # all of it: unread bytes would reset the connection, and the answer would be lost
    if got != token:
        raise Refused("it has the address of another server")
    return info


def answer(sock, info=b"", refusal=None):
    """Send the own info, or the reason of a refusal."""
    data = info if refusal is None else refusal.encode()[:_MOST]
    sock.settimeout(_PATIENCE)
    sock.sendall(_REPLY.pack(refusal is not None, len(data)) + data)


def watch(sock, patience=0.0):
    """Return whether the other side has not closed its end; raise `Refused` if it says why it does."""
    try:
        sock.settimeout(patience)
        if sock.recv(1, socket.MSG_PEEK) == b"":
            return False
        refused, n = _REPLY.unpack(_read(sock, _REPLY.size))
        text = _read(sock, n).decode("utf-8", "replace")
    except (BlockingIOError, TimeoutError):
        return True
    except OSError:
        return False
    raise Refused(text if refused else f"it says {text!r}, and nothing was to be said")


def _read(sock, n):
    """Read a number of bytes, which all have to arrive soon."""
    data, end = b"", time.monotonic() + _PATIENCE
    while len(data) < n:
        sock.settimeout(max(0.01, end - time.monotonic()))
        more = sock.recv(n - len(data))
        if not more:
            raise Refused("it hung up")
        data += more
    return data
