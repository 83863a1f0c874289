"""The transfer engine, the counterpart of MORI-IO's IOEngine."""

import atexit
import json
import threading
import time
from contextlib import suppress
from weakref import WeakSet

from .._ext import core, fast
from .buffer import locate
from .constants import Access
from .engine_desc import EngineDesc, MemoryDesc
from .engine_session import Session, transfer, transfer_batch, uid_number
from .engine_status import TransferStatus, deadline, refused, unsuccessful, wait_all
from .errors import Error, check, described, invalid, mismatch, refusal
from .handle import Handle

__all__ = ["Engine"]

_SLICE = 50_000  # microseconds after which signals are checked
_SESSIONS = 4096  # that are kept for read() and write()

_engines: WeakSet = WeakSet()  # that are open


def _at_exit():
    """Close engines before the interpreter frees memory to which peers may be writing."""
    for engine in list(_engines):
        with suppress(Exception):  # a forked child
            engine.close()


atexit.register(_at_exit)


def _name(operation, what, value):
    if not isinstance(value, str):
        raise mismatch(operation, what, "a name", value)
    if "\0" in value:
        raise invalid(operation, f"{what} has a zero byte in it")
    return value


def _signed(value):
    return value - 2**64 if value >= 2**63 else value


class Engine(Handle):
    """Transfers between registered memory of this process and of others, any number of them at a time.

    A transfer is carried out by the engine's own threads: neither side's program takes part in it or needs to run.
    Programs exchange descriptors as bytes over any channel (`desc`, `register_memory`; `register_remote`); `read` and
    `write` return a `TransferStatus` at once.

    `name` is the engine's unique name. `backend` and `device` are as for `Context`; engines that transfer to each other
    have the same back end. The engine listens on `host` (by default the device's address for tcp, else this host only)
    and `port` (0: any free port) for others to connect.

    - `qp_per_transfer`: queue pairs to each other engine, over which the parts of a transfer are spread
    - `post_batch_size`: maximum of work requests posted at a time; -1: no limit
    - `max_send_wr`: maximum of outstanding work requests of a queue pair; more of them wait
    - `poll_cq_mode`: "event" sleeps until a request completes; "polling" spins while any request is outstanding
    - `enable_notification`: whether targets are notified of transfers with a uid
    - `notif_per_qp`: maximum of notifications in flight to this engine on a queue pair
    - `enable_transfer_chunking`: split transfers into parts of `chunk_bytes` bytes, or longer ones so that there are
      at most `max_chunks_per_transfer`
    - `connect_timeout`: seconds that another engine may take to answer

    The options have MORI-IO's names. Errors: `Error` if the engine can't be made.
    """

    def __init__(
        self, name, backend=None, device=None, host=None, port=0, *, qp_per_transfer=1, post_batch_size=-1,
        max_send_wr=256, poll_cq_mode="event", enable_notification=True, notif_per_qp=256,
        enable_transfer_chunking=False, chunk_bytes=65536, max_chunks_per_transfer=64, connect_timeout=5.0,
    ):  # fmt: skip
        operation = "open Engine"
        if not isinstance(poll_cq_mode, str) or poll_cq_mode.lower() not in ("event", "polling"):
            raise invalid(operation, f'poll_cq_mode is {poll_cq_mode!r}; it must be "event" or "polling"')
        options = {"name": _name(operation, "name", name), "polling": poll_cq_mode.lower() == "polling"}
        for key, value in (("backend", backend), ("device", device), ("host", host)):
            options[key] = "" if value is None else _name(operation, key, value)
        numbers = {
            "port": port, "qp_per_transfer": qp_per_transfer, "post_batch_size": post_batch_size,
            "max_send_wr": max_send_wr, "notif_per_qp": notif_per_qp, "chunk_bytes": chunk_bytes,
            "max_chunks_per_transfer": max_chunks_per_transfer,
        }  # fmt: skip
        for key, value in numbers.items():
            options[key] = _whole(operation, key, value)
        for key, value in (
            ("enable_notification", enable_notification),
            ("enable_transfer_chunking", enable_transfer_chunking),
        ):
            if not isinstance(value, bool):
                raise mismatch(operation, key, "True or False", value)
            options[key] = value
        options["connect_timeout"] = _seconds(operation, connect_timeout)
        self._lock = threading.Lock()
        self._held = {}  # the objects that keep registered memory in place, by its number
        self._lingering = []  # deregistered memory that a peer's write may still reach: libfabric can't cancel it
        self._sessions = {}
        self._handle = check(core.RdmaEngineOpen(json.dumps(options)))
        self._desc = _described(core.RdmaEngineInfo(self._handle))
        _engines.add(self)

    @property
    def name(self):
        """The name of the engine."""
        return self._desc.name

    def desc(self):
        """Return the engine's `EngineDesc`, for others to register."""
        return self._desc

    # Others

    def register_remote(self, desc):
        """Register another engine by its `EngineDesc`, or the bytes of it; nothing is connected yet.

        An engine can register itself, too. Errors: `Error` if the other engine has another back end, or if another
        engine of that name is registered already.
        """
        operation = "register_remote"
        if isinstance(desc, (bytes, bytearray, memoryview)):
            desc = EngineDesc.unpack(desc)
        if not isinstance(desc, EngineDesc):
            raise mismatch(operation, "desc", "an EngineDesc", desc)
        check(core.RdmaEngineAdd(self._handle, _told(desc)))

    def deregister_remote(self, name):
        """Deregister another engine: transfers to it fail, and it can't transfer to this one any more."""
        name = _name("deregister_remote", "name", name.name if isinstance(name, EngineDesc) else name)
        code = core.RdmaEngineRemove(self._handle, name)
        self._forget(lambda local, remote: remote.engine == name)
        check(code)

    # Memory

    def register_memory(self, buffer):
        """Register an object's memory and return its `MemoryDesc`.

        The object has the buffer protocol or DLPack on the processor and is contiguous; the engine holds it until it
        is deregistered. Read-only memory can be the source of writes here and of reads by others.
        """
        operation = "register_memory"
        try:
            address, nbytes, holder = locate(buffer, True, operation)
            writable = 1
        except Error as error:
            if error.status != "EACCES":
                raise
            address, nbytes, holder = locate(buffer, False, operation)
            writable = 0
        if nbytes == 0:
            raise invalid(operation, "the buffer is empty", length=0)
        id = check(core.RdmaEngineRegister(self._handle, address, nbytes, writable))
        with self._lock:
            self._held[id] = holder
        told = core.RdmaEngineMemory(self._handle, id)
        if not told:
            raise refusal("EBADF", operation, "the engine was closed meanwhile")
        addr, rkey, access = map(int, told.split())
        return MemoryDesc(self.name, self._desc.id, id, addr, nbytes, rkey, Access(access))

    def deregister_memory(self, desc):
        """Deregister memory; afterwards nothing accesses it any more.

        Transfers in flight that use it end first; those that wait fail. If some do not end within a second, because a
        peer does not answer, its connection is closed.

        Errors: `Error` if the memory is not registered here.
        """
        operation = "deregister_memory"
        if not isinstance(desc, MemoryDesc):
            raise mismatch(operation, "desc", "a MemoryDesc", desc)
        if desc.engine_id != self._desc.id:
            raise refusal("ENOENT", operation, f"this is memory of engine {desc.engine!r}, not of {self.name!r}")
        self._forget(lambda local, remote: local == desc.id)
        code = core.RdmaEngineDeregister(self._handle, desc.id)
        error = described(code) if code < 0 else None
        if error is None or error.status != "EBADF":
            with self._lock:
                holder = self._held.pop(desc.id, None)
            if error is not None and error.status == "EBUSY" and holder is not None:
                fast.retain(holder)
            elif self._desc.backend == "ofi":
                self._lingering.append(holder)
        if error is not None:
            raise error

    # Transfers

    def read(self, local, local_offset, remote, remote_offset, size, uid=None):
        """Read `size` bytes of remote memory into local memory; offsets are in bytes.

        Returns a `TransferStatus`, which also reports errors: an exception is raised only for arguments of the wrong
        type. With a `uid`, the other engine's `pop_inbound` reports that the transfer is done.
        """
        return self._transfer(1, local, local_offset, remote, remote_offset, size, uid)

    def write(self, local, local_offset, remote, remote_offset, size, uid=None):
        """Write `size` bytes of local memory to remote memory; otherwise as `read`."""
        return self._transfer(0, local, local_offset, remote, remote_offset, size, uid)

    def batch_read(self, locals, local_offsets, remotes, remote_offsets, sizes, uids=None):
        """Begin a transfer for each pair of local and remote memory, and return a list of their statuses.

        `locals` and `remotes` are sequences of `MemoryDesc`, `uids` (if given) of uids. The other arguments are
        sequences of the same length; their items are sequences of offsets or sizes in bytes, one for each part.
        """
        return self._batch(1, locals, local_offsets, remotes, remote_offsets, sizes, uids)

    def batch_write(self, locals, local_offsets, remotes, remote_offsets, sizes, uids=None):
        """Begin a transfer for each pair of local and remote memory; otherwise as `batch_read`."""
        return self._batch(0, locals, local_offsets, remotes, remote_offsets, sizes, uids)

    def create_session(self, local, remote):
        """Return a `Session` of a local and a remote `MemoryDesc`.

        Errors: `Error` if one of them is not registered, or the remote's engine is not.
        """
        return Session(self, local, remote, self._new_session(local, remote))

    def allocate_transfer_uid(self):
        """Return a number for a transfer that this engine has not returned before."""
        return check(core.RdmaEngineUID(self._handle))

    def pop_inbound(self, remote_name, uid, timeout=0):
        """Take the notification that a transfer of another engine has been done, with all its data in place.

        Returns a `TransferStatus` that has succeeded, once for each transfer, or None if there is none (yet), or a
        status that has failed if there is no such engine. It waits for `timeout` seconds (None: for ever). For each
        other engine the latest 65536 notifications are kept.
        """
        operation = "pop_inbound"
        name = _name(operation, "remote_name", remote_name)
        number = uid_number(uid)
        end = deadline(timeout, operation)
        while True:
            left = _SLICE if end is None else min(_SLICE, int((end - time.monotonic()) * 1e6))
            code = core.RdmaEngineArrived(self._handle, name, number, max(left, 0))
            if code < 0:
                return refused(described(code), uid)
            if code:
                return TransferStatus(0, None, uid, (0, ""))
            if left <= 0:
                return None

    wait_all = staticmethod(wait_all)

    def close(self):
        """Close the engine: transfers in flight fail, other engines are notified, and memory is deregistered."""
        self._sessions.clear()
        try:
            super().close()
        except Error as error:
            if error.status == "EBUSY":
                for holder in self._held.values():
                    fast.retain(holder)
            raise
        finally:
            self._held.clear()
            self._lingering.clear()

    def _transfer(self, read, local, local_offset, remote, remote_offset, size, uid):
        try:
            session = self._session(local, remote)
        except _Failure as failure:
            return refused(failure.error, uid)
        return transfer(self, session._handle, read, local_offset, remote_offset, size, uid)

    def _batch(self, read, locals, local_offsets, remotes, remote_offsets, sizes, uids):
        columns = [list(column) for column in (locals, local_offsets, remotes, remote_offsets, sizes)]
        uids = [None] * len(columns[0]) if uids is None else list(uids)
        if len({len(uids), *map(len, columns)}) != 1:
            counts = ", ".join(str(len(column)) for column in (*columns, uids))
            text = f"the arguments have different lengths: {counts}"
            return [unsuccessful(11, text)]
        statuses = []
        for local, here, remote, there, size, uid in zip(*columns, uids):
            try:
                session = self._session(local, remote)
            except _Failure as failure:
                statuses.append(refused(failure.error, uid))
                continue
            statuses.append(transfer_batch(self, session._handle, read, here, there, size, uid))
        return statuses

    # Sessions of transfers that don't name one

    def _session(self, local, remote):
        """Return a session, if possible one of those that are kept."""
        if isinstance(local, MemoryDesc) and isinstance(remote, MemoryDesc) and local.engine_id == self._desc.id:
            found = self._sessions.get((local.id, remote))
            if found is not None:
                return found
        try:
            made = Session(self, None, None, self._new_session(local, remote))
        except Error as error:
            if isinstance(error, TypeError):
                raise
            raise _Failure(error) from None
        made.engine = None  # no cycle
        with self._lock:
            if len(self._sessions) >= _SESSIONS:
                self._sessions.pop(next(iter(self._sessions)))
            self._sessions[local.id, remote] = made
        return made

    def _new_session(self, local, remote):
        operation = "create_session"
        for name, value in (("local", local), ("remote", remote)):
            if not isinstance(value, MemoryDesc):
                raise mismatch(operation, name, "a MemoryDesc", value)
        if local.engine_id != self._desc.id:
            text = f"the local memory is registered with engine {local.engine!r}, not with this one, {self.name!r}"
            raise refusal("ENOENT", operation, text)
        numbers = _signed(remote.addr), _signed(remote.rkey), remote.size, int(remote.access)
        engine_id = remote.engine_id.hex()
        return check(core.RdmaEngineSession(self._handle, local.id, remote.engine, engine_id, *numbers))

    def _forget(self, which):
        with self._lock:
            gone = [key for key in self._sessions if which(*key)]
            for key in gone:
                del self._sessions[key]

    def __repr__(self):
        where = f"{self._desc.backend} {self._desc.device} at {self._desc.address}"
        return f"<Engine {self.name!r}: {where}{' closed' if self.closed else ''}>"


class _Failure(Exception):
    """The reason why there is no session for a transfer."""

    def __init__(self, error):
        super().__init__(error)
        self.error = error


def _whole(operation, name, value):
    try:
        return value.__index__()
    except (AttributeError, TypeError):
        raise mismatch(operation, name, "an integer", value) from None


def _seconds(operation, value):
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        raise mismatch(operation, "connect_timeout", "a number of seconds", value) from None
    if not 0 < seconds <= 1e6:
        raise invalid(operation, f"connect_timeout is {value}; it must be more than 0 and at most a million seconds")
    return seconds


def _described(told):
    if not told:
        raise refusal("EBADF", "desc", "the engine is closed")
    told = json.loads(told)
    told["id"], told["secret"] = bytes.fromhex(told["id"]), bytes.fromhex(told["secret"])
    return EngineDesc(**told)


def _told(desc):
    facts = {name: getattr(desc, name) for name in desc.__slots__}
    facts["id"], facts["secret"] = desc.id.hex(), desc.secret.hex()
    return json.dumps(facts)
