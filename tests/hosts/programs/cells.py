"""Cells of a notebook on ranks of several hosts; argument: the options of the first cell."""

import sys

from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "gormapy")


def cell(options, body):
    """Run a cell and print how it ends."""
    print(f"--- {options}", flush=True)
    try:
        shell.run_cell_magic("mpi", options, body)
    except Exception as error:
        print(f"{type(error).__name__}: {error}")


cell(
    sys.argv[1],
    """
from gormapy import MPI
import os, signal, socket, time
world = MPI.COMM_WORLD
rank = world.Get_rank()
print("on", socket.gethostname(), world.allreduce(1))
""",
)
cell("", "print(''.join(f'line {i}\\n' for i in range(2000)), end='') if rank == 3 else None")
cell("", "world.recv(source=(rank + 1) % 4)")
cell("--timeout 1", "time.sleep(60) if rank == 1 else world.Barrier()")
cell("", "if rank == 2: raise ValueError('bad')\nworld.Barrier()")
cell("", "kept = ['still', world.allreduce(rank)]")
shell.run_line_magic("mpi", "pull kept")
print(shell.user_ns["kept"])
cell("--trace", "world.sendrecv(rank, (rank + 2) % 4, source=(rank + 2) % 4)")
trace = shell.user_ns["mpi_trace"]
print("recorded messages", len(trace.messages), "early", sum(trace.messages["received"] < trace.messages["sent"]))
cell("", "world.Barrier()\nif rank == 3: os.kill(os.getpid(), signal.SIGKILL)\nworld.Barrier()")
cell("", "from gormapy import MPI\nprint('again', MPI.COMM_WORLD.Get_size())")
shell.run_line_magic("mpi", "stop")
