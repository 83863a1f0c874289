"""A process that connects to addresses and says nothing: neighbours_caller.py COUNT ADDRESS..."""

import resource
import socket
import sys
import time

count, *addresses = sys.argv[1:]
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
held = []
for i in range(int(count)):
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            s = socket.socket(socket.AF_INET if host else socket.AF_UNIX)
            s.setblocking(False)
            held.append(s)
            s.connect((host, int(port)) if host else chr(0) + address[1:])
        except BlockingIOError:
            time.sleep(0.0002)
        except OSError as error:
            if error.errno == 24:
                held = held[len(held) // 2 :]
    if i == 300:
        print("begun", flush=True)
print("all", flush=True)
sys.stdin.read()
