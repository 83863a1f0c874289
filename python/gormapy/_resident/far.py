"""Connections between the kernel and ranks on other hosts, by TCP.

A rank opens four to the kernel: for messages ("m"), where its standard output ("o") and error ("e") go, and one that
nobody writes to, whose end is that of the kernel ("l"). Before that it finds the address at which the kernel answers,
by connections that end after the handshake ("p").

Each begins with a handshake, in which both sides prove that they know the session's secret, and neither sends it. K
and R are 32 random bytes, HMAC is HMAC-SHA256 with the secret:

    kernel: K
    rank:   R, what the connection is for (1 byte), a random name of the rank (16 bytes), HMAC("rank", K, R, ...)
    kernel: HMAC("kernel", K, R, ...)

The ranks run what the kernel says: so each message carries a code that proves its sender and its place in the order
(`link.Seal`). What ranks print does not. Nothing is encrypted.

The rank gets addresses and secret in its environment, from mpiexec and the launcher that it hands over to.
"""

import contextlib
import hashlib
import hmac
import os
import socket
import struct
import termios
import threading
import time

from . import link

_NONCE, _NAME, _PROOF = 32, 16, 32
_ANSWER = _NONCE + 1 + _NAME + _PROOF
_SHAKE_WITHIN = 10.0
_MOST_SHAKING = 256


def _hmac(secret, *parts):
    return hmac.new(secret, b"\0".join((b"gormapy magic", parts[0])) + b"".join(parts[1:]), hashlib.sha256).digest()


def _seals(secret, said):
    """Return the seals of the messages of a rank and of the kernel."""
    return link.Seal(_hmac(secret, b"of rank", *said)), link.Seal(_hmac(secret, b"of kernel", *said))


def _keep_alive(sock):
    """Notice that the other host has vanished."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 5), (socket.TCP_KEEPINTVL, 2), (socket.TCP_KEEPCNT, 5)):
        sock.setsockopt(socket.IPPROTO_TCP, option, value)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def allocated(environ):
    """Return whether mpiexec runs jobs on several hosts here: as gocore/launch/handover.go does."""
    if environ.get("SLURM_JOB_ID") and environ.get("SLURM_STEP_ID", "") in ("", "4294967291", "4294967290"):
        return environ.get("SLURM_JOB_NUM_NODES", environ.get("SLURM_NNODES", "1")) not in ("", "1")
    if environ.get("FLUX_URI") and not environ.get("FLUX_TASK_RANK"):
        return environ.get("FLUX_JOB_NNODES", "1") not in ("", "1")
    return False


def addresses():
    """Return the addresses of this host, the loopback interface's last."""
    found = []
    with contextlib.suppress(OSError), open("/proc/net/fib_trie") as file:
        last = ""
        for line in file:
            words = line.split()
            if words[:1] == ["|--"]:
                last = words[1]
            elif "host" in words and "LOCAL" in words and last not in found:
                found.append(last)
    with contextlib.suppress(OSError), open("/proc/net/if_inet6") as file:
        for line in file:
            address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(line.split()[0]))
            if not address.startswith("fe80"):
                found.append(address)
    return sorted(found or ["127.0.0.1"], key=lambda a: a.startswith("127.") or a == "::1")


# The kernel's side
# -----------------


