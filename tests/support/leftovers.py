"""What a job may not leave behind: processes, shared memory, files."""

import os
import time
from pathlib import Path

# Seconds until what is there still is left: a process that was killed may not run, and so not end, for a while.
PATIENCE = 30.0


def runs(pid):
    """Report whether a process exists and has not ended: of a zombie only its parent, or init, is late."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def processes(mark):
    """List the processes whose environment holds ``mark`` and that run, as "pid: command" texts."""
    found = []
    sought = mark.encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if sought not in (entry / "environ").read_bytes():
                continue
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile, or belongs to somebody else
        if runs(entry.name):
            found.append(f"{entry.name}: {command.strip()[:200]}")
    return found


def names():
    """List the names in shared memory and the temporary folder that a job could have made.

    Other MPIs that run beside the tests leave names of their own there, and so does a build.
    """
    found = set()
    for folder in ("/dev/shm", "/tmp"):
        if os.path.isdir(folder):
            here = [name for name in os.listdir(folder) if "gormapy" in name.lower()]
            found |= {f"{folder}/{name}" for name in here if not name.startswith(("gormapy-build-", "gormapy-sdist-"))}
    return found


def after(mark, before, patience=None):
    """Return what is left of the job marked ``mark``, given the names there were ``before`` it."""
    end = time.monotonic() + (PATIENCE if patience is None else patience)
    while True:
        left = processes(mark)
        left += sorted(names() - before)
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.02)
