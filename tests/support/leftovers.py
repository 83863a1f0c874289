"""What a job may not leave behind: processes, shared memory, files."""

import os
import time
from pathlib import Path


def processes(mark):
    """List the processes whose environment holds ``mark``, as "pid: command" texts.

    A zombie has ended: only its parent, or init, is late.
    """
    found = []
    sought = mark.encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if sought not in (entry / "environ").read_bytes():
                continue
            state = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile, or belongs to somebody else
        if state not in "ZX":
            found.append(f"{entry.name}: {command.strip()[:200]}")
    return found


def names():
    """List the names in shared memory and the temporary folder that a job could have made."""
    shared = {f"/dev/shm/{name}" for name in os.listdir("/dev/shm")} if os.path.isdir("/dev/shm") else set()
    temporary = {f"/tmp/{name}" for name in os.listdir("/tmp") if name.startswith("gormapy")}
    return shared | temporary


def _in_use(name):
    """Tell whether a process has the file open or mapped: then it belongs to something that runs beside the tests."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if name in (entry / "maps").read_text(errors="replace"):
                return True
            if any(os.readlink(link).startswith(name) for link in (entry / "fd").iterdir()):
                return True
        except OSError:
            continue
    return False


def after(mark, before, patience=2.0):
    """Return what is left of the job marked ``mark``, given the names there were ``before`` it."""
    end = time.monotonic() + patience
    while True:
        left = processes(mark)
        left += [name for name in names() - before if not _in_use(name)]
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.02)
