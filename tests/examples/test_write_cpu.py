"""The server and the client of write_cpu, as two processes, on every back end that is here; and bad input."""

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_simple_interchange import BACKENDS

from gormapy import rdma
from gormapy.examples.write_cpu import wire
from gormapy.examples.write_cpu.__main__ import main
from gormapy.examples.write_cpu.address import Address, Refused, introduce
from gormapy.examples.write_cpu.client import CONTEXT, SEED, Client, WrongData, prepare
from gormapy.examples.write_cpu.link import Gone
from gormapy.mt19937 import MT19937_64

PROGRAM = [sys.executable, "-m", "gormapy.examples.write_cpu"]
LIMIT = 300 if "RXE_GUEST" in os.environ else 60  # the guest is an emulator


class Server:
    """A server process, and the lines that it has printed."""

    def __init__(self, *args):
        self.process = subprocess.Popen(
            [*PROGRAM, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.lines = []
        self._more = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.address = self.until(r"write_cpu ([0-9a-f]+) \[page_size num_pages\]")[1]
        self.until("------")

    def _read(self):
        for line in self.process.stdout:
            with self._more:
                self.lines.append(line.rstrip("\n"))
                self._more.notify_all()

    def until(self, pattern):
        """Wait for a line, and return its match."""

        def found():
            return next((m for line in self.lines if (m := re.search(pattern, line))), None)

        with self._more:
            assert self._more.wait_for(found, LIMIT), self.lines
            return found()

    def finish(self, status=0):
        """Wait for the end, and return what was printed."""
        ended = self.process.wait(LIMIT)
        self._reader.join(LIMIT)
        said = "\n".join(self.lines)
        assert ended == status, said
        return said

    def interrupt(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.finish()


@pytest.fixture
def serve():
    """Start servers, which end with the test."""
    servers = []

    def start(*args):
        servers.append(Server(*args))
        return servers[-1]

    yield start
    for server in servers:
        server.process.kill()
        server.process.wait()


def client(server, *args):
    """Run a client; return its status, output and errors."""
    address = server if isinstance(server, str) else server.address
    done = subprocess.run(
        [*PROGRAM, address, *map(str, args)], capture_output=True, text=True, timeout=LIMIT, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def connect():
    """Make clients of this process."""
    contexts = []

    def make(server):
        address = Address.parse(server.address)
        contexts.append(rdma.Context(backend=address.backend))
        return Client(contexts[-1], address)

    yield make
    for context in contexts:
        context.close()


def ask(made, page_size=4096, num_pages=8):
    """Let a client of this process get its data."""
    request = prepare(page_size, num_pages, MT19937_64(SEED))
    made.connect()
    made.request(request)
    assert made.wait(LIMIT) == CONTEXT
    made.verify(request)
    return request


SERVER = """\
Registered 2 buffers in CPU memory
------
Received CONNECT message from client:
  addr: HEX
  MR[0]: addr=0xN size=16777216 rkey=0xN
  MR[1]: addr=0xN size=16777216 rkey=0xN
Received RandomFill request from client:
  remote_context: 0x00000123
  seed: 0xb584035fabe6ce9b
  page_size: 1048576
  num_pages: 8
Generating random data..Random Data Generated
Finished RDMA WRITE to the remote CPU memory.
------"""

CLIENT = """\
Registered 2 buffers in CPU memory
Sent CONNECT message to server
Sent RandomFillRequest to server. page_size: 1048576, num_pages: 8
Received RDMA WRITE to local CPU memory.
Data is correct
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_says_what_the_original_says(serve, backend):
    server = serve("--backend", backend, "--once", "--quiet")
    status, out, err = client(server, "--quiet")
    assert status == 0, err
    assert re.match(rf"domain: +\S+, nic: +\S+, fabric: {backend}, link: .+\n", out), out
    assert out.partition("\n")[2] == CLIENT
    said = server.finish()
    said = re.sub(
        "addr: [0-9a-f]{64}", "addr: HEX", re.sub(r"(addr=0x)[0-9a-f]{12}|(rkey=0x)[0-9a-f]{16}", r"\1\2N", said)
    )
    assert said.endswith(SERVER), said


def test_debug_lines(serve):
    server = serve("--once")
    status, out, _ = client(server)
    assert status == 0
    assert "  page_idx[7] = 15 (offset = 15 * 1048576 = 15728640)" in out
    assert "  max_pages: 16" in out
    said = server.finish()
    for line in ("DEBUG: Page indices for 8 pages:", "  page_idx[0] = 1", "  page_idx[7] = 15", "(max_page_idx=15)"):
        assert line in said
    for i in range(2):
        assert f"DEBUG: MR[{i}] Write[7]: page_idx=15, remote_offset=15728640, dest_addr=0x" in said
    assert said.count("DEBUG: Posting RDMA write: local_offset=7340032, remote_addr=0x") == 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_any_pages_one_client_after_the_other(serve, backend):
    shapes = [(8192, 2040), (8, 1), (16 << 20, 1), (1047552, 16), (12, 2), (4, 2040)]
    server = serve("--backend", backend, "--clients", len(shapes))
    for shape in shapes[:2]:
        status, out, err = client(server, *shape)
        assert (status, out.splitlines()[-1]) == (0, "Data is correct"), err
    for page_size, num_pages in shapes[2:]:  # in this process, which is there already
        with rdma.Context(backend=backend) as context:
            made = Client(context, Address.parse(server.address))
            ask(made, page_size, num_pages)
            made.close()
    server.finish()


@pytest.mark.parametrize("backend", BACKENDS)
def test_clients_at_once(serve, connect, backend):
    server = serve("--backend", backend, "--clients", 6)
    made = [connect(server) for _ in range(4)]
    processes = [
        subprocess.Popen([*PROGRAM, server.address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    requests = []
    for i, one in enumerate(made):  # all have asked before any looks
        rng = MT19937_64(i)
        requests.append(prepare(65536, 40 + i, rng))
        one.connect()
    for one, request in zip(made, requests):
        one.request(request)
    for one, request in zip(made, requests):
        assert one.wait(LIMIT) == CONTEXT
        one.verify(request)
        one.close()
    for process in processes:
        out, err = process.communicate(timeout=LIMIT)
        assert process.returncode == 0, err
        assert "Data is correct" in out
    assert "ERROR" not in server.finish()


def test_one_client_asks_twice(serve, connect):
    server = serve("--once")
    made = connect(server)
    made.connect()
    for seed in (1, 2):
        request = prepare(16 << 20, 1, MT19937_64(seed))
        made.request(request)
        assert made.wait(LIMIT) == CONTEXT
        made.verify(request)
    with pytest.raises(WrongData, match=r"MR\[0\]: 1 of 1 pages are wrong"):
        made.verify(prepare(16 << 20, 1, MT19937_64(1)))
    made.close()
    server.finish()


def test_verify_finds_what_was_not_asked_for(serve, connect):
    made = connect(serve())
    request = ask(made)
    free = next(page for page in range(100) if page not in request.pages)
    made.arrays[1][free * 4096] = 1
    with pytest.raises(WrongData, match=r"MR\[1\]: something was written outside"):
        made.verify(request)


def test_wire_layouts():
    regions = (wire.Region(0x1122334455667788, 16 << 20, 0xAABB), wire.Region(2, 3, 4))
    connect = wire.Connect(bytes(range(32)), regions).pack()
    assert connect == (
        b"\0" + bytes(range(32)) + bytes(7) + struct.pack("<Q", 2) + struct.pack("<6Q", 0x1122334455667788, 16 << 20, 0xAABB, 2, 3, 4)
    )  # fmt: skip
    assert len(connect) == 96
    assert wire.Connect.unpack(connect) == wire.Connect(bytes(range(32)), regions)
    fill = prepare(1 << 20, 8, MT19937_64(SEED))
    assert fill.pack() == b"\1\0\0\0" + struct.pack(
        "<IQQQ8I", 0x123, 0xB584035FABE6CE9B, 1 << 20, 8, 1, 3, 4, 7, 12, 13, 14, 15
    )
    assert len(fill.pack()) == 64
    assert wire.RandomFill.unpack(fill.pack()) == fill
    assert wire.MOST_PAGES == 2040
    assert wire.unpack_refused(wire.pack_refused("no" * 9999)) == "no" * 4092


def fill(context=CONTEXT, seed=1, page_size=4096, n=None, pages=(0,)):
    """Return a RANDOMFILL that may be wrong."""
    n = len(pages) if n is None else n
    return struct.pack(f"<B3xIQQQ{len(pages)}I", 1, context, seed, page_size, n, *pages)


GARBAGE = {
    "nothing": (b"", "0 bytes are no RANDOMFILL"),
    "short": (b"\1\0\0", "3 bytes are no RANDOMFILL"),
    "another type": (b"\7" * 64, "a message of type 7 where RANDOMFILL"),
    "connect again": (wire.Connect(bytes(32), (wire.Region(0, 8, 0),)).pack(), "type 0 where RANDOMFILL"),
    "pages missing": (fill(n=2), "RANDOMFILL of 36 bytes; with 2 pages it has 40"),
    "no pages": (fill(pages=()), "RANDOMFILL of 0 pages"),
    "2041 pages": (fill(page_size=8, n=2041, pages=range(2040)), "2041 pages; there can be 1 to 2040"),
    "2**62 pages": (fill(n=2**62), "there can be 1 to 2040"),
    "pages of nothing": (fill(page_size=0), "1 pages of 0 bytes"),
    "too much": (fill(page_size=(16 << 20) + 8), "more than a memory region"),
    "2**64 bytes": (fill(page_size=2**63, pages=(0, 0)), "more than a memory region"),
    "no whole numbers": (fill(page_size=7), "no whole number of 8-byte numbers"),
    "no context": (fill(context=0), "remote_context 0"),
    "page outside": (fill(pages=(0, 4096)), r"a page of 4096 bytes at 16777216 exceeds MR\[0\]"),
    "page far outside": (fill(page_size=8 << 20, pages=(2**32 - 1,)), r"exceeds MR\[0\] of 16777216 bytes"),
    "full buffer": (bytes(8192), "type 0 where RANDOMFILL"),
}


@pytest.fixture(scope="module")
def survivor():
    """A server that all sorts of clients come to."""
    server = Server("--backend", BACKENDS[-1])
    yield server
    server.process.kill()
    server.process.wait()


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_answered_and_the_server_lives(survivor, connect, name):
    message, words = GARBAGE[name]
    bad = connect(survivor)
    bad.connect()
    bad.link.send(message)
    with pytest.raises(Refused, match=words):
        bad.wait(LIMIT)
    assert not any(array.any() for array in bad.arrays)  # nothing is done by halves
    bad.close()
    ask(connect(survivor))
    survivor.until("ERROR: client 127.0.0.1 port \\d+: .*" + words)


def test_out_of_bounds_says_what_the_original_says(survivor, connect):
    bad = connect(survivor)
    bad.connect()
    bad.link.send(fill(page_size=1 << 20, pages=(3, 16)))
    with pytest.raises(Refused):
        bad.wait(LIMIT)
    survivor.until(r"^ERROR: Write would exceed MR\[0\] boundary!$")
    survivor.until(r"^  remote_offset\(16777216\) \+ page_size\(1048576\) = 17825792 > mr_size\(16777216\)$")


BAD_CONNECTS = {
    "garbage": (b"\xff" * 40, "40 bytes are no CONNECT"),
    "fill first": (fill(), "36 bytes are no CONNECT"),
    "no regions": (wire.Connect(bytes(32), ()).pack(), "CONNECT with 0 memory regions"),
    "2**63 regions": (b"\0" + bytes(39) + struct.pack("<Q", 2**63), "there can be 1 to 339"),
    "another client": (wire.Connect(bytes(32), (wire.Region(0, 8, 0),)).pack(), "the address of another client"),
}


@pytest.mark.parametrize("name", BAD_CONNECTS)
def test_bad_connect(survivor, connect, name):
    message, words = BAD_CONNECTS[name]
    bad = connect(survivor)
    bad.link.send(message)
    with pytest.raises(Refused, match=words):
        bad.wait(LIMIT)
    ask(connect(survivor))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("what", ["key", "address", "size"])
def test_regions_that_are_not_there(serve, connect, backend, what):
    server = serve("--backend", backend)
    bad = connect(server)
    region = bad.regions[0]
    addr, size, rkey = region.addr, region.length, region.rkey
    wrong = {
        "key": wire.Region(addr, size, rkey ^ 0x5555),
        "address": wire.Region(2**64 - 4096, size, rkey),
        "size": wire.Region(addr, 2**64 - 1, rkey),
    }[what]
    bad.link.send(wire.Connect(bad.addr, (wrong,)).pack())
    bad.link.send(fill(page_size=1 << 20, pages=(1, 17)))
    with pytest.raises((Refused, rdma.Error)):
        bad.wait(LIMIT)
    bad.close()
    ask(connect(server))


def end_of_client(server, last, number):
    """Return the command of a client that sends itself a signal after its connection, or its request."""
    return [
        sys.executable,
        Path(__file__).parent / "programs" / "write_cpu_client.py",
        server.address,
        last,
        str(int(number)),
    ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_clients_that_die(serve, connect, backend):
    server = serve("--backend", backend)
    # one is killed in mid-session, and one while the server writes to it
    for last in ("connect", "request"):
        command = end_of_client(server, last, signal.SIGKILL)
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        assert done.returncode == -signal.SIGKILL, done.stderr
    left = connect(server)  # and one leaves without a word
    left.link.close()
    ask(connect(server))
    server.until("ERROR: client 127.0.0.1 port")
    assert "Traceback" not in "\n".join(server.lines)
    server.interrupt()


def test_strangers(survivor, connect):
    address = Address.parse(survivor.address)
    for said in (b"", b"GET / HTTP/1.0\r\n\r\n" + bytes(99), bytes(26), b"writeCPU" + bytes(16) + b"\0\0"):
        with socket.create_connection((address.host, address.port)) as sock:
            sock.settimeout(LIMIT)
            with suppress(OSError):  # reset, not connected: the server need not read what is no greeting
                sock.sendall(said)
                sock.shutdown(socket.SHUT_WR)
                assert sock.recv(100)[:1] == b"\1"  # refused
    with pytest.raises(Refused, match="the server refused: it has the address of another server"):
        introduce(replace(address, token=bytes(16)), bytes(1000))
    ask(connect(survivor))
    # a client that knows the address, and whose info is none
    with socket.create_connection((address.host, address.port)) as sock:
        sock.sendall(b"writeCPU" + address.token + b"\3\0abc")
        sock.settimeout(LIMIT)
        assert b"no connection info" in sock.recv(1000)
    ask(connect(survivor))
    survivor.until("is no client: it has the address of another server")


def addresses():
    """Return addresses that are none, and what is said about them."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    gone = str(Address("tcp", "127.0.0.1", port, bytes(16)))
    return {
        "words": ("hello", 2, "must be the hex digits"),
        "an odd digit": (gone[:-1], 2, "must be the hex digits"),
        "one of EFA": ("fe" + "80" * 31, 2, "no address of a write_cpu server"),
        "cut": (gone[:-2], 2, "damaged or cut"),
        "damaged": (gone[:40] + ("1" if gone[40] == "0" else "0") + gone[41:], 2, "damaged or cut"),
        "a server that has ended": (gone, 1, f"no server at 127.0.0.1 port {port}: Connection refused"),
    }


def refused(capsys, *args):
    """Run a client in this process; return its status and errors."""
    with pytest.raises(SystemExit) as exit:
        main([str(arg) for arg in args])
    code = exit.value.code
    return (code, capsys.readouterr().err) if isinstance(code, int) else (1, code)


@pytest.mark.parametrize("name", addresses())
def test_wrong_addresses(name, capsys):
    address, expected, words = addresses()[name]
    status, err = refused(capsys, address)
    assert status == expected
    # the port of a server that has ended is another one each time
    assert re.sub(r"port \d+", "", words) in re.sub(r"port \d+", "", err)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([4096], "come together"),
        ([0, 0], "there must be 1 or more of both"),
        ([-8, 1], "there must be 1 or more of both"),
        ([1 << 20, 17], "more than a memory region"),
        ([8, 2041], "has room for 2040"),
        ([3, 5], "no whole number of 8-byte numbers"),
        ([8, 1, "--backend", "pigeon"], "the server's is tcp"),
    ],
)
def test_requests_that_cannot_be(args, words, capsys):
    status, err = refused(capsys, str(Address("tcp", "127.0.0.1", 1, bytes(16))), *args)
    assert status == 2
    assert words in err


@pytest.mark.parametrize("backend", BACKENDS)
def test_interrupt(serve, connect, backend):
    server = serve("--backend", backend)
    waiting = connect(server)
    waiting.connect()
    server.until("Received CONNECT")
    with socket.create_connection((Address.parse(server.address).host, Address.parse(server.address).port)):
        said = server.interrupt()  # with a client, and a stranger who has not said anything
    assert "Interrupted: no more clients" in said
    assert "Traceback" not in said
    with pytest.raises((Gone, rdma.Error, Refused)):
        waiting.wait(LIMIT)


def test_terminate_at_once(serve):
    assert "Interrupted" in serve().interrupt(signal.SIGTERM)


def test_a_client_that_is_stopped_holds_nobody_up(serve, connect):
    server = serve()
    with subprocess.Popen(end_of_client(server, "request", signal.SIGSTOP)) as stopped:
        try:
            server.until("Received RandomFill")
            ask(connect(server))
            assert "Traceback" not in server.interrupt()
        finally:
            stopped.kill()


def test_server_that_dies(serve, connect):
    server = serve()
    waiting = connect(server)
    waiting.connect()
    server.process.kill()
    with pytest.raises((Gone, rdma.Error)):
        waiting.wait(LIMIT)
    waiting.close()


def test_more_clients_than_were_to_come(serve, connect):
    server = serve("--once")
    first = connect(server)
    with pytest.raises(Refused, match="it serves 1 clients, and no more"):
        connect(server)
    ask(first)
    first.close()
    server.finish()


def test_status_tells_of_clients_that_were_refused(serve, connect):
    server = serve("--clients", 2)
    bad = connect(server)
    bad.link.send(b"")
    with pytest.raises(Refused):
        bad.wait(LIMIT)
    bad.close()
    good = connect(server)
    ask(good)
    good.close()
    server.finish(1)


def test_data_is_that_of_cxx(serve, connect):
    made = connect(serve())
    request = ask(made, 1 << 20, 8)
    pages = list(request.pages)
    for array, xor in zip(made.arrays, (0xDDD1629D07692896, 0x944EA99F1D3CF0F8)):
        words = np.ascontiguousarray(array.reshape(16, -1)[pages]).view("<u8")
        assert int(np.bitwise_xor.reduce(words, axis=None)) == xor
