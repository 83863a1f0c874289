"""What a process of another user can do to each process of a job. The arguments are pids, --, and addresses."""

import contextlib
import os
import socket
import sys
from pathlib import Path

split = sys.argv.index("--")
pids, addresses = [int(pid) for pid in sys.argv[1:split]], sys.argv[split + 1 :]
for pid in pids:
    with contextlib.suppress(PermissionError):
        os.kill(pid, 9)
        print("could kill", pid)
    folder = Path(f"/proc/{pid}")
    for call, path in ((os.listdir, folder / "fd"), (Path.read_text, folder / "environ"), (open, folder / "mem")):
        with contextlib.suppress(PermissionError):
            print("could read", path, call(path))
    for fd in range(3, 64):
        try:
            os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR)
            print("could open", pid, fd)
        except OSError:
            pass
for address in addresses:
    host, _, port = address.rpartition(":")
    with socket.socket(socket.AF_INET if host else socket.AF_UNIX) as s:
        s.settimeout(8)
        s.connect((host, int(port)) if host else chr(0) + address[1:])
        if address.startswith("@"):  # the kernel tells who calls there: not a byte is said
            try:
                said = s.recv(1000)
            except ConnectionResetError:
                said = b""
            if said:
                print("was answered by", address, said)
for name in os.listdir("/dev/shm") + os.listdir("/tmp"):
    path = f"/dev/shm/{name}" if os.path.exists(f"/dev/shm/{name}") else f"/tmp/{name}"
    if "gormapy" in name and "gormapy-build-" not in name and os.access(path, os.R_OK):
        print("could read", path)
print("done", os.getuid())
