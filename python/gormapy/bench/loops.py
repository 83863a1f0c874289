"""The measured loops. Each function takes the MPI module and a communicator and is called by all its ranks.

It yields rows: rank 0's are the results. `budget` is how many seconds a row takes. The loops need NumPy and the
module that they are given, nothing else of gormapy.
"""

from itertools import cycle

import numpy as np

from .channel import channel
from .collectives import collectives, collectives_allocated, collectives_changing
from .contention import contention
from .everyday import everyday_collectives, everyday_files, everyday_local, everyday_messages, everyday_windows
from .idle import idle
from .label import label
from .notified import notified
from .numpy_copy import numpy_copy
from .objects import alive, creation, objects
from .oversubscribed import CORES, oversubscribed
from .pair import pair_of
from .passive import passive, passive_asleep, passive_c_call
from .sockets import sockets
from .timing import BUDGET, batches, row
from .trace import trace
from .transpose import transpose

SIZES = (8, 65536, 1 << 20, 4 << 20)
WINDOW = 16  # operations that are under way at once when bandwidth is measured


def windows(MPI, comm, size, shared=False):
    """Make a window in each of the two ways, of the library's memory and of the user's, and free it afterwards.

    With `shared` there is a third way: memory of the user that the library allocated.
    """
    win = MPI.Win.Allocate(size, 1, comm=comm)
    yield "Win.Allocate", win
    win.Free()
    memory = np.zeros(size, "b")
    win = MPI.Win.Create(memory, 1, comm=comm)
    yield "Win.Create", win
    win.Free()
    if shared:
        memory = MPI.Alloc_mem(size)
        win = MPI.Win.Create(memory, 1, comm=comm)
        yield "Win.Create on Alloc_mem", win
        win.Free()
        MPI.Free_mem(memory)


def locked(MPI, comm, size, calls, budget, shared=False):
    """Time calls on rank 0, which has a shared lock on rank 1, while all other ranks wait in a barrier."""
    peer = 1 if comm.size > 1 else 0
    for kind, win in windows(MPI, comm, size, shared):
        if comm.rank == 0:
            win.Lock(peer, MPI.LOCK_SHARED)
            for name, call in calls(win, peer):
                yield row(f"{name} + Flush, {kind}", batches(comm, call, budget, together=False))
            win.Unlock(peer)
        comm.Barrier()


def transfers(name):
    """Make the calls of Put or Get, of each size."""

    def calls(win, peer):
        transfer, flush = getattr(win, name), win.Flush
        for size in SIZES:
            memory = np.zeros(size, "b")

            def call(memory=memory):
                transfer(memory, peer)
                flush(peer)

            yield f"{name} {label(size)}", call

    return calls


def put_latency(MPI, comm, budget=BUDGET):
    """Time Put and Flush from rank 0 to rank 1 that waits in a barrier."""
    return locked(MPI, comm, SIZES[-1], transfers("Put"), budget, shared=True)


def get_latency(MPI, comm, budget=BUDGET):
    """Time Get and Flush by rank 0 from rank 1 that waits in a barrier."""
    return locked(MPI, comm, SIZES[-1], transfers("Get"), budget, shared=True)


def atomics(MPI, comm, budget=BUDGET):
    """Time Accumulate, Fetch_and_op and Compare_and_swap from rank 0 to rank 1 that waits in a barrier."""

    def calls(win, peer):
        flush = win.Flush
        one, old, new = np.ones(1), np.zeros(1), np.zeros(1, "l")
        expected, found = np.zeros(1, "l"), np.zeros(1, "l")

        def accumulate():
            win.Accumulate(one, peer, op=MPI.SUM)
            flush(peer)

        def fetch_and_op():
            win.Fetch_and_op(one, old, peer, 0, MPI.SUM)
            flush(peer)

        def compare_and_swap():
            win.Compare_and_swap(new, expected, found, peer, 0)
            flush(peer)

        yield "Accumulate 8 B", accumulate
        yield "Fetch_and_op 8 B", fetch_and_op
        yield "Compare_and_swap 8 B", compare_and_swap

    return locked(MPI, comm, 8, calls, budget)


def lock_put_unlock(MPI, comm, budget=BUDGET):
    """Time Lock, Put and Unlock from rank 0 to rank 1 that waits in a barrier."""
    peer = 1 if comm.size > 1 else 0
    memory = np.zeros(8, "b")
    for kind, win in windows(MPI, comm, 8):
        for lock_type, name in ((MPI.LOCK_SHARED, "shared"), (MPI.LOCK_EXCLUSIVE, "exclusive")):

            def call(win=win, lock_type=lock_type):
                win.Lock(peer, lock_type)
                win.Put(memory, peer)
                win.Unlock(peer)

            if comm.rank == 0:
                yield row(f"Lock {name} + Put 8 B + Unlock, {kind}", batches(comm, call, budget, together=False))
        comm.Barrier()


def fence(MPI, comm, budget=BUDGET):
    """Time a Put to the right-hand neighbour and a Fence, on all ranks."""
    right = (comm.rank + 1) % comm.size
    memory = np.zeros(8, "b")
    for kind, win in windows(MPI, comm, 8):
        win.Fence()

        def put_fence(win=win):
            win.Put(memory, right)
            win.Fence()

        yield row(f"Put 8 B + Fence, {kind}", batches(comm, put_fence, budget))
        yield row(f"Fence, {kind}", batches(comm, win.Fence, budget))
        win.Fence(MPI.MODE_NOSUCCEED)


