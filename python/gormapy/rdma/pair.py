"""Queue pairs."""

from collections import deque

from .._ext import core, fast
from .completion import CompletionQueue
from .constants import QPState
from .errors import check, described, integer, invalid, mismatch, refusal
from .handle import Handle
from .region import ProtectionDomain
from .scratch import Scratch
from .work import RECV_WR, SEND_WR, Posting

__all__ = ["Batch", "QueuePair"]

_INFO = 1024
_send = Scratch(SEND_WR.size)
_recv = Scratch(RECV_WR.size)
_info = Scratch(_INFO)


class QueuePair(Handle, Posting):
    """A queue for work requests and one for receives, connected to those of a peer (RC: reliable, in order).

    It is made in state INIT; `connect` brings it to RTS. `max_send_wr` and `max_recv_wr` are how many requests may
    be outstanding, `max_inline` how many bytes can be sent inline. `recv_cq` is by default the same as `send_cq`.

    After a request has failed, or the peer is gone, the queue pair is in state ERR: outstanding requests complete
    with IBV_WC_WR_FLUSH_ERR, posting raises `Error`, and `reset` brings it back to INIT.
    """

    def __init__(self, pd, send_cq, recv_cq=None, *, max_send_wr=128, max_recv_wr=128, max_inline=64):
        operation = "create QueuePair"
        if recv_cq is None:
            recv_cq = send_cq
        if not isinstance(pd, ProtectionDomain):
            raise mismatch(operation, "pd", "a ProtectionDomain", pd)
        for name, cq in (("send_cq", send_cq), ("recv_cq", recv_cq)):
            if not isinstance(cq, CompletionQueue):
                raise mismatch(operation, name, "a CompletionQueue", cq)
        max_send_wr = integer(operation, "max_send_wr", max_send_wr, 1, 2**31)
        max_recv_wr = integer(operation, "max_recv_wr", max_recv_wr, 1, 2**31)
        max_inline = integer(operation, "max_inline", max_inline, 0, 2**31)
        self._handle = check(
            core.RdmaCreateQP(pd._handle, send_cq._handle, recv_cq._handle, max_send_wr, max_recv_wr, max_inline)
        )
        self.pd = pd
        self.send_cq = send_cq
        self.recv_cq = recv_cq
        self.max_send_wr = max_send_wr
        self.max_recv_wr = max_recv_wr
        self.max_inline = max_inline
        # The regions of the latest requests that were posted: those that are outstanding are among them, and their
        # regions must not be collected. One that is refused is not noted, since it would push another one out.
        self._sends = deque(maxlen=max_send_wr)
        self._recvs = deque(maxlen=max_recv_wr)

    @property
    def qp_num(self):
        """The number of the queue pair on its device."""
        told = core.RdmaPairInfo(self._handle)
        if not told:
            raise refusal("EBADF", "query QueuePair", "this QueuePair is closed")
        return int(told.split()[0])

    @property
    def state(self):
        """The state, a `QPState`."""
        return QPState(check(core.RdmaPairState(self._handle)))

    def info(self):
        """Return the connection info for the peer's `connect`: addresses, the number of this queue pair, and a secret.

        Any process that has these bytes can connect to this queue pair. They are valid until `reset`.
        """
        buffer = _info.take()
        try:
            n = check(core.RdmaPairExchange(self._handle, buffer[1], _INFO))
            return bytes(buffer[0][:n])
        finally:
            _info.give(buffer)

    def connect(self, info=None, *, comm=None, rank=None, tag=0, timeout=10.0, rnr_retry=7, rnr_timer=0.01):
        """Connect to a peer: to the queue pair with this `info`, or to one of a rank that connects to this one.

        With `comm` and `rank` both ranks call it, with the same `tag`, and the infos are exchanged by messages.
        Otherwise it returns at once; requests wait until the peer has connected, `timeout` seconds at most, after
        which they fail with IBV_WC_RETRY_EXC_ERR. `rnr_retry` is how often a message is sent again for which the
        peer has posted no receive (7: for ever), `rnr_timer` the seconds in between.

        Errors: `Error` if the info is damaged or of another back end, or the state is not INIT.
        """
        timeout = _microseconds("timeout", timeout)
        rnr_timer = _microseconds("rnr_timer", rnr_timer)
        rnr_retry = integer("connect", "rnr_retry", rnr_retry, 0, 7)
        if (info is None) == (comm is None):
            raise mismatch("connect", "one of info and comm", "given", None)
        if comm is not None:
            rank = integer("connect", "rank", rank, 0, 2**31 - 1)
            info = comm.sendrecv(self.info(), dest=rank, sendtag=tag, source=rank, recvtag=tag)
        try:
            memory = memoryview(info)
        except TypeError:
            raise mismatch("connect", "info", "the bytes that QueuePair.info() of the peer returned", info) from None
        with memory:
            data = bytes(memory)
        if not data:
            raise invalid("connect", "info is empty", info=0)
        address, nbytes, _, _, _, holder = fast.buffer_info(data, False)
        check(core.RdmaPairConnect(self._handle, address, nbytes, timeout, rnr_retry, rnr_timer))
        del holder

    def reset(self):
        """Break the connection, drop all posted requests without completions, and return to state INIT."""
        check(core.RdmaPairReset(self._handle))
        self._sends.clear()
        self._recvs.clear()

    def batch(self):
        """Return a context manager with the same posting methods, which posts all at once at its end.

        ``with qp.batch() as batch: batch.post_write(...); batch.post_write(...)``: one call for any number, and
        on a device one doorbell. If one of them is refused, none is posted; receives are posted first.
        """
        return Batch(self)

    def close(self):
        """Destroy the queue pair; it has no completions from then on."""
        try:
            super().close()
        finally:
            for held in ("_sends", "_recvs"):
                getattr(self, held, deque()).clear()

    def _post_send(self, packed, local):
        buffer = _send.take()
        buffer[0][:] = packed
        code = core.RdmaPostSend(self._handle, buffer[1], 1)
        _send.give(buffer)
        if code < 0:
            raise described(code)
        self._sends.append(local)

    def _post_recv(self, packed, local):
        buffer = _recv.take()
        buffer[0][:] = packed
        code = core.RdmaPostRecv(self._handle, buffer[1], 1)
        _recv.give(buffer)
        if code < 0:
            raise described(code)
        self._recvs.append(local)

    def __repr__(self):
        if self.closed:
            return "<QueuePair closed>"
        return f"<QueuePair {self.qp_num} of {self.pd.context.name}, {self.state.name}>"


