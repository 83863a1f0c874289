"""Processes that start others, and jobs that connect (MPI 4.1, chapter 11).

All of them are on one host. A spawned job has a launcher of its own. If one of its processes fails, the others of that
job end, and operations of the parents with them fail; the parents go on. The job ends with the root, which has spawned
it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, AnyStr

from gormapy import _excepthook
from gormapy._ext import core, fast
from gormapy.launch import launcher

from . import constants
from .exception import check, error, text
from .handle import expect
from .info import INFO_NULL
from .msgbuffer import index

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from .info import Info
    from .intercomm import Intercomm


class Connecting:
    """Calls of intracommunicators that make an intercommunicator with another job."""

    __slots__ = ()

    def Spawn(
        self,
        command: PathLike[AnyStr] | str | bytes,
        args: Sequence[str] | None = None,
        maxprocs: int = 1,
        info: Info = INFO_NULL,
        root: int = 0,
        errcodes: list[int] | None = None,
    ) -> Intercomm:
        """Start processes of one program."""
        root = index(root, "Spawn: root")
        made = _spawn(self, root, lambda: [_Program("Spawn", command, args, maxprocs, info)])
        if errcodes is not None:
            errcodes[:] = [constants.SUCCESS] * max(maxprocs, 0)
        return made

    def Spawn_multiple(
        self,
        command: Sequence[PathLike[AnyStr] | str | bytes],
        args: Sequence[Sequence[str]] | None = None,
        maxprocs: Sequence[int] | None = None,
        info: Sequence[Info] | Info = INFO_NULL,
        root: int = 0,
        errcodes: list[list[int]] | None = None,
    ) -> Intercomm:
        """Start processes of several programs, as one job."""
        root = index(root, "Spawn_multiple: root")
        made = _spawn(self, root, lambda: _programs(command, args, maxprocs, info))
        if errcodes is not None:
            errcodes[:] = [[constants.SUCCESS] * max(count, 0) for count in _counts(command, maxprocs)]
        return made

    def Accept(self, port_name: str, info: Info = INFO_NULL, root: int = 0) -> Intercomm:
        """Wait for another job that calls Connect, and create an intercommunicator with it."""
        return self._met("Accept", core.CommAccept, port_name, root)

    def Connect(self, port_name: str, info: Info = INFO_NULL, root: int = 0) -> Intercomm:
        """Connect with another job that calls Accept, and create an intercommunicator with it."""
        return self._met("Connect", core.CommConnect, port_name, root)

    def _met(self, call, begin, port, root):
        """Accept or connect. The port is significant at the root."""
        root = index(root, f"{call}: root")
        if self.Get_rank() != root:
            return self._connected(begin(self._h, root, ""))
        try:
            port = _name(port, f"{call}: port_name")
        except BaseException:
            with suppress(Exception):  # the others wait to hear of it
                self._connected(begin(self._h, root, ""))
            raise
        return self._connected(begin(self._h, root, port))

    def _connected(self, request):
        """Wait for the new intercommunicator."""
        from .intercomm import Intercomm

        return Intercomm._wrap(fast.result(check(request)))


class _Program:
    """A command of Spawn, and how often it is started."""

    def __init__(self, call, command, args, count, info):
        self.call = call
        self.count = index(count, f"{call}: maxprocs")
        if self.count < 1:
            raise error(constants.ERR_ARG, f"{call}: maxprocs is {self.count}; at least one process is started")
        expect("Info", info, f"{call}: info")
        hints = dict(info.items()) if info else {}
        self._check_host(hints.get("host"))
        self.folder = hints.get("wdir") or hints.get("wd")
        name = os.fsencode(command)
        self.name = self._found(name, hints.get("path"))
        if isinstance(args, (str, bytes)):
            args = [args]
        self.args = [os.fsencode(arg) for arg in args or ()]
        for word in (name, *self.args):
            if word == b":" or b"\0" in word:
                raise error(constants.ERR_ARG, f"{call}: the argument {word!r} can't be passed to a program")

    def _check_host(self, host):
        import socket

        here = socket.gethostname()
        if host and host not in ("localhost", "127.0.0.1", here, here.partition(".")[0]):
            raise error(
                constants.ERR_SPAWN,
                f"{self.call}: the host {host} is asked for, and processes are started on {here} only",
            )

    def _found(self, name, path):
        """Return the path of a command."""
        import shutil

        folder = self.folder
        if folder and not os.path.isdir(folder):
            raise error(constants.ERR_SPAWN, f"{self.call}: there is no directory {folder}")
        if b"/" in name:
            found = os.path.join(os.fsencode(folder), name) if folder else name
            if os.path.isfile(found) and (os.access(found, os.X_OK) or found.endswith(b".py")):
                return os.path.abspath(found)
            what = "is not executable" if os.path.isfile(found) else "does not exist"
            raise error(constants.ERR_SPAWN, f"{self.call}: the command {os.fsdecode(name)} {what}")
        found = shutil.which(name, path=os.fsencode(path) if path else None)
        if found is None:
            where = f"in {path}" if path else "on PATH"
            raise error(constants.ERR_SPAWN, f"{self.call}: the command {os.fsdecode(name)} was not found {where}")
        return os.path.abspath(found)

    def words(self):
        """Return the part of a command line of mpiexec."""
        folder = [b"-wdir", os.fsencode(self.folder)] if self.folder else []
        return [b"-n", b"%d" % self.count, *folder, self.name, *self.args]


def _counts(command, maxprocs):
    """Return how often each of several commands is started."""
    call = "Spawn_multiple: maxprocs"
    if maxprocs is None or isinstance(maxprocs, int):
        return [1 if maxprocs is None else maxprocs] * len(command or ())
    return [index(count, call) for count in maxprocs]


def _programs(commands, args, maxprocs, info):
    """Return the programs of Spawn_multiple."""
    call = "Spawn_multiple"
    if isinstance(commands, (str, bytes, os.PathLike)):
        raise ValueError(f"{call}: command: expecting a sequence of commands, got {type(commands).__name__}")
    commands = list(commands)
    if not commands:
        raise error(constants.ERR_ARG, f"{call}: there is no command")
    counts = _counts(commands, maxprocs)
    arguments = [None] * len(commands) if args is None else list(args)
    infos = [info] * len(commands) if getattr(info, "_family", None) == "Info" else list(info)
    for what, given in (("args", arguments), ("maxprocs", counts), ("info", infos)):
        if len(given) != len(commands):
            raise ValueError(f"{call}: there are {len(commands)} commands, and {what} has {len(given)} items")
    return [_Program(call, *one) for one in zip(commands, arguments, counts, infos, strict=True)]


def _spawn(comm, root, programs):
    """Start what `programs` returns at the root, and return the intercommunicator with it."""
    if comm.Get_rank() != root:
        return comm._connected(core.CommSpawn(comm._h, root, 0, "", ""))
    try:
        line, total = _line(programs())
    except BaseException:
        with suppress(Exception):  # the others wait to hear of it
            comm._connected(core.CommSpawn(comm._h, root, 0, "", ""))
        raise
    _excepthook.mark_failures()
    environ = b"".join(b"%s=%s\0" % item for item in os.environb.items())
    return comm._connected(core.CommSpawn(comm._h, root, total, line.hex(), environ.hex()))


def _line(programs):
    """Return a command line of mpiexec, words that end with a NUL, and how many processes it starts."""
    words = [os.fsencode(launcher()), b"--python", os.fsencode(sys.executable)]
    for i, program in enumerate(programs):
        words += [b":"] * (i > 0) + program.words()
    return b"".join(word + b"\0" for word in words), sum(program.count for program in programs)


# Ports and their names
# ---------------------


def _name(name, what):
    """Return a name without NULs."""
    if not isinstance(name, str):
        raise TypeError(f"{what}: expecting a string, got {type(name).__name__}")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise error(constants.ERR_ARG, f"{what}: {name!r} has characters that UTF-8 can't encode") from None
    if "\0" in name:
        raise error(constants.ERR_ARG, f"{what}: {name!r} has a NUL")
    return name


def Open_port(info: Info = INFO_NULL) -> str:
    """Open a port for other jobs, and return its name."""
    return text(core.OpenPort())


def Close_port(port_name: str) -> None:
    """Close a port."""
    check(core.ClosePort(_name(port_name, "Close_port: port_name")))


def Publish_name(service_name: str, port_name: str, info: Info = INFO_NULL) -> None:
    """Publish the name of a port under the name of a service."""
    service = _name(service_name, "Publish_name: service_name")
    check(core.PublishName(service, _name(port_name, "Publish_name: port_name")))


def Unpublish_name(service_name: str, port_name: str, info: Info = INFO_NULL) -> None:
    """Take back the name of a service."""
    check(core.UnpublishName(_name(service_name, "Unpublish_name: service_name")))


def Lookup_name(service_name: str, info: Info = INFO_NULL) -> str:
    """Return the name of the port that a service has."""
    port = text(core.LookupName(_name(service_name, "Lookup_name: service_name")))
    return bytes.fromhex(port).decode()
