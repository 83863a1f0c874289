"""The messages, byte for byte those of the C++ program on x86-64: little endian, with its padding."""

import hashlib
import struct
from dataclasses import dataclass

MESSAGE = 8192  # bytes of a message buffer
REGION = 16 << 20  # bytes of a memory region
CONNECT, RANDOMFILL = 0, 1
REFUSED = 255  # not in the original: the server's reason for a refusal

_CONNECT = struct.Struct("<B32s7xQ")  # type, client_addr, num_mr
_REGION = struct.Struct("<QQQ")  # addr, size, rkey
_FILL = struct.Struct("<B3xIQQQ")  # type, remote_context, seed, page_size, num_pages
_REFUSED = struct.Struct("<B3xI")  # type, length of the text
MOST_PAGES = (MESSAGE - _FILL.size) // 4
MOST_REGIONS = (MESSAGE - _CONNECT.size) // _REGION.size


def client_addr(info):
    """Return the 32 bytes for the client's address in CONNECT, whatever the length of its info."""
    return hashlib.sha256(info).digest()


class Malformed(ValueError):
    """A message that is malformed, or requests something impossible."""


@dataclass(frozen=True)
class Region:
    """A memory region of the client."""

    addr: int
    size: int
    rkey: int


@dataclass(frozen=True)
class Connect:
    """The address of the client, and its memory."""

    client_addr: bytes
    regions: tuple

    def pack(self):
        """Return the message."""
        head = _CONNECT.pack(CONNECT, self.client_addr, len(self.regions))
        return head + b"".join(_REGION.pack(region.addr, region.size, region.rkey) for region in self.regions)

    @classmethod
    def unpack(cls, data):
        """Read the message."""
        _, client_addr, n = _head(_CONNECT, "CONNECT", CONNECT, data)
        if not 1 <= n <= MOST_REGIONS:
            raise Malformed(f"CONNECT with {n} memory regions; there can be 1 to {MOST_REGIONS}")
        _length("CONNECT", data, _CONNECT.size + n * _REGION.size, f"{n} memory regions")
        return cls(client_addr, tuple(Region(*fields) for fields in _REGION.iter_unpack(data[_CONNECT.size :])))


@dataclass(frozen=True)
class RandomFill:
    """The request of the client: the pages to write, and the number that announces the end."""

    remote_context: int
    seed: int
    page_size: int
    pages: tuple

    @property
    def nbytes(self):
        """How many bytes of each region are written."""
        return self.page_size * len(self.pages)

    def pack(self):
        """Return the message."""
        head = _FILL.pack(RANDOMFILL, self.remote_context, self.seed, self.page_size, len(self.pages))
        return head + struct.pack(f"<{len(self.pages)}I", *self.pages)

    @classmethod
    def unpack(cls, data):
        """Read the message, and check all that the demo checks, and more."""
        _, context, seed, page_size, n = _head(_FILL, "RANDOMFILL", RANDOMFILL, data)
        if not 1 <= n <= MOST_PAGES:
            raise Malformed(f"RANDOMFILL of {n} pages; there can be 1 to {MOST_PAGES} in a message of {MESSAGE} bytes")
        _length("RANDOMFILL", data, _FILL.size + 4 * n, f"{n} pages")
        if context == 0:
            raise Malformed("RANDOMFILL with remote_context 0, which is no immediate data")
        examine(page_size, n)
        return cls(context, seed, page_size, struct.unpack_from(f"<{n}I", data, _FILL.size))

    def outside(self, regions):
        """Return the number of the first region that a page is not in, and the page's offset; None if all are."""
        for i, region in enumerate(regions):
            for page in self.pages:
                if page * self.page_size + self.page_size > region.size:
                    return i, page * self.page_size
        return None


def examine(page_size, num_pages):
    """Raise `Malformed` for impossible pages."""
    if page_size < 1 or num_pages < 1:
        raise Malformed(f"{num_pages} pages of {page_size} bytes: there must be 1 or more of both")
    if num_pages > MOST_PAGES:
        raise Malformed(f"{num_pages} pages: a message of {MESSAGE} bytes has room for {MOST_PAGES}")
    if page_size * num_pages > REGION:
        raise Malformed(f"{num_pages} pages of {page_size} bytes are more than a memory region, {REGION} bytes")
    if page_size * num_pages % 8:
        raise Malformed(f"{num_pages} pages of {page_size} bytes are no whole number of 8-byte numbers")


def pack_refused(text):
    """Return the message that refuses."""
    data = text.encode()[: MESSAGE - _REFUSED.size]
    return _REFUSED.pack(REFUSED, len(data)) + data


def unpack_refused(data):
    """Return the text of a message that refuses."""
    _, n = _head(_REFUSED, "REFUSED", REFUSED, data)
    return data[_REFUSED.size : _REFUSED.size + n].decode("utf-8", "replace")


def _head(layout, name, kind, data):
    if len(data) < layout.size:
        raise Malformed(f"{len(data)} bytes are no {name} message, which has {layout.size} or more")
    if data[0] != kind:
        raise Malformed(f"a message of type {data[0]} where {name} ({kind}) was expected")
    return layout.unpack_from(data)


def _length(name, data, expected, why):
    if len(data) != expected:
        raise Malformed(f"{name} of {len(data)} bytes; with {why} it has {expected}")