class Batch(Posting):
    """Work requests that are posted together: see `QueuePair.batch`."""

    def __init__(self, pair):
        self._pair = pair
        self._sends = []
        self._recvs = []

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if kind is None:
            self.post()

    def __len__(self):
        return len(self._sends) + len(self._recvs)

    def post(self):
        """Post the collected requests, and start with an empty batch."""
        sends, recvs, self._sends, self._recvs = self._sends, self._recvs, [], []
        pair = self._pair
        for requests, held, call in (
            (recvs, pair._recvs, core.RdmaPostRecv),
            (sends, pair._sends, core.RdmaPostSend),
        ):
            if not requests:
                continue
            data = b"".join(packed for packed, _ in requests)
            address, _, _, _, _, holder = fast.buffer_info(data, False)
            code = call(pair._handle, address, len(requests))
            del holder
            error = described(code) if code < 0 else None
            posted = len(requests)
            if error is not None:  # the device may have accepted some of the requests
                posted = error.sizes.get("posted", 0) if "requests" in error.sizes else 0
            held.extend(local for _, local in requests[:posted])
            if error is not None:
                raise error

    def _post_send(self, packed, local):
        self._sends.append((packed, local))

    def _post_recv(self, packed, local):
        self._recvs.append((packed, local))


def _microseconds(name, value):
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        raise mismatch("connect", name, "a number of seconds", value) from None
    if not 0 < seconds <= 1e6:
        raise invalid("connect", f"{name} is {value}; it must be more than 0 and at most a million seconds")
    return max(1, int(seconds * 1e6))
