"""Ranks that stay, as the process that has started them sees them: the kernel of a notebook, or a pytest."""

import atexit
import codecs
import contextlib
import os
import re
import secrets
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time

from . import far, link
from .checked import Checked
from .errors import Interrupted, StartError, ranks_text

_START_WITHIN = 90.0  # for an environment on a network file system, on a busy machine
_RESET_WITHIN = 15.0
_VERDICT_WITHIN = 3.0  # mpiexec says nothing of a rank that ended with status 0
_CLOCK_WITHIN = 1.0
_CLOCK_TRIES = 8  # the one that took the shortest counts
_LATE_LIMIT = 1 << 20  # characters that threads of the ranks write and display between two cells
_VERDICT = re.compile(r"mpiexec: rank (\d+) \((?:[^()\n]*, )?pid \d+\) ((?:was killed|ended with|called Abort)[^;\n]*)")
_PEER = struct.Struct("3i")  # pid, uid, gid


class Rank:
    """One rank: its socket, its pipes, and its state."""

    def __init__(self, number, pid, reader, pipes, host=""):
        self.number, self.pid, self.reader = number, pid, reader
        self.host = host  # "" if it is the kernel's
        self.pipes = {fd: (name, codecs.getincrementaldecoder("utf-8")("replace")) for fd, name in pipes.items()}
        self.state = "starting"
        self.cell = None
        self.replies = []  # messages for the command that waits for them

    @property
    def gone(self):
        """Whether the process has ended."""
        return self.state == "gone"


