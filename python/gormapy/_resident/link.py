"""Messages between the kernel and the ranks: a JSON header and bytes, with their lengths before them."""

import array
import hashlib
import hmac
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


class Seal:
    """Codes that prove who sent the parts of messages, and in which order: for connections over a network."""

    BYTES = 32

    def __init__(self, key):
        self.key, self.count = key, 0

    def next(self, *parts):
        """Return the code of the next part, which may consist of several."""
        code = hmac.new(self.key, _LENGTH.pack(self.count), hashlib.sha256)
        for part in parts:
            code.update(part)
        self.count += 1
        return code.digest()


def send(sock, kind, payloads=(), fds=(), seal=None, **fields):
    """Send a message, with descriptors of which the receiver gets copies."""
    parts = pack(kind, payloads, **fields)
    if seal is not None:  # the header and the payloads have a code each
        parts = [parts[0] + seal.next(parts[0]), *parts[1:], seal.next(*parts[1:])]
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

    def __init__(self, sock, seal=None, outgoing=None):
        self.sock = sock
        self.seal = seal  # of the messages that come, None if they have no codes
        self.outgoing = outgoing  # of those that are sent
        self.life = None  # a socket whose end is that of the kernel, of a rank on another host
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
        code = Seal.BYTES if self.seal else 0
        if self._head is None:
            if len(self._buffer) < _LENGTH.size:
                return None
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > HEADER_LIMIT:
                raise ConnectionError(f"a message header of {length} bytes came: this is no peer of ours")
            if len(self._buffer) < _LENGTH.size + length + code:
                return None
            self._check(_LENGTH.size + length)
            self._head = Message(json.loads(self._buffer[_LENGTH.size : _LENGTH.size + length]))
            del self._buffer[: _LENGTH.size + length + code]
        message, at = self._head, 0
        if len(self._buffer) < sum(message["sizes"]) + code:
            return None
        self._check(sum(message["sizes"]))
        payloads = []
        for size in message["sizes"]:
            payloads.append(bytes(self._buffer[at : at + size]))
            at += size
        del self._buffer[: at + code]
        message.payloads, self._head = payloads, None
        return message

    def close(self):
        """Close the sockets."""
        self.sock.close()
        if self.life is not None:
            self.life.close()

    def _check(self, n):
        """Check the code after the first n bytes."""
        if self.seal is None:
            return
        view = memoryview(self._buffer)
        good = hmac.compare_digest(self.seal.next(view[:n]), view[n : n + Seal.BYTES])
        view.release()
        if not good:
            raise ConnectionError("a message came that the other side has not sent")

    def next(self):
        """Wait for a message and return it, None at the end of the stream."""
        try:
            while (message := self.take()) is None:
                if not self.fill():
                    return None
        except (OSError, ValueError):  # also a message that the other side has not sent
            return None
        return message
