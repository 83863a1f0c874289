"""MPI in notebooks: ``%load_ext gormapy``, then cells that begin with ``%%mpi -n 4`` run on 4 ranks.

"The kernel" is the Jupyter kernel here, the process of the notebook; Linux's is called Linux.

Parts: `magics` (what users type), `Session` (the ranks, seen from the kernel), `CellRun` (one cell on them),
`diagnosis` and `picture` (which rank waits for which), `transcript` (the output), `worker` and `shell` (in a rank),
`far` (connections to other hosts).

Processes. A session is gormapy's mpiexec with N workers, each of which connects to the kernel by an abstract
Unix socket and sends a token that it got in its environment. Messages are `link`'s: a JSON header and bytes.
Ranks print to pipes, whose reading ends each worker passes to the kernel: so the output of C code is read, too, and
no thread of the worker is needed for output. There is no thread in the kernel: it reads while a cell or another
command runs, on the thread of that cell. Output of a rank between two cells is shown with the next one.

Ranks on other hosts (%%mpi --hosts, and in an allocation) are started by the launcher that mpiexec hands over to. They
connect by TCP (`far`): standard output and error are connections then, and so is the pipe that says that the
kernel has ended. The kernel can't send them signals: they interrupt themselves when it says so.

States of a rank, as the kernel sees it, with the event and the process that cause each transition:

    starting --hello, ready--> idle --run (kernel)--> running --done (rank)--> idle
    idle --reset (kernel, to all ranks at once)--> resetting --reset (rank)--> idle
    any --end of its socket--> gone

Order of output. A rank flushes its streams before it sends display output (a figure of the program) or the end of a
cell, and the kernel empties the rank's pipes before it takes a message; after display output the rank waits until the
kernel has taken it.

Interrupts. Ctrl-C, a deadlock, a time-out, and a rank that failed while others wait for it: the kernel sends
SIGINT to the ranks that still run the cell; each ends with KeyboardInterrupt, also within a wait of MPI. Once
all are idle they make the collective reset, and the communicators are usable. Ranks that don't react within
some seconds run code that Python can't interrupt: after a second Ctrl-C, or if there is no user to press it,
the session is ended, and the next cell starts another.

Ends. The worker ends when its socket closes. It also has a pipe from the kernel, which is never written to, and asks
Linux to send it SIGKILL when the pipe closes (F_SETSIG). So it ends with the kernel, even in C code that holds
Python's lock. mpiexec ends when its ranks have, and its ranks end when it does.
The kernel and the ranks are in separate POSIX sessions (setsid): a Ctrl-C to the kernel's process group does not reach
the ranks.
"""

from .magics import load_ipython_extension, unload_ipython_extension

__all__ = ["load_ipython_extension", "unload_ipython_extension"]
