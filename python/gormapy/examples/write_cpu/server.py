"""The server: it writes random data into the memory of clients."""

import secrets
import signal
import socket
import sys
import threading
from contextlib import suppress

import numpy as np

from gormapy import rdma
from gormapy.mt19937 import MT19937_64

from . import address, wire
from .link import BATCH, Gone, Link, about

_LOOK = 0.2  # seconds between checks whether to stop
_BACKLOG = 64


class Buffers:
    """Two registered regions, into which a request's data is made."""

    def __init__(self, pd):
        self.arrays = [np.zeros(wire.REGION, np.uint8) for _ in range(2)]
        self.regions = [pd.register(array, rdma.Access.LOCAL_WRITE) for array in self.arrays]

    def of(self, i):
        """Return the number of the buffer for a memory region of the client: the first, and one for all others."""
        return min(i, 1)


class Server:
    """A server: `run` serves clients, each by a thread, `stop` ends it."""

    def __init__(self, context, host="127.0.0.1", most=64, debug=True):
        self.context = context
        self.debug = debug
        self.served = self.failed = self._admitted = 0
        self._clients = None
        self._pd = context.alloc_pd()
        self._spare = [Buffers(self._pd)]
        self._places = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._threads = {}  # and their sockets
        self._stopping = threading.Event()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=_BACKLOG)
        self._listener.settimeout(_LOOK)
        port = self._listener.getsockname()[1]
        self.address = address.Address(context.device.backend, host, port, secrets.token_bytes(16))

    def run(self, clients=None):
        """Serve clients until `stop` is called, or a number of them have been served."""
        self._clients = clients
        self.say("------")
        while not self._stopping.is_set() and (clients is None or self.served < clients):
            if not self._places.acquire(timeout=_LOOK):
                continue
            try:
                sock, peer = self._listener.accept()
            except OSError:  # time is up, or the client was gone at once
                self._places.release()
                continue
            thread = threading.Thread(target=self._client, args=(sock, f"{peer[0]} port {peer[1]}"), daemon=True)
            with self._lock:
                self._threads[thread] = sock
            thread.start()

    def interrupt(self, *_):
        """Let `run` return soon. It is a signal handler, as an exception anywhere is hard to clear up after.

        The next Ctrl-C does what it always does.
        """
        self._stopping.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def stop(self):
        """End all transfers, and free everything."""
        self._stopping.set()
        self._listener.close()
        with self._lock:
            threads = dict(self._threads)
        for thread, sock in threads.items():
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            thread.join()
        self.context.close()

    @property
    def interrupted(self):
        """Whether `interrupt` was called."""
        return self._stopping.is_set()

    def say(self, *lines):
        """Print lines that belong together."""
        with self._lock:
            sys.stdout.write("".join(line + "\n" for line in lines))
            sys.stdout.flush()

    def _client(self, sock, name):
        try:
            with sock:
                self._introduced(sock, name)
        finally:
            with self._lock:
                del self._threads[threading.current_thread()]
            self._places.release()

    def _introduced(self, sock, name):
        """Serve a connection if it is a client's; an error ends only this connection."""
        try:
            info = address.welcome(sock, self.address.token)
        except (OSError, address.Refused) as error:
            self.say(f"ERROR: {name} is no client: {error}")
            with suppress(OSError):
                address.answer(sock, refusal=f"{error}")
            return
        with self._lock:
            self._admitted += 1
            late = self._clients is not None and self._admitted > self._clients
        if late:
            with suppress(OSError):
                address.answer(sock, refusal=f"it serves {self._clients} clients, and no more")
            return
        link, failure = None, None
        try:
            link = Link(self._pd, self._stopping.is_set)
            link.connect(sock, info)
            address.answer(sock, link.info())
            Session(self, link, info).serve()
        except Gone as error:
            failure = error
        except (OSError, rdma.Error, wire.Malformed, address.Refused) as error:
            failure = error
            self._refuse(sock, link, str(error))
        finally:
            if link:
                try:
                    link.close()
                except rdma.Error as error:  # a client that is stopped, and may write to this memory when it continues
                    failure = failure or error
            with self._lock:
                self.served += 1
                self.failed += failure is not None
        if failure:
            self.say(f"ERROR: client {name}: {failure}")
        self.say("------")

    def _refuse(self, sock, link, text):
        """Send the client a refusal, by a message or by the socket."""
        with suppress(OSError, rdma.Error, Gone, address.Refused):  # it may have ended, or not read
            if link and link.qp.state == rdma.QPState.RTS:
                link.send(wire.pack_refused(text))
                link.linger()
            else:
                address.answer(sock, refusal=text)

    def buffers(self):
        """Take a pair of buffers; give it back by `spare`. There are as many as clients were served at once."""
        with self._lock:
            if self._spare:
                return self._spare.pop()
        return Buffers(self._pd)

    def spare(self, buffers):
        """Give a pair of buffers back."""
        with self._lock:
            self._spare.append(buffers)


