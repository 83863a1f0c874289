"""The link of both sides: a queue pair with message buffers, and the socket that shows that the peer lives."""

import socket
import time

from gormapy import rdma

from . import wire
from .address import watch

RECEIVES = 2
BATCH = 64  # writes that are posted at once
_SLICE = 0.05  # seconds between checks of the socket


class Gone(Exception):
    """The other side has ended."""


class Link:
    """A queue pair and buffers for messages: two to receive, one to send.

    It is made in two steps, because its `info` is needed to find the peer: `connect` is the second.
    """

    def __init__(self, pd, stopped=lambda: False):
        context = pd.context
        self.pd = pd
        self.sends, self.receives = context.create_cq(BATCH + 2), context.create_cq(RECEIVES)
        self.qp = pd.create_qp(self.sends, self.receives, max_send_wr=BATCH + 2, max_recv_wr=RECEIVES)
        self._out = pd.register(wire.MESSAGE)
        self._in = [pd.register(wire.MESSAGE) for _ in range(RECEIVES)]
        for i in range(RECEIVES):
            self._post(i)
        self._stopped = stopped
        self.sock = None

    def info(self):
        """Return the connection info for the peer."""
        return self.qp.info()

    def connect(self, sock, info):
        """Connect the queue pair; the socket stays open as a sign of life."""
        self.sock = sock
        self.qp.connect(info)

    def send(self, data):
        """Send a message, and wait until the peer has it."""
        self._out.write(data)
        self.qp.post_send(self._out, length=len(data))
        self.wait(self.sends)

    def receive(self, timeout=None):
        """Wait for a message, or a write with immediate data; return (message, None) or (b"", immediate data)."""
        (completion,) = self.wait(self.receives, timeout=timeout)
        if completion.opcode == rdma.WCOpcode.IBV_WC_RECV_RDMA_WITH_IMM:
            found = b"", completion.imm_data
        else:
            found = self._in[completion.wr_id].read(completion.byte_len), None
        self._post(completion.wr_id)
        return found

    def wait(self, cq, n=1, timeout=None):
        """Wait for completions as long as the peer lives."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return cq.wait(_SLICE, n)
            except rdma.TimedOut:
                if self._stopped():
                    raise Gone("stopped") from None
                if not watch(self.sock):
                    return self._last(cq, n)
                if end is not None and time.monotonic() > end:
                    raise

    def _last(self, cq, n):
        """Return the completions that arrived before the peer left."""
        try:
            return cq.wait(0.0, n)
        except rdma.TimedOut:
            raise Gone("it has left") from None

    def linger(self, timeout=2.0):
        """Announce that there are no more requests, and wait for a while until the peer has closed its end."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
            self.sock.settimeout(timeout)
            self.sock.recv(1)
        except OSError:
            pass  # it is gone, or does not answer

    def _post(self, i):
        self.qp.post_recv(self._in[i], wr_id=i)

    def close(self):
        """Free everything."""
        if self.sock:
            self.sock.close()
        for made in (self.qp, *self._in, self._out, self.receives, self.sends):
            made.close()


def about(context):
    """Return the line about the device."""
    device = context.device
    rate = max((port.gbps for port in device.ports), default=0)
    link = f"{rate:.0f}Gbps" if rate else "unknown"
    return f"domain: {device.name:>14}, nic: {device.name:>10}, fabric: {device.backend}, link: {link}"
