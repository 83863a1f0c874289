"""Messages between the kernel and the ranks: a JSON header and bytes, with their lengths before them."""

import array
import json
import socket
import struct

# Headers are small, whatever the payloads are: a longer one is not a message.
HEADER_LIMIT = 64 << 20
_LENGTH = struct.Struct("<Q")
_FD = array.array("i").itemsize


def pack(kind, payloads=(), **fields):
    """Return a message as a list of bytes-like parts."""
    views = [memoryview(p).cast("B") for p in payloads]
    header = json.dumps({"kind": kind, "sizes": [v.nbytes for v in views], **fields}).encode()
    return [_LENGTH.pack(len(header)) + header, *views]


def send(sock, kind, payloads=(), fds=(), **fields):
    """Send a message, with descriptors of which the receiver gets copies."""
    parts = pack(kind, payloads, **fields)
    if fds:
        sent = socket.send_fds(sock, [parts[0]], fds)
        parts[0] = parts[0][sent:]
    for part in parts:
        if len(part):
            sock.sendall(part)


class Message(dict):
    """The fields of a message; `payloads` are its bytes."""

    payloads = ()

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class Reader:
    """The messages in the bytes of a socket."""

    def __init__(self, sock):
        self.sock = sock
        self.fds = []  # received descriptors, until the owner takes them
        self._buffer = bytearray()
        self._head = None  # the message whose payloads are not complete yet

    def fill(self, most=1 << 18):
        """Read available bytes; False at the end of the stream. Raises BlockingIOError if there are none."""
        # socket.recv_fds ignores its flags, and a descriptor that is inherited keeps the other end from closing
        data, control, _, _ = self.sock.recvmsg(most, socket.CMSG_SPACE(4 * _FD), socket.MSG_CMSG_CLOEXEC)
        for level, kind, content in control:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(content[: len(content) // _FD * _FD])
                self.fds.extend(fds)
        self._buffer += data
        return bool(data)

    def take(self):
        """Return the next complete message, None if there is none."""
        if self._head is None:
            if len(self._buffer) < _LENGTH.size:
                return None
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > HEADER_LIMIT:
                raise ConnectionError(f"a message header of {length} bytes came: this is no peer of ours")
            if len(self._buffer) < _LENGTH.size + length:
                return None
            self._head = Message(json.loads(self._buffer[_LENGTH.size : _LENGTH.size + length]))
            del self._buffer[: _LENGTH.size + length]
        message, at = self._head, 0
        if len(self._buffer) < sum(message["sizes"]):
            return None
        payloads = []
        for size in message["sizes"]:
            payloads.append(bytes(self._buffer[at : at + size]))
            at += size
        del self._buffer[:at]
        message.payloads, self._head = payloads, None
        return message

    def next(self):
        """Wait for a message and return it, None at the end of the stream."""
        while (message := self.take()) is None:
            try:
                if not self.fill():
                    return None
            except OSError:
                return None
        return message