class Session:
    """The session of one client: a CONNECT, and any number of RANDOMFILL."""

    def __init__(self, server, link, info):
        self._server = server
        self._link = link
        self._info = info
        self._connect = None

    def serve(self):
        """Serve until the client leaves; raise `Gone` if it leaves before it has asked for anything."""
        data, _ = self._link.receive()
        self._connect = self._connected(wire.Connect.unpack(data))
        requests = 0
        while True:
            try:
                data, _ = self._link.receive()
            except Gone as error:
                if requests and str(error) != "stopped":
                    return
                raise
            self._fill(wire.RandomFill.unpack(data))
            requests += 1

    def _connected(self, connect):
        if connect.client_addr != wire.client_addr(self._info):
            raise wire.Malformed("CONNECT with the address of another client")
        regions = [
            f"  MR[{i}]: addr={region.addr:#014x} size={region.size} rkey={region.rkey:#018x}"
            for i, region in enumerate(connect.regions)
        ]
        self._server.say("Received CONNECT message from client:", f"  addr: {connect.client_addr.hex()}", *regions)
        return connect

    def _fill(self, request):
        """Make the data, write it, and notify the client when it has arrived."""
        say, debug = self._server.say, self._server.debug
        regions = self._connect.regions
        told = [
            "Received RandomFill request from client:",
            f"  remote_context: {request.remote_context:#010x}",
            f"  seed: {request.seed:#018x}",
            f"  page_size: {request.page_size}",
            f"  num_pages: {len(request.pages)}",
        ]
        say(*told, *(plan(request, regions) if debug else ()))
        outside = request.outside(regions)
        if outside:
            i, offset = outside
            size, end = regions[i].size, offset + request.page_size
            say(
                f"ERROR: Write would exceed MR[{i}] boundary!",
                f"  remote_offset({offset}) + page_size({request.page_size}) = {end} > mr_size({size})",
            )
            raise wire.Malformed(f"a page of {request.page_size} bytes at {offset} exceeds MR[{i}] of {size} bytes")
        buffers = self._server.buffers()
        try:
            for i, array in enumerate(buffers.arrays):
                MT19937_64((request.seed + i) % 2**64).fill(array[: request.nbytes])
            say("Generating random data..Random Data Generated")
            self._write(request, buffers)
        finally:
            self._server.spare(buffers)
        # Every write has completed, so the data has arrived: only now may the client be notified. Immediate data on the
        # last write would suffice if writes became visible in their order, which not every network promises.
        self._link.qp.post_write_imm(None, None, request.remote_context)
        self._link.wait(self._link.sends)
        say("Finished RDMA WRITE to the remote CPU memory.")

    def _write(self, request, buffers):
        """Write all pages of all regions, a batch at a time."""
        link, size, lines = self._link, request.page_size, []
        writes = [(i, j) for i in range(len(self._connect.regions)) for j in range(len(request.pages))]
        for begin in range(0, len(writes), BATCH):
            some = writes[begin : begin + BATCH]
            with link.qp.batch() as batch:
                for i, j in some:
                    region, offset = self._connect.regions[i], request.pages[j] * size
                    lines += written(i, j, request, region) if self._server.debug else ()
                    batch.post_write(
                        buffers.regions[buffers.of(i)],
                        rdma.RemoteMemory(region.addr, region.rkey, region.size),
                        local_offset=j * size,
                        remote_offset=offset,
                        length=size,
                    )
            link.wait(link.sends, len(some))
        if lines:
            self._server.say(*lines)


def plan(request, regions):
    """Return the lines about where data will go."""
    yield f"DEBUG: Page indices for {len(request.pages)} pages:"
    yield from (f"  page_idx[{j}] = {page}" for j, page in enumerate(request.pages))
    yield "DEBUG: MR info:"
    for i, region in enumerate(regions):
        last = region.size // request.page_size - 1
        yield f"  MR[{i}]: addr={region.addr:#014x} size={region.size} (max_page_idx={last})"


def written(i, j, request, region):
    """Return the lines about a write."""
    page, size = request.pages[j], request.page_size
    target = region.addr + page * size
    yield f"DEBUG: MR[{i}] Write[{j}]: page_idx={page}, remote_offset={page * size}, dest_addr={target:#x}"
    yield f"DEBUG: Posting RDMA write: local_offset={j * size}, remote_addr={target:#x}, len={size}"


def main(options):
    """Run the server; return the exit status."""
    context = rdma.Context(options.device, options.backend)
    server = Server(context, options.host, debug=not options.quiet)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.interrupt)
    try:
        server.say(
            about(context),
            "Run client with the following command:",
            f"  python -m gormapy.examples.write_cpu {server.address} [page_size num_pages]",
            "Registered 2 buffers in CPU memory",
        )
        server.run(options.clients)
        if server.interrupted:
            server.say("Interrupted: no more clients")
    finally:
        server.stop()
    return 1 if options.clients and server.failed else 0
