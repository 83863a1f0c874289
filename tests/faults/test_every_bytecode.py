"""KeyboardInterrupt at every bytecode boundary of the calls that are written in Python; see rankside/boundaries.py.

make test tries some boundaries of each call with one length of message, `make interrupts` all of them with two.
"""

import os

import pytest

pytestmark = pytest.mark.exhaustive

WHOLE = os.environ.get("INTERRUPTS") == "whole"

# What rank 0 does and is interrupted in, and what rank 1 does. a is an array that is all value on both; t is a type that
# takes every second element, so that no call is done by the shim alone. expect(...) is on what has come.
CALLS = {
    "Send": ("world.Send([a, 1, t], 1)", "receive(world.Recv)"),
    "Ssend": ("world.Ssend([a, 1, t], 1)", "receive(world.Recv)"),
    "Bsend": ("world.Bsend([a, 1, t], 1)", "receive(world.Recv)"),
    "Recv": ("receive(world.Recv)", "world.Send([a, 1, t], 0)"),
    "Isend": ("world.Isend([a, 1, t], 1).Wait(MPI.Status())", "receive(world.Recv)"),
    "Isend, Test": ("poll(world.Isend([a, 1, t], 1))", "receive(world.Recv)"),
    "Isend, Free": ("world.Isend([a, 1, t], 1).Free()", "receive(world.Recv)"),
    "Irecv": ("receive(lambda *p: world.Irecv(*p).Wait(MPI.Status()))", "world.Send([a, 1, t], 0)"),
    "Irecv, Free": ("world.Irecv([a, 1, t], 1).Free()", "world.Send([a, 1, t], 0)"),
    "Irecv, Cancel": ("cancel(world.Irecv([a, 1, t], 1, 99))", "pass"),
    "Sendrecv": (
        "b = copy(a, 0); world.Sendrecv([a, 1, t], 1, 0, [b, 1, t], 1); expect(b[::2])",
        "b = copy(a, 0); world.Sendrecv([a, 1, t], 0, 0, [b, 1, t], 0); expect(b[::2])",
    ),
    "Sendrecv_replace": (
        "world.Sendrecv_replace([a, 1, t], 1, 0, 1); expect(a[::2])",
        "world.Sendrecv_replace([a, 1, t], 0, 0, 0); expect(a[::2])",
    ),
    "Mprobe": ("receive(lambda r, s: world.Mprobe(s).Recv(r))", "world.Send([a, 1, t], 0)"),
    "send": ("world.send(a.tolist(), 1)", "expect(world.recv(source=0))"),
    "ssend": ("world.ssend(a.tolist(), 1)", "expect(world.recv(source=0))"),
    "recv": ("expect(world.recv(source=1))", "world.send(a.tolist(), 0)"),
    "isend": ("world.isend(a.tolist(), 1).wait()", "expect(world.recv(source=0))"),
    "irecv": ("expect(world.irecv(bytearray(1 << 20), 1).wait())", "world.send(a.tolist(), 0)"),
    "sendrecv": (
        "expect(world.sendrecv(a.tolist(), 1, source=1))",
        "expect(world.sendrecv(a.tolist(), 0, source=0))",
    ),
    "mprobe": ("expect(world.mprobe(1).recv())", "world.send(a.tolist(), 0)"),
    "Waitall": (
        "MPI.Request.Waitall([world.Isend([a, 1, t], 1), world.Irecv([copy(a, 0), 1, t], 1)], [])",
        "world.Send([a, 1, t], 0); receive(world.Recv)",
    ),
    "Waitany": (
        "q = [world.Isend([a, 1, t], 1), world.Irecv([copy(a, 0), 1, t], 1)]; "
        "MPI.Request.Waitany(q); MPI.Request.Waitany(q)",
        "world.Send([a, 1, t], 0); receive(world.Recv)",
    ),
    "Waitsome": (
        "q = [world.Isend([a, 1, t], 1), world.Irecv([copy(a, 0), 1, t], 1)]\n    while any(q): MPI.Request.Waitsome(q)",
        "world.Send([a, 1, t], 0); receive(world.Recv)",
    ),
    "waitall": (
        "MPI.Request.waitall([world.isend(a.tolist(), 1), world.irecv(bytearray(1 << 20), 1)])",
        "world.send(a.tolist(), 0); expect(world.recv(source=0))",
    ),
    "persistent": (
        "r = world.Send_init([a, 1, t], 1); r.Start(); r.Wait(); r.Free()",
        "receive(world.Recv)",
    ),
    "persistent, dropped": ("r = world.Send_init([a, 1, t], 1); MPI.Prequest.Startall([r])", "receive(world.Recv)"),
    "Bcast": ("world.Bcast([a, 1, t])", "b = copy(a, 0); world.Bcast([b, 1, t]); expect(b[::2])"),
    "Ibcast": ("world.Ibcast([a, 1, t]).Wait()", "b = copy(a, 0); world.Ibcast([b, 1, t]).Wait(); expect(b[::2])"),
    "Gather": (
        "world.Gather(a, copy(np.tile(a, 2), 0))",
        "world.Gather(a, None)",
    ),
    "Allgather": (
        "b = copy(np.tile(a, 2), 0); world.Allgather(a, b); expect(b)",
        "b = copy(np.tile(a, 2), 0); world.Allgather(a, b); expect(b)",
    ),
    "Iallgather": (
        "b = copy(np.tile(a, 2), 0); world.Iallgather(a, b).Wait(); expect(b)",
        "b = copy(np.tile(a, 2), 0); world.Iallgather(a, b).Wait(); expect(b)",
    ),
    "Alltoall": (
        "b = copy(a, 0); world.Alltoall(a, b); expect(b)",
        "b = copy(a, 0); world.Alltoall(a, b); expect(b)",
    ),
    "Alltoallv": (
        "n = [len(a) // 2] * 2; b = copy(a, 0); world.Alltoallv([a, n], [b, n]); expect(b)",
        "n = [len(a) // 2] * 2; b = copy(a, 0); world.Alltoallv([a, n], [b, n]); expect(b)",
    ),
    "Reduce": ("world.Reduce(a, copy(a, 0), MPI.MAX)", "world.Reduce(a, None, MPI.MAX)"),
    "Iallreduce": (
        "b = copy(a, 0); world.Iallreduce(a, b, MPI.MAX).Wait(); expect(b)",
        "b = copy(a, 0); world.Iallreduce(a, b, MPI.MAX).Wait(); expect(b)",
    ),
    "own operation": (
        "b = copy(a, 0); world.Allreduce(a, b, maximum); expect(b)",
        "b = copy(a, 0); world.Allreduce(a, b, maximum); expect(b)",
    ),
    "bcast": ("world.bcast(a.tolist())", "expect(world.bcast(None))"),
    "gather": ("world.gather(a.tolist())", "world.gather(a.tolist())"),
    "scatter": ("world.scatter([a.tolist()] * 2)", "expect(world.scatter(None))"),
    "allgather": ("world.allgather(a.tolist())", "expect(sum(world.allgather(a.tolist()), []))"),
    "allreduce": ("world.allreduce(value, max)", "expect(world.allreduce(value, max))"),
    "Put": ("win.Lock(1); win.Put([a, 1, t], 1, [0, 1, t]); win.Unlock(1)", "pass"),
    "Get": ("win.Lock(1); win.Get([a, 1, t], 1, [0, 1, t]); win.Unlock(1)", "pass"),
    "Accumulate": ("win.Lock(1); win.Accumulate([a, 1, t], 1, [0, 1, t]); win.Unlock(1)", "pass"),
    "Rput": ("win.Lock(1); win.Rput([a, 1, t], 1, [0, 1, t]).Wait(); win.Unlock(1)", "pass"),
    "Rget": ("win.Lock(1); win.Rget([a, 1, t], 1, [0, 1, t]); win.Unlock(1)", "pass"),
    "Put, created": ("own.Lock(1); own.Put([a, 1, t], 1, [0, 1, t]); own.Unlock(1)", "pass"),
    "Fence": (
        "win.Fence(); win.Put([a, 1, t], 1, [0, 1, t]); win.Fence(MPI.MODE_NOSUCCEED)",
        "win.Fence(); win.Fence(MPI.MODE_NOSUCCEED); expect(np.frombuffer(win, 'i8')[:len(a):2])",
    ),
    "Dup": ("world.Dup().Free()", "world.Dup().Free()"),
    "Split": ("world.Split(0, rank).Free()", "world.Split(0, rank).Free()"),
    "File": ("file.Write_at(0, [a, 1, t]); file.Read_at(0, [a, 1, t]); expect(a[::2])", "pass"),
    "File, nonblocking": (
        "file.Iwrite_at(0, [a, 1, t]).Wait(); file.Iread_at(0, [a, 1, t]).Wait(); expect(a[::2])",
        "pass",
    ),
}

