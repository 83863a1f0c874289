"""The program of test_every_bytecode.py: see rankside/boundaries.py."""

import numpy as np
from boundaries import Trials, mapped
from rankside import MPI, rank, size, world

other = 1 - rank


class Trial:
    """What a call uses: an array that is all value on both ranks, a type that takes every second element, and the rest.

    With such a type no call is done by the shim alone.
    """

    def __init__(self, things, array, value):
        self.vector, self.win, self.own, self.file = things
        self.array, self.value = array, value

    @property
    def part(self):
        """The specification of every second element of the array."""
        return self.of(self.array)

    @property
    def there(self):
        """The specification of the same at a target."""
        return [0, 1, self.vector]

    def of(self, array):
        return [array, 1, self.vector]

    def blank(self, times=1):
        """Return an array for what is to come, of so many times the length."""
        return mapped(0, times * len(self.array))

    def expect(self, got):
        assert (np.asarray(got) == self.value).all(), (self.value, got)

    def receive(self, call):
        """Receive every second element by a call with a specification and a rank."""
        into = self.blank()
        call(self.of(into), other)
        self.expect(into[::2])


def poll(request):
    while not request.Test():
        pass


def cancel(request):
    request.Cancel()
    request.Wait()


def sendrecv(t):
    into = t.blank()
    world.Sendrecv(t.part, other, 0, t.of(into), other)
    t.expect(into[::2])


def sendrecv_replace(t):
    world.Sendrecv_replace(t.part, other, 0, other)
    t.expect(t.array[::2])


def both(t):
    """Return a request to send, and one to receive."""
    return [world.Isend(t.part, other), world.Irecv(t.of(t.blank()), other)]


def wait_for_any(t):
    requests = both(t)
    MPI.Request.Waitany(requests)
    MPI.Request.Waitany(requests)


def wait_for_some(t):
    requests = both(t)
    while any(requests):
        MPI.Request.Waitsome(requests)


def answer(t):
    world.Send(t.part, 0)
    t.receive(world.Recv)


def answer_objects(t):
    world.send(t.array.tolist(), 0)
    t.expect(world.recv(source=0))


def persistent(t):
    request = world.Send_init(t.part, 1)
    request.Start()
    request.Wait()
    request.Free()


def receive_bcast(t):
    into = t.blank()
    world.Bcast(t.of(into))
    t.expect(into[::2])


def receive_ibcast(t):
    into = t.blank()
    world.Ibcast(t.of(into)).Wait()
    t.expect(into[::2])


def into_blank(call, times=1):
    """Return a function that makes a call with an array and one for the result, which is to be all value."""

    def function(t):
        into = t.blank(times)
        request = call(t.array, into)
        if request is not None:
            request.Wait()
        t.expect(into)

    return function