class Door:
    """Where ranks connect to the kernel."""

    def __init__(self, secret):
        self.secret = secret
        try:
            self.listener = socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=256)
        except (OSError, ValueError):  # a host without IPv6
            self.listener = socket.create_server(("", 0), backlog=256)
        self.listener.setblocking(False)
        port = self.listener.getsockname()[1]
        self.address = ",".join(f"{a}/{port}" for a in addresses())
        self.shaking = []
        self._parts = {}  # connections by the name of their rank and what they are for

    def accept(self):
        """Accept a connection and return it, None if there is none."""
        try:
            sock, _ = self.listener.accept()
        except OSError:
            return None
        sock.setblocking(False)
        one = _Shaking(sock)
        self.shaking.append(one)
        try:
            sock.send(one.nonce)
        except OSError:
            self.drop(one)
            return None
        return one

    def surplus(self):
        """Return connections that are to be dropped: too old, or the oldest of too many."""
        old = [one for one in self.shaking if time.monotonic() - one.begun > _SHAKE_WITHIN]
        return old or self.shaking[: len(self.shaking) >= _MOST_SHAKING]

    def drop(self, one):
        """End a connection that has not proved anything."""
        self.shaking.remove(one)
        one.sock.close()

    def take(self, one):
        """Take bytes of a handshake; return whether it is over, or for the last connection of a rank its reader."""
        try:
            data = one.sock.recv(_ANSWER - len(one.got))
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        one.got += data
        if data and len(one.got) < _ANSWER:
            return False
        self.shaking.remove(one)
        said, proof = (one.nonce, one.got[: _ANSWER - _PROOF]), one.got[_ANSWER - _PROOF :]
        if not data or not hmac.compare_digest(proof, _hmac(self.secret, b"rank", *said)):
            one.sock.close()
            return True
        kind, name = one.got[_NONCE : _NONCE + 1], one.got[_NONCE + 1 : _NONCE + 1 + _NAME]
        try:
            one.sock.send(_hmac(self.secret, b"kernel", *said))
        except OSError:
            kind = b"p"
        parts = self._parts.setdefault(name, {})
        if kind not in (b"m", b"o", b"e", b"l") or kind in parts:
            one.sock.close()
            return True
        _keep_alive(one.sock)
        parts[kind] = one.sock
        if kind == b"m":
            parts["seals"] = _seals(self.secret, said)
        if len(parts) < 5:
            return True
        reader = link.Reader(parts[b"m"], *parts["seals"])
        reader.fds = [parts[b"o"].detach(), parts[b"e"].detach()]
        reader.life = parts[b"l"]
        del self._parts[name]
        return reader

    def close(self):
        """End listening, and the connections that belong to no rank yet."""
        self.listener.close()
        for one in list(self.shaking):
            self.drop(one)
        for parts in self._parts.values():
            for sock in parts.values():
                if isinstance(sock, socket.socket):
                    sock.close()
        self._parts.clear()


class _Shaking:
    """A connection whose handshake is not over."""

    def __init__(self, sock):
        self.sock, self.nonce, self.got = sock, os.urandom(_NONCE), b""
        self.begun = time.monotonic()


# The rank's side
# ---------------


def _receive(sock, n):
    data = b""
    while len(data) < n:
        more = sock.recv(n - len(data))
        if not more:
            raise ConnectionError("the other side has ended the handshake")
        data += more
    return data


def _open(address, kind, name, secret):
    """Open a connection to the kernel; return its socket and the seals of its messages."""
    host, _, port = address.rpartition("/")
    sock = socket.create_connection((host, int(port)), timeout=_SHAKE_WITHIN)
    try:
        said = [_receive(sock, _NONCE), os.urandom(_NONCE) + kind + name]
        sock.sendall(said[1] + _hmac(secret, b"rank", *said))
        if not hmac.compare_digest(_receive(sock, _PROOF), _hmac(secret, b"kernel", *said)):
            raise ConnectionError("it could not prove that it knows the secret of this session")
        _keep_alive(sock)
        sock.settimeout(None)
        return sock, _seals(secret, said)
    except BaseException:
        sock.close()
        raise


def connect(text, secret):
    """Connect to the kernel; return a reader of its messages and the sockets for output, errors and its end."""
    name, found, ready = os.urandom(_NAME), [], threading.Event()
    errors = []

    def attempt(address):
        try:
            _open(address, b"p", name, secret)[0].close()
            found.append(address)
            ready.set()
        except (OSError, ValueError) as error:
            errors.append(f"{address.replace('/', ' port ')}: {error}")
            if len(errors) == len(choices):
                ready.set()

    choices = text.split(",")
    for address in choices:
        threading.Thread(target=attempt, args=(address,), daemon=True).start()
    ready.wait(_SHAKE_WITHIN)
    if not found:
        why = "; ".join(errors) or "no answer"
        raise SystemExit(f"{socket.gethostname()} does not reach the notebook's kernel: {why}")
    sock, (out, into) = _open(found[0], b"m", name, secret)
    others = [_open(found[0], kind, name, secret)[0] for kind in (b"o", b"e", b"l")]
    return link.Reader(sock, into, out), others


def passed(fd, within=10.0):
    """Wait until the other host has what was written to a socket."""
    import fcntl

    end = time.monotonic() + within
    with contextlib.suppress(OSError):  # no socket
        while struct.unpack("i", fcntl.ioctl(fd, termios.TIOCOUTQ, b"\0" * 4))[0] and time.monotonic() < end:
            time.sleep(0.0005)