class Session:
    """N ranks that live until `close`: on this host, or on those that are given or that the allocation has."""

    worker: tuple[str, ...] = ()  # the program of a rank, as Python's arguments
    interrupted = Interrupted  # the error of a start that the user interrupts
    exit_within = 2.0  # how long ranks that are idle have to end

    def __init__(self, size, hosts=None, checked=False):
        self.size, self.hosts = size, hosts
        self._checked = Checked(checked == "exact") if checked else None
        self.ranks = {}
        self.sink = None  # a Transcript, which takes output
        self._late, self._late_size = [], 0  # what it would have been told while there was none
        self.spoken = ""  # output of mpiexec
        self.closed = False
        self.finalized = False
        self.cells = 0
        self.interrupts = lambda: 0  # how often the user has pressed Ctrl-C in the running command
        self._connecting = []
        self._selector = selectors.DefaultSelector()
        self._token = secrets.token_hex(16)
        self._pid = os.getpid()
        self._lifeline, self._life = os.pipe()  # see the package
        self._door = far.Door(self._token.encode()) if hosts or far.allocated(os.environ) else None
        if self._door is not None:
            self._listener, address = self._door.listener, self._door.address
        else:
            self._listener = socket.socket(socket.AF_UNIX)
            address = f"gormapy-resident-{secrets.token_hex(12)}"
            self._listener.bind("\0" + address)
            self._listener.listen(size)
            self._listener.setblocking(False)
        self._launcher = self._launch(address)
        os.set_blocking(self._launcher.stderr.fileno(), False)
        self._selector.register(self._listener, selectors.EVENT_READ, ("accept", None))
        self._selector.register(self._launcher.stderr, selectors.EVENT_READ, ("launcher", None))
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._in_child)

    # Start and end
    # -------------

    @property
    def checked(self):
        """Whether the ranks are checked."""
        return self._checked is not None

    @property
    def exact(self):
        """Whether the ranks are checked, and all their loads and stores are looked at."""
        return self._checked is not None and self._checked.exact

    def environment(self):
        """Return the environment of the ranks."""
        return dict(os.environ)

    def _launch(self, address):
        from ..launch import launcher

        # A time-out is for programs: a session lasts as long as the process that has started it.
        env = {k: v for k, v in self.environment().items() if k not in ("GORMAPY_RESIDENT", "GORMAPY_TIMEOUT")}
        env["GORMAPY_RESIDENT"] = f"{address} {self._token}"
        package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        path = [p for p in env.get("PYTHONPATH", "").split(os.pathsep) if p]
        env["PYTHONPATH"] = os.pathsep.join([package, *path])  # the worker's own path is set later
        hosts = ["-hosts", self.hosts] if self.hosts else []
        checked = [self._checked.option] if self.checked else []
        command = [launcher(), *hosts, *checked, "-n", str(self.size), sys.executable, *self.worker]
        try:
            return subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            self._selector.close()
            self._listener.close()
            raise StartError(
                f"the launcher {command[0]} can't be started: {error.strerror}; install gormapy with pip"
            ) from None

    def start(self):
        """Wait until all ranks have connected."""
        end = time.monotonic() + _START_WITHIN
        while not (len(self.ranks) == self.size and all(r.state == "idle" for r in self.ranks.values())):
            self.pump(0.1)
            ended = self._launcher.poll() is not None
            if ended or self.interrupts() or time.monotonic() > end or any(r.gone for r in self.ranks.values()):
                self.pump(0.1)
                there = len(self.ranks)
                self.close(at_once=True)
                if self.interrupts():
                    raise self.interrupted("the ranks were about to start; there are none now")
                how = f"mpiexec ended with status {self._launcher.returncode}" if ended else "they did not come up"
                said = self.spoken.strip() or "nothing was said"
                raise StartError(f"{self.size} ranks could not be started ({how}; {there} came): {said}")
        self._selector.unregister(self._listener)
        self._listener.close()
        if self._door is not None:
            for one in self._door.shaking:
                self._selector.unregister(one.sock)
            self._door.close()
        os.close(self._lifeline)
        self._lifeline = -1

    def _accept(self):
        if self._door is not None:
            for one in self._door.surplus():
                self._selector.unregister(one.sock)
                self._door.drop(one)
            one = self._door.accept()
            if one is not None:
                self._selector.register(one.sock, selectors.EVENT_READ, ("shake", one))
            return
        with contextlib.suppress(BlockingIOError):
            sock, _ = self._listener.accept()
            _, uid, _ = _PEER.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
            if uid != os.getuid():
                sock.close()
                return
            sock.setblocking(False)
            reader = link.Reader(sock)
            self._connecting.append(reader)
            self._selector.register(sock, selectors.EVENT_READ, ("hello", reader))

    def _shake(self, one):
        """Take part of the handshake of a rank on another host."""
        self._selector.unregister(one.sock)  # which it may close
        over = self._door.take(one)
        if over is False:
            self._selector.register(one.sock, selectors.EVENT_READ, ("shake", one))
        elif over is not True:
            self._connecting.append(over)
            self._selector.register(over.sock, selectors.EVENT_READ, ("hello", over))

    def _hello(self, reader):
        try:
            alive = reader.fill()
            message = reader.take()
        except BlockingIOError:
            return
        except (OSError, ValueError, ConnectionError):
            alive, message = False, None
        if message is None and alive:
            return
        self._selector.unregister(reader.sock)
        self._connecting.remove(reader)
        good = message is not None and message.get("kind") == "hello"
        good = good and (reader.seal is not None or message.get("token") == self._token)
        if not good or len(reader.fds) != 2 or message.rank in self.ranks:
            for fd in reader.fds:
                os.close(fd)
            reader.close()
            return
        pipes = dict(zip(reader.fds, ("stdout", "stderr")))
        reader.fds = []
        rank = self.ranks[message.rank] = Rank(message.rank, message.pid, reader, pipes)
        rank.host = message.host if reader.seal is not None else ""
        for fd in pipes:
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ, ("pipe", (rank, fd)))
        self._selector.register(reader.sock, selectors.EVENT_READ, ("rank", rank))
        self.send([rank], "welcome", fds=[] if rank.host else [self._lifeline], sys_path=list(sys.path))

    def _in_child(self):
        """Close the session's descriptors in a forked child: the ranks end with this process."""
        if self.closed:
            return
        self.closed = True
        fds = [self._life, self._lifeline, *(fd for r in self.ranks.values() for fd in r.pipes)]
        fds += [r.reader.sock.fileno() for r in self.ranks.values()]
        fds += [r.reader.life.fileno() for r in self.ranks.values() if r.reader.life is not None]
        for fd in fds:
            with contextlib.suppress(OSError):
                os.close(fd)

    def close(self, at_once=False):
        """End the ranks: in an orderly way if they are idle, else at once."""
        if self.closed or os.getpid() != self._pid:
            return
        self.closed = True
        atexit.unregister(self.close)
        try:
            if not at_once and all(r.state == "idle" for r in self.ranks.values()):
                with contextlib.suppress(OSError):
                    self.send(self.ranks.values(), "exit")
                end = time.monotonic() + self.exit_within
                while self._launcher.poll() is None and time.monotonic() < end:
                    self.pump(0.02)
            for number, patience in ((signal.SIGTERM, 3.0), (signal.SIGKILL, 3.0)):
                if self._launcher.poll() is None:
                    self._launcher.send_signal(number)
                    end = time.monotonic() + patience
                    while self._launcher.poll() is None and time.monotonic() < end:
                        self.pump(0.02)
        finally:
            os.close(self._life)
            if self._lifeline >= 0:
                os.close(self._lifeline)
            for rank in list(self.ranks.values()):
                self._drop(rank)
            for reader in self._connecting:
                reader.close()
            self._listener.close()
            if self._door is not None:
                self._door.close()
            self._launcher.stderr.close()
            self._selector.close()
            if self._checked is not None:
                self._checked.close()

    # Traffic
    # -------

    def show_in(self, sink, earlier=None):
        """Let a Transcript take output from now on.

        What arrived while there was none goes to another one, or without it to the same.
        """
        if self.sink is None:
            for rank in self.ranks.values():
                self._drain(rank)
        self.sink = sink
        late, self._late, self._late_size = self._late, [], 0
        for what, arguments in late:
            getattr(sink if earlier is None else earlier, what)(*arguments)

    def _show(self, what, size, *arguments):
        """Call a method of the sink, or keep that for the next one."""
        if self.sink is not None:
            getattr(self.sink, what)(*arguments)
            return
        if self._late_size < _LATE_LIMIT:
            self._late.append((what, arguments))
            if self._late_size + size >= _LATE_LIMIT:
                text = f"[... more than {_LATE_LIMIT:,} characters came meanwhile: the rest is not shown ...]\n"
                self._late.append(("write", (arguments[0], "stderr", text)))
        self._late_size += size

    def send(self, ranks, kind, payloads=(), fds=(), **fields):
        """Send a message to ranks; those that are gone are left out."""
        for rank in ranks:
            if rank.gone:
                continue
            try:
                rank.reader.sock.setblocking(True)
                rank.reader.sock.settimeout(30.0)
                link.send(rank.reader.sock, kind, payloads, fds, rank.reader.outgoing, **fields)
            except OSError:
                self._drop(rank)
            finally:
                with contextlib.suppress(OSError):
                    rank.reader.sock.setblocking(False)

    def pump(self, patience):
        """Wait up to ``patience`` seconds for data from the ranks, and take it."""
        if not self._selector.get_map():
            time.sleep(patience)
            return
        for key, _ in self._selector.select(patience):
            kind, what = key.data
            if kind == "pipe":
                self._read_pipe(*what, most=1 << 16)
            elif kind == "rank":
                self._read_rank(what)
            elif kind == "accept":
                self._accept()
            elif kind == "shake":
                self._shake(what)
            elif kind == "hello":
                self._hello(what)
            else:
                self._read_launcher()

    def _read_launcher(self):
        data = b""
        with contextlib.suppress(OSError):
            data = self._launcher.stderr.read(1 << 16)
        if data is None:
            return
        if not data:
            self._selector.unregister(self._launcher.stderr)
        self.spoken = (self.spoken + data.decode(errors="replace"))[-20_000:]

    def _read_pipe(self, rank, fd, most=1 << 24):
        """Read a pipe until it is empty, or for ``most`` bytes."""
        while most > 0 and fd in rank.pipes:
            name, decoder = rank.pipes[fd]
            try:
                data = os.read(fd, 1 << 16)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._selector.unregister(fd)
                os.close(fd)
                del rank.pipes[fd]
                return
            most -= len(data)
            text = decoder.decode(data)
            if text:
                self._show("write", len(text), rank.number, name, text)

    def _drain(self, rank):
        for fd in list(rank.pipes):
            self._read_pipe(rank, fd)

    def _read_rank(self, rank):
        try:
            alive = rank.reader.fill()
        except BlockingIOError:
            return
        except OSError:
            alive = False
        try:
            while (message := rank.reader.take()) is not None:
                self._on_message(rank, message)
        except (ValueError, KeyError, ConnectionError):
            alive = False
        if not alive:
            self._drop(rank)

    def _drop(self, rank):
        if rank.gone:
            return
        rank.state = "gone"
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(rank.reader.sock)
        rank.reader.close()
        self._drain(rank)
        for fd in list(rank.pipes):
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(fd)
            os.close(fd)
        rank.pipes.clear()

    def _on_message(self, rank, message):
        kind = message.kind
        if kind in ("display", "clear", "report", "done"):
            self._drain(rank)  # the output before it
        if kind == "display":
            data = {**message.data, **dict(zip(message.binary, message.payloads))}
            size = sum(len(v) if isinstance(v, (str, bytes)) else len(repr(v)) for v in data.values())
            self._show("display", size, rank.number, data, message.display_id, message["update"])
            self.send([rank], "shown")
        elif kind == "clear":
            self._show("clear", 0, rank.number, message.wait)
            self.send([rank], "shown")
        elif kind == "ready":
            rank.state = "idle"
        elif kind == "note":
            self._show("write", len(message.text), rank.number, "stderr", message.text + "\n")
        else:
            if kind in ("done", "reset", "failed"):
                rank.state = "idle"
            if kind == "where" and rank.host:
                message["at"] = time.monotonic()  # by this host's clock
            if kind == "done":
                self.finalized |= message.finalized
            rank.replies.append(message)

    # Commands
    # --------

    def chosen(self, numbers=None):
        """Return the ranks of these numbers, or all."""
        return [self.ranks[r] for r in (sorted(self.ranks) if numbers is None else numbers)]

    def ask(self, ranks, kind, answer, within, payloads=(), **fields):
        """Send a message and return the answers by rank; a rank that gives none is left out."""
        self.send(ranks, kind, payloads, **fields)
        return self.answers(ranks, (answer, "failed"), within)

    def answers(self, ranks, kinds, within):
        """Return the answers of these kinds by rank; a rank that gives none is left out."""
        end, answers, pressed = time.monotonic() + within, {}, self.interrupts()
        while True:
            for rank in ranks:
                for reply in list(rank.replies):
                    if reply.kind in kinds:
                        rank.replies.remove(reply)
                        answers[rank.number] = reply
            missing = [r for r in ranks if r.number not in answers and not r.gone]
            if not missing or time.monotonic() > end or self.interrupts() > pressed:
                return answers
            self.pump(0.05)

    def found(self):
        """Return what mpiexec --check has found since the last call, as records, and remarks."""
        return self._checked.news() if self.checked else ([], [])

    def clocks(self):
        """Return what to add to the clock of each host for that of this one, in nanoseconds."""
        shifts = {}
        for rank in self.chosen():
            if rank.gone or rank.host in shifts:
                continue
            shortest, shifts[rank.host] = _CLOCK_WITHIN, 0
            for _ in range(_CLOCK_TRIES if rank.host else 0):
                begun = time.monotonic_ns()
                answer = self.ask([rank], "clock", "clock", _CLOCK_WITHIN).get(rank.number)
                took = time.monotonic_ns() - begun
                if answer is not None and took < shortest * 1e9:
                    shortest, shifts[rank.host] = took / 1e9, begun + took // 2 - answer.time
        return shifts

    def reset(self):
        """Reset communication on all ranks; return "" or why that was not possible."""
        ranks = self.chosen()
        for rank in ranks:
            rank.state = "resetting"
        answers = self.ask(ranks, "reset", "reset", _RESET_WITHIN)
        silent = [r.number for r in ranks if r.number not in answers]
        if silent:
            return f"{ranks_text(silent)} did not take part in the reset"
        failed = {r: a.text for r, a in answers.items() if a.text}
        return "; ".join(f"rank {r}: {text}" for r, text in failed.items())

    def interrupt(self, ranks):
        """Send SIGINT to ranks."""
        for rank in ranks:
            if not rank.gone and rank.host:
                self.send([rank], "interrupt")
            elif not rank.gone:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(rank.pid, signal.SIGINT)

    def dead(self):
        """Return how ranks ended, as {rank: text}; empty if all of them live."""
        gone = [r.number for r in self.ranks.values() if r.gone]
        if not gone and self._launcher.poll() is None:
            return {}
        # mpiexec distinguishes the first one that failed from those that it ended as a consequence.
        end = time.monotonic() + _VERDICT_WITHIN
        while time.monotonic() < end and not _VERDICT.search(self.spoken):
            if self._launcher.poll() is not None:
                self.pump(0.05)
                break
            self.pump(0.05)
        found = {int(m[1]): m[2].strip() for m in _VERDICT.finditer(self.spoken)}
        if found:
            return found
        # With findings mpiexec itself ends with status 1; a rank that had it would have been named.
        if gone and self._launcher.poll() in (None, 0, *([1] if self.checked else ())):
            return dict.fromkeys(gone, "ended by itself with exit status 0 (os._exit?)")
        how = f"mpiexec ended with status {self._launcher.poll()}"
        return dict.fromkeys(gone, f"is gone: {how}") or {-1: how}