def alltoallv(t):
    counts = [len(t.array) // 2] * 2
    into = t.blank()
    world.Alltoallv([t.array, counts], [into, counts])
    t.expect(into)


def largest(i, o, datatype):
    into = np.frombuffer(o, "i8")
    np.maximum(np.frombuffer(i, "i8"), into, out=into)


maximum = MPI.Op.Create(largest, True)


def locked(win, call):
    """Make a call in an epoch of a window, which has every second element of the array and of the target's memory."""
    win.Lock(1)
    call()
    win.Unlock(1)


def put_between_fences(t):
    t.win.Fence()
    t.win.Put(t.part, 1, t.there)
    t.win.Fence(MPI.MODE_NOSUCCEED)


def fence(t):
    t.win.Fence()
    t.win.Fence(MPI.MODE_NOSUCCEED)
    t.expect(np.frombuffer(t.win, "i8")[: len(t.array) : 2])


def write_and_read(t):
    t.file.Write_at(0, t.part)
    t.file.Read_at(0, t.part)
    t.expect(t.array[::2])


def write_and_read_nonblocking(t):
    t.file.Iwrite_at(0, t.part).Wait()
    t.file.Iread_at(0, t.part).Wait()
    t.expect(t.array[::2])


def receive(t):
    t.receive(world.Recv)


def send(t):
    world.Send(t.part, 0)


def receive_object(t):
    t.expect(world.recv(source=0))


def nothing(t):
    pass


allgather = into_blank(world.Allgather, size)
iallgather = into_blank(world.Iallgather, size)
alltoall = into_blank(world.Alltoall)
iallreduce = into_blank(lambda a, b: world.Iallreduce(a, b, MPI.MAX))
own_operation = into_blank(lambda a, b: world.Allreduce(a, b, maximum))

# What rank 0 does and is interrupted in, and what rank 1 does.
CALLS = {
    "Send": (lambda t: world.Send(t.part, 1), receive),
    "Ssend": (lambda t: world.Ssend(t.part, 1), receive),
    "Bsend": (lambda t: world.Bsend(t.part, 1), receive),
    "Recv": (receive, send),
    "Isend": (lambda t: world.Isend(t.part, 1).Wait(MPI.Status()), receive),
    "Isend, Test": (lambda t: poll(world.Isend(t.part, 1)), receive),
    "Isend, Free": (lambda t: world.Isend(t.part, 1).Free(), receive),
    "Irecv": (lambda t: t.receive(lambda *p: world.Irecv(*p).Wait(MPI.Status())), send),
    "Irecv, Free": (lambda t: world.Irecv(t.part, 1).Free(), send),
    "Irecv, Cancel": (lambda t: cancel(world.Irecv(t.part, 1, 99)), nothing),
    "Sendrecv": (sendrecv, sendrecv),
    "Sendrecv_replace": (sendrecv_replace, sendrecv_replace),
    "Mprobe": (lambda t: t.receive(lambda r, s: world.Mprobe(s).Recv(r)), send),
    "send": (lambda t: world.send(t.array.tolist(), 1), receive_object),
    "ssend": (lambda t: world.ssend(t.array.tolist(), 1), receive_object),
    "recv": (lambda t: t.expect(world.recv(source=1)), lambda t: world.send(t.array.tolist(), 0)),
    "isend": (lambda t: world.isend(t.array.tolist(), 1).wait(), receive_object),
    "irecv": (
        lambda t: t.expect(world.irecv(bytearray(1 << 20), 1).wait()),
        lambda t: world.send(t.array.tolist(), 0),
    ),
    "sendrecv": (
        lambda t: t.expect(world.sendrecv(t.array.tolist(), 1, source=1)),
        lambda t: t.expect(world.sendrecv(t.array.tolist(), 0, source=0)),
    ),
    "mprobe": (lambda t: t.expect(world.mprobe(1).recv()), lambda t: world.send(t.array.tolist(), 0)),
    "Waitall": (lambda t: MPI.Request.Waitall(both(t), []), answer),
    "Waitany": (wait_for_any, answer),
    "Waitsome": (wait_for_some, answer),
    "waitall": (
        lambda t: MPI.Request.waitall([world.isend(t.array.tolist(), 1), world.irecv(bytearray(1 << 20), 1)]),
        answer_objects,
    ),
    "persistent": (persistent, receive),
    "persistent, dropped": (lambda t: MPI.Prequest.Startall([world.Send_init(t.part, 1)]), receive),
    "Bcast": (lambda t: world.Bcast(t.part), receive_bcast),
    "Ibcast": (lambda t: world.Ibcast(t.part).Wait(), receive_ibcast),
    "Gather": (lambda t: world.Gather(t.array, t.blank(2)), lambda t: world.Gather(t.array, None)),
    "Allgather": (allgather, allgather),
    "Iallgather": (iallgather, iallgather),
    "Alltoall": (alltoall, alltoall),
    "Alltoallv": (alltoallv, alltoallv),
    "Reduce": (lambda t: world.Reduce(t.array, t.blank(), MPI.MAX), lambda t: world.Reduce(t.array, None, MPI.MAX)),
    "Iallreduce": (iallreduce, iallreduce),
    "own operation": (own_operation, own_operation),
    "bcast": (lambda t: world.bcast(t.array.tolist()), lambda t: t.expect(world.bcast(None))),
    "gather": (lambda t: world.gather(t.array.tolist()), lambda t: world.gather(t.array.tolist())),
    "scatter": (lambda t: world.scatter([t.array.tolist()] * 2), lambda t: t.expect(world.scatter(None))),
    "allgather": (
        lambda t: world.allgather(t.array.tolist()),
        lambda t: t.expect(np.concatenate(world.allgather(t.array.tolist()))),
    ),
    "allreduce": (lambda t: world.allreduce(t.value, max), lambda t: t.expect(world.allreduce(t.value, max))),
    "Put": (lambda t: locked(t.win, lambda: t.win.Put(t.part, 1, t.there)), nothing),
    "Get": (lambda t: locked(t.win, lambda: t.win.Get(t.part, 1, t.there)), nothing),
    "Accumulate": (lambda t: locked(t.win, lambda: t.win.Accumulate(t.part, 1, t.there)), nothing),
    "Rput": (lambda t: locked(t.win, lambda: t.win.Rput(t.part, 1, t.there).Wait()), nothing),
    "Rget": (lambda t: locked(t.win, lambda: t.win.Rget(t.part, 1, t.there)), nothing),
    "Put, created": (lambda t: locked(t.own, lambda: t.own.Put(t.part, 1, t.there)), nothing),
    "Fence": (put_between_fences, fence),
    "Dup": (lambda t: world.Dup().Free(), lambda t: world.Dup().Free()),
    "Split": (lambda t: world.Split(0, rank).Free(), lambda t: world.Split(0, rank).Free()),
    "File": (write_and_read, nothing),
    "File, nonblocking": (write_and_read_nonblocking, nothing),
}


def interrupted_everywhere(call, count, most):
    file = MPI.File.Open(MPI.COMM_SELF, f"file{rank}", MPI.MODE_CREATE | MPI.MODE_RDWR)
    things = (
        MPI.INT64_T.Create_vector(count // 2, 1, 2).Commit(),
        MPI.Win.Allocate(8 * count, 8, comm=world),
        MPI.Win.Create(np.zeros(count, "i8"), 8, comm=world),
        file,
    )
    MPI.Attach_buffer(np.zeros(1 << 24, "u1"))
    first, second = [lambda array, value, function=f: function(Trial(things, array, value)) for f in CALLS[call]]
    tried, total = Trials(first, second, count).run(most)
    if rank == 0:
        print("tried", tried, "of", total)
    file.Close()