SIZES = {"short": 64, "long": 1 << 14}
TRIALS = [(call, size) for call in CALLS for size in SIZES]


@pytest.mark.parametrize(("call", "size"), TRIALS if WHOLE else TRIALS[::2][::2] + TRIALS[1::2][1::2])
def test_interrupted_everywhere(mpirun, call, size):
    one, other = CALLS[call]
    count = SIZES[size]
    most = 10_000 if WHOLE else 12
    result = mpirun(
        2,
        f"""
import numpy as np
from boundaries import *

t = MPI.INT64_T.Create_vector({count} // 2, 1, 2).Commit()
win = MPI.Win.Allocate(8 * {count}, 8, comm=world)
own = MPI.Win.Create(np.zeros({count}, "i8"), 8, comm=world)
file = MPI.File.Open(MPI.COMM_SELF, f"file{{rank}}", MPI.MODE_CREATE | MPI.MODE_RDWR)

def largest(i, o, t):
    into = np.frombuffer(o, "i8")
    np.maximum(np.frombuffer(i, "i8"), into, out=into)

maximum = MPI.Op.Create(largest, True)
MPI.Attach_buffer(np.zeros(1 << 24, "u1"))

def copy(array, value):
    return mapped(value, len(array))

def poll(request):
    while not request.Test():
        pass

def cancel(request):
    request.Cancel()
    request.Wait()

def parts(value, a):
    def expect(got):
        assert (np.asarray(got) == value).all(), (value, got)
    def receive(call):
        b = copy(a, 0)
        call([b, 1, t], 1 - rank)
        expect(b[::2])
    return expect, receive

def first(a, value):
    expect, receive = parts(value, a)
    {one}

def second(a, value):
    expect, receive = parts(value, a)
    {other}

tried, total = Trials(first, second, {count}).run({most})
if rank == 0:
    print("tried", tried, "of", total)
file.Close()
        """,
        timeout=900 if WHOLE else 60,
    )
    print(result.stdout.strip())
    assert "tried" in result.stdout