def pingpong(MPI, comm, budget=BUDGET):
    """Time half a round trip of Send and Recv between ranks 0 and 1."""
    pair = pair_of(MPI, comm, "pingpong")
    if pair != MPI.COMM_NULL:
        peer = 1 - pair.rank
        for size in SIZES:
            memory = np.zeros(size, "b")

            def call(memory=memory):
                if peer:
                    pair.Send(memory, peer)
                    pair.Recv(memory, peer)
                else:
                    pair.Recv(memory, peer)
                    pair.Send(memory, peer)

            times = [t / 2 for t in batches(pair, call, budget)]
            yield row(f"Send/Recv half round trip {label(size)}", times)
        pair.Free()
    comm.Barrier()


def bandwidth(MPI, comm, budget=BUDGET):
    """Time streams from rank 0 to rank 1: many messages, or many Puts, under way at once."""
    pair = pair_of(MPI, comm, "bandwidth")
    if pair != MPI.COMM_NULL:
        answer = np.zeros(1, "b")
        waitall = MPI.Request.Waitall
        for size in SIZES[:3]:
            memory = [np.zeros(size, "b") for _ in range(WINDOW)]

            def stream(memory=memory):
                if pair.rank == 0:
                    waitall([pair.Isend(part, 1) for part in memory])
                    pair.Recv(answer, 1)
                else:
                    waitall([pair.Irecv(part, 0) for part in memory])
                    pair.Send(answer, 0)

            yield _rate(f"{WINDOW} Isend/Irecv {label(size)} + answer", batches(pair, stream, budget), size)
        for kind, win in windows(MPI, pair, SIZES[2]):
            if pair.rank == 0:
                win.Lock(1, MPI.LOCK_SHARED)
                for size in SIZES[:3]:
                    memory = np.zeros(size, "b")

                    def puts(win=win, memory=memory):
                        for _ in range(WINDOW):
                            win.Put(memory, 1)
                        win.Flush(1)

                    times = batches(pair, puts, budget, together=False)
                    yield _rate(f"{WINDOW} Put {label(size)} + Flush, {kind}", times, size)
                win.Unlock(1)
            pair.Barrier()
        pair.Free()
    comm.Barrier()


def _rate(what, seconds, size):
    result = row(what, seconds)
    result["MB/s"] = round(WINDOW * size / result["us"], 1)
    return result


def ring(MPI, comm, budget=BUDGET):
    """Time a turn of persistent requests around the ring of all ranks."""
    out, into = np.zeros(1, "i"), np.zeros(1, "i")
    requests = [
        comm.Send_init(out, (comm.rank + 1) % comm.size),
        comm.Recv_init(into, (comm.rank - 1) % comm.size),
    ]
    start_send, start_recv, waitall = requests[0].Start, requests[1].Start, MPI.Request.Waitall

    def turn():
        start_send()
        start_recv()
        waitall(requests)

    times = batches(comm, turn, budget)
    for request in requests:
        request.Free()
    yield row("persistent ring (Start 2, Waitall)", times)


def barrier(MPI, comm, budget=BUDGET):
    """Time the barrier on all ranks."""
    yield row("Barrier", batches(comm, comm.Barrier, budget))


def allreduce(MPI, comm, budget=BUDGET):
    """Time the sum of arrays of doubles over all ranks."""
    for size in SIZES:
        send, recv = np.zeros(size // 8), np.zeros(size // 8)

        def call(send=send, recv=recv):
            comm.Allreduce(send, recv)

        yield row(f"Allreduce {label(size)}", batches(comm, call, budget))


def bcast(MPI, comm, budget=BUDGET):
    """Time Bcast from each rank in turn, so that no root runs ahead of the others."""
    for size in SIZES:
        memory, roots = np.zeros(size, "b"), cycle(range(comm.size))

        def call(memory=memory, roots=roots):
            comm.Bcast(memory, next(roots))

        yield row(f"Bcast {label(size)}, roots in turn", batches(comm, call, budget, turns=comm.size))


LOOPS = {
    loop.__name__: loop
    for loop in (
        put_latency,
        get_latency,
        atomics,
        lock_put_unlock,
        fence,
        pingpong,
        bandwidth,
        sockets,
        ring,
        barrier,
        allreduce,
        bcast,
        collectives,
        collectives_changing,
        collectives_allocated,
        everyday_messages,
        everyday_collectives,
        everyday_windows,
        everyday_local,
        everyday_files,
        objects,
        creation,
        alive,
        passive,
        passive_asleep,
        passive_c_call,
        idle,
        contention,
        oversubscribed,
        transpose,
        numpy_copy,
        channel,
        notified,
        trace,
    )
}
OF_FOUR = (
    "ring",
    "barrier",
    "allreduce",
    "bcast",
    "collectives",
    "collectives_changing",
    "collectives_allocated",
    "objects",
    "creation",
)
RANKS = {name: 4 if name in OF_FOUR else 2 for name in LOOPS}
RANKS.update(contention=16, oversubscribed=4 * CORES)
