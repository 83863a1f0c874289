"""Devices and open contexts."""

import json
import os
import socket
from contextlib import suppress
from dataclasses import dataclass, field

from .._ext import core, fast
from .errors import check, invalid, mismatch
from .handle import Handle

__all__ = ["Context", "Device", "Port", "backends", "devices"]


def _local(descriptor):
    """Return the family, the type, the host (or path) and the port of a socket's own address, and whether it listens.

    Return None if the descriptor is no socket.
    """
    with suppress(OSError):
        it = socket.socket(fileno=descriptor)
        try:
            name = it.getsockname()
            host, port = name[:2] if isinstance(name, tuple) else (name, 0)
            return (it.family, it.type, host, port), it.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        finally:
            it.detach()
    return None


def _in_child():
    """Close the core's sockets, which a forked child can't use: while it holds them, peers do not see the parent end.

    The core makes none while the process forks (gocore/rdmaapi/sockets/fork.go), but it may have accepted some that it
    has not listed yet: those have the address of a socket that listens, or its port if that listens at all addresses.
    """
    known = set(fast.sockets_before_fork())
    if not known:
        return
    with os.scandir("/proc/self/fd") as entries:
        found = {descriptor: _local(descriptor) for descriptor in [int(entry.name) for entry in entries]}
    accepting = {found[descriptor][0] for descriptor in known if found.get(descriptor) and found[descriptor][1]}
    for descriptor, local in found.items():
        if local:
            family, kind, host, port = local[0]
            everywhere = (family, kind, "::" if family == socket.AF_INET6 else "0.0.0.0", port)
            if descriptor in known or (local[0] in accepting and host) or everywhere in accepting:
                with suppress(OSError):
                    os.close(descriptor)


os.register_at_fork(after_in_child=_in_child)


@dataclass(frozen=True)
class Port:
    """A port of a device, as it was when it was queried.

    `mtu` and `max_msg` are in bytes, `gbps` is the rate in Gbit/s (0 if it is not known), `addresses` are GIDs
    or their equivalent.
    """

    num: int
    state: str
    link: str
    mtu: int
    max_msg: int
    gbps: float
    addresses: tuple


@dataclass(frozen=True)
class Device:
    """A device that `Context` can open: its name, back end, limits and ports.

    `limits` has the names of ibv_device_attr: max_qp, max_qp_wr, max_cqe, max_mr_size (bytes) and so on; 0
    means that no limit is known. `atomics` and `immediate` in it are whether the device supports them.
    """

    name: str
    backend: str
    detail: str
    guid: str
    limits: dict = field(hash=False)
    ports: tuple = ()


def _device(facts):
    ports = tuple(Port(**{**port, "addresses": tuple(port["addresses"] or ())}) for port in facts["ports"] or ())
    return Device(facts["name"], facts["backend"], facts["detail"], facts["guid"], facts["limits"], ports)


def backends():
    """Return a dictionary of all back ends: the devices of each, or a sentence that says why it has none."""
    found = {}
    for told in json.loads(core.RdmaDevices()):
        found[told["backend"]] = told["problem"] or [_device(facts) for facts in told["devices"]]
    return found


def devices(backend=None):
    """Return the devices of all back ends, or of one of "verbs", "ofi", "tcp", "shm".

    `backends` says why a back end has no devices. Errors: `Error` if there is no such back end.
    """
    found = backends()
    if backend is not None and backend not in found:
        raise invalid("devices", f"there is no back end {backend!r}; there are: {', '.join(found)}")
    return [
        device
        for name, listed in found.items()
        if backend in (None, name) and not isinstance(listed, str)
        for device in listed
    ]


class Context(Handle):
    """Open device.

    `device` is the name of one of `devices` ("tcp0", "shm0", "rxe0"), by default of the first device with an active
    port; `backend` is one of "verbs", "ofi", "tcp", "shm", by default the first that has the device. Two queue pairs
    can be connected if their devices are of the same back end and reach each other.

    Errors: `Error` with status ENODEV if there is no such device; its message lists the devices.
    """

    def __init__(self, device=None, backend=None):
        for name, value in (("device", device), ("backend", backend)):
            if value is not None and not isinstance(value, str):
                raise mismatch("open device", name, "a name", value)
            if value is not None and "\0" in value:
                raise invalid("open device", f"{name} has a zero byte in it")
        self._handle = check(core.RdmaOpen(backend or "", device or ""))
        self._device = _device(json.loads(core.RdmaContextInfo(self._handle)))

    @property
    def device(self):
        """The device, as it was when it was opened."""
        return self._device

    @property
    def name(self):
        """The name of the device."""
        return self._device.name

    def alloc_pd(self):
        """Return a new protection domain."""
        from .region import ProtectionDomain

        return ProtectionDomain(self)

    def create_cq(self, depth=256):
        """Return a new completion queue with room for `depth` completions."""
        from .completion import CompletionQueue

        return CompletionQueue(self, depth)

    def query_device(self):
        """Return the limits of the device, under the names of ibv_device_attr."""
        return dict(self._device.limits)

    def query_port(self, port=1):
        """Return a port of the device."""
        for found in self._device.ports:
            if found.num == port:
                return found
        raise invalid("query_port", f"there is no port {port}; there are: {[p.num for p in self._device.ports]}")

    def __repr__(self):
        return f"<Context {self.name} ({self._device.backend}){' closed' if self.closed else ''}>"
