"""Ranks that stay and run one thing after the other: cells of a notebook (`gormapy.magic`), tests (`gormapy.testing`).

The process that has started them is called their owner.

Parts: `Session` (the ranks, seen from their owner), `Watched` (what they run), `diagnosis` and `picture` (which rank
waits for which), `checked` (what mpiexec --check finds), `worker` (in a rank), `link` (messages), `far`
(connections to other hosts).

Processes. A session is gormapy's mpiexec with N workers, each of which connects to the owner by an abstract
Unix socket and sends a token that it got in its environment. Messages are `link`'s: a JSON header and bytes.
Ranks print to pipes, whose reading ends each worker passes to the owner: so the output of C code is read, too, and
no thread of the worker is needed for output. There is no thread in the owner: it reads while a command runs, on the
thread of that command.

Ranks on other hosts (%%mpi --hosts, and in an allocation) are started by the launcher that mpiexec hands over to. They
connect by TCP (`far`): standard output and error are connections then, and so is the pipe that says that the
owner has ended. The owner can't send them signals: they interrupt themselves when it says so.

States of a rank, as the owner sees it, with the event and the process that cause each transition:

    starting --hello, ready--> idle --run (owner)--> running --done (rank)--> idle
    idle --reset (owner, to all ranks at once)--> resetting --reset (rank)--> idle
    any --end of its socket--> gone

Order of output. A rank flushes its streams before it sends the end of what it runs, and the owner empties the rank's
pipes before it takes that message.

Interrupts. Ctrl-C, a deadlock, a time-out, and a rank that failed while others wait for it: the owner sends
SIGINT to the ranks that still run; each ends with an exception, also within a wait of MPI. Once
all are idle they make the collective reset, and the communicators are usable. Ranks that don't react within
some seconds run code that Python can't interrupt: then the session is ended, and the next command starts another (in a
notebook, after a second Ctrl-C).

Ends. The worker ends when its socket closes. It also has a pipe from the owner, which is never written to, and asks
Linux to send it SIGKILL when the pipe closes (F_SETSIG). So it ends with the owner, even in C code that holds
Python's lock. mpiexec ends when its ranks have, and its ranks end when it does.
The owner and the ranks are in separate POSIX sessions (setsid): a Ctrl-C to the owner's process group does not reach
the ranks.
"""
