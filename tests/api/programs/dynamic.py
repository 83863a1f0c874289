"""The programs of test_dynamic.py."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rankside import MPI, rank, size, until, world

CHILD = str(Path(__file__).with_name("dynamic_child.py"))


def spawn(what, n=2, comm=world, root=0, info=MPI.INFO_NULL, more=()):
    if comm.rank != root:
        return comm.Spawn(None, None, -1, root=root)
    return comm.Spawn(sys.executable, [CHILD, what, *more], n, info=info, root=root)


def everything(comm, high):
    """Messages, collectives, windows and files of two jobs."""
    n = comm.remote_size
    for other in range(n):
        assert comm.sendrecv((comm.rank, "x"), other, source=other) == (other, "x")
    long = np.full(1 << 18, comm.rank, "d")
    got = np.empty_like(long)
    requests = [comm.Irecv(got, comm.rank % n, 7)] if comm.rank < n else []
    if comm.rank < n:
        requests.append(comm.Isend(long, comm.rank % n, 7))
    MPI.Request.Waitall(requests)
    assert comm.rank >= n or (got == comm.rank).all()
    assert comm.allgather(comm.rank) == list(range(n))

    both = comm.Merge(high)
    assert both.size == comm.size + n
    assert both.allreduce(both.rank) == sum(range(both.size))
    total = np.zeros(1000)
    both.Allreduce(np.full(1000, 1.0), total)
    assert (total == both.size).all()
    right, left = (both.rank + 1) % both.size, (both.rank - 1) % both.size
    both.Sendrecv(np.full(1 << 18, both.rank, "d"), right, 0, got, left, 0)
    assert (got == left).all()
    windows(both, left, right)
    parts(both)
    file(both)
    both.Free()
    comm.Disconnect()


def windows(both, left, right):
    for kind in ("Allocate", "Create", "Allocate_shared", "Create_dynamic"):
        memory = np.zeros(both.size)
        if kind == "Create":
            window = MPI.Win.Create(memory, 8, comm=both)
        elif kind == "Create_dynamic":
            window = MPI.Win.Create_dynamic(comm=both)
            window.Attach(memory)
        else:
            window = getattr(MPI.Win, kind)(memory.nbytes, 8, comm=both)
            memory = np.frombuffer(window.tomemory(), "d")
        bases = both.allgather(MPI.Get_address(memory) if kind == "Create_dynamic" else 0)
        scale = 8 if kind == "Create_dynamic" else 1
        one = np.array([both.rank + 1.0])
        window.Fence()
        window.Put(one, right, bases[right] + scale * both.rank)
        window.Fence()
        assert memory[left] == left + 1, (kind, memory)
        window.Fence(MPI.MODE_NOSUCCEED)
        window.Lock_all()
        for r in range(both.size):
            window.Accumulate(np.ones(1), r, bases[r] + scale * left)
        window.Flush_all()
        window.Unlock_all()
        both.Barrier()
        window.Lock(both.rank)
        assert memory.sum() == left + 1 + both.size, (kind, memory)
        window.Unlock(both.rank)
        both.Barrier()
        if kind == "Create_dynamic":
            window.Detach(memory)
        window.Free()


def parts(both):
    """Communicators of some of the processes of both jobs, and an intercommunicator of mixed groups."""
    dup = both.Dup()
    assert dup.allgather(dup.rank) == list(range(both.size))
    dup.Free()
    half = both.Split(both.rank % 2)
    members = list(range(both.rank % 2, both.size, 2))
    assert half.allgather(both.rank) == members
    if both.size > 1:
        across = half.Create_intercomm(0, both, 1 - both.rank % 2, 5)
        assert across.allgather(both.rank) == list(range(1 - both.rank % 2, both.size, 2))
        across.Free()
    half.Free()
    group = both.group.Range_incl([(both.size - 1, 0, -1)])
    turned = both.Create(group)
    assert turned.rank == both.size - 1 - both.rank
    assert turned.bcast(turned.rank, 0) == 0
    alone = both.Create_group(group)
    assert alone.allreduce(1) == both.size
    for made in (turned, alone, group):
        made.Free()


def file(both):
    path = both.bcast(tempfile.mktemp(dir=os.getcwd()) if both.rank == 0 else None)
    handle = MPI.File.Open(both, path, MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
    handle.Write_at_all(8 * both.rank, np.array([float(both.rank)]))
    handle.Sync()
    both.Barrier()
    every = np.zeros(both.size)
    handle.Read_at_all(0, every)
    assert (every == np.arange(both.size)).all()
    handle.Close()


def two_jobs(n):
    everything(spawn("everything", n), high=False)


def of_each_rank():
    """Each rank spawns by itself, at the same time."""
    comm = spawn("greet", 2, MPI.COMM_SELF)
    assert [seen[0] for seen in comm.gather(None, root=MPI.ROOT)] == [0, 1]
    comm.Disconnect()


def of_a_part():
    """Only some ranks spawn, with another root."""
    half = world.Split(rank % 2)
    if rank % 2 == 0:
        comm = spawn("greet", 3, half, root=half.size - 1)
        seen = comm.gather(None, root=MPI.ROOT if half.rank == 0 else MPI.PROC_NULL)
        assert half.rank or len(seen) == 3
        comm.Disconnect()
    half.Free()


def what_children_get():
    with tempfile.TemporaryDirectory() as folder:
        info = MPI.Info.Create({"wdir": folder, "soft": "1:2"})
        comm = spawn("greet", 2, MPI.COMM_SELF, info=info, more=["-x", "a b", "*", "ä\n"])
        info.Free()
        for number, (r, n, program, where, args) in enumerate(comm.gather(None, root=MPI.ROOT)):
            assert (r, n, program) == (number, 2, 0)
            assert os.path.samefile(where, folder)
            assert args == ["-x", "a b", "*", "ä\n"], args
        comm.Disconnect()


def several_programs():
    errcodes = [0]
    comm = world.Spawn_multiple(
        [sys.executable] * 2, [[CHILD, "greet", "1"], [CHILD, "greet", "2"]], [1, 2], errcodes=errcodes
    )
    assert errcodes == [[MPI.SUCCESS], [MPI.SUCCESS] * 2]
    seen = comm.gather(None, root=MPI.ROOT if rank == 0 else MPI.PROC_NULL)
    assert rank or [(s[2], s[4]) for s in seen] == [(0, ["1"]), (1, ["2"]), (1, ["2"])]
    comm.Disconnect()


def generations():
    comm = spawn("grandchildren", 2)
    both = comm.Merge(False)
    seen = comm.gather(None, root=MPI.ROOT if rank == 0 else MPI.PROC_NULL)
    assert rank or seen == [[0, 1, 0, 1]] * 2, seen
    both.Free()
    comm.Disconnect()


def last_words():
    """What processes have sent arrives, although they have ended."""
    comm = spawn("last_words", 3, MPI.COMM_SELF)
    time.sleep(0.7)
    got = np.empty(1 << 18)
    for child in range(3):
        comm.Recv(got, child, 1)
        assert (got == np.arange(1 << 18)).all()
        assert comm.recv(source=child) == "short"


def busy_target():
    """A put does not wait for a process of another job that computes."""
    done = os.path.abspath("put")
    comm = spawn("busy", 1, MPI.COMM_SELF, more=[done])
    both = comm.Merge(False)
    window = MPI.Win.Create(np.zeros(1), comm=both)
    both.Barrier()
    window.Lock(1)
    window.Put(np.ones(1), 1)
    window.Unlock(1)
    open(done, "w").close()
    both.Barrier()
    window.Free()
    both.Free()
    comm.Disconnect()


def ports():
    half = world.Split(rank % 2)
    name = f"gormapy-test-{world.bcast(os.getpid())}"
    root = half.size - 1
    if rank % 2 == 0:
        port = MPI.Open_port() if half.rank == root else None
        if port:
            MPI.Publish_name(name, port)
        world.Barrier()
        for _ in range(3):
            comm = half.Accept(port, root=root)
            check(comm)
        if port:
            MPI.Unpublish_name(name, port)
            MPI.Close_port(port)
    else:
        world.Barrier()
        port = looked_up(name) if half.rank == root else None
        for _ in range(3):
            comm = half.Connect(port, root=root)
            check(comm)
    half.Free()


def check(comm):
    assert comm.allgather(rank) == list(range(1 - rank % 2, size, 2))
    comm.Disconnect()


def accepts(name):
    """The one of two jobs that accepts."""
    port = MPI.Open_port() if rank == 0 else None
    if rank == 0:
        MPI.Publish_name(name, port)
    everything(world.Accept(port), high=False)


def looked_up(name):
    """Return the port that is or will be published: who has published it may be late with the answer."""
    end = time.monotonic() + 20
    while True:
        try:
            return MPI.Lookup_name(name)
        except MPI.Exception:
            assert time.monotonic() < end
            time.sleep(0.02)


def connects(name):
    everything(world.Connect(looked_up(name) if rank == 0 else None), high=True)


def join():
    """Pairs of ranks join by a socket."""
    listener = socket.create_server(("127.0.0.1", 0)) if rank % 2 == 0 else None
    numbers = world.allgather(listener and listener.getsockname()[1])
    if listener:
        if rank + 1 == size:
            listener.close()
            return
        end, _ = listener.accept()
        listener.close()
    else:
        end = socket.create_connection(("127.0.0.1", numbers[rank - 1]))
    comm = MPI.Comm.Join(end.fileno())
    end.close()
    assert (comm.size, comm.remote_size) == (1, 1)
    assert comm.sendrecv(rank, 0, source=0) == rank ^ 1
    comm.Disconnect()


def fails(wanted, words, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except MPI.Exception as error:
        assert error.Get_error_class() == wanted, error
        assert words in str(error), error
    else:
        raise AssertionError(f"{call} does not fail")


def errors():
    alone = MPI.COMM_SELF
    fails(MPI.ERR_SPAWN, "command no-such-command was not found on PATH", alone.Spawn, "no-such-command")
    fails(MPI.ERR_SPAWN, "command /no/such does not exist", alone.Spawn, "/no/such")
    fails(MPI.ERR_SPAWN, "is not executable", alone.Spawn, "/etc/passwd")
    fails(MPI.ERR_SPAWN, "ended before it had initialised MPI", alone.Spawn, "true")
    fails(MPI.ERR_SPAWN, "with exit status 3", alone.Spawn, sys.executable, ["-c", "raise SystemExit(3)"], 2)
    fails(MPI.ERR_ARG, "maxprocs is 0", alone.Spawn, "true", maxprocs=0)
    fails(MPI.ERR_ROOT, "root 7", alone.Spawn, "true", root=7)
    elsewhere = MPI.Info.Create({"host": "elsewhere.invalid"})
    fails(MPI.ERR_SPAWN, "the host elsewhere.invalid", alone.Spawn, "true", info=elsewhere)
    nowhere = MPI.Info.Create({"wdir": "/no/such"})
    fails(MPI.ERR_SPAWN, "there is no directory /no/such", alone.Spawn, "true", info=nowhere)
    fails(MPI.ERR_PORT, "not the name of a port", alone.Connect, "nonsense")
    fails(MPI.ERR_PORT, "there is no open port", alone.Connect, f"gormapy-port:{socket.gethostname()}:00")
    fails(MPI.ERR_PORT, "port is one of host elsewhere", alone.Connect, "gormapy-port:elsewhere:00")
    fails(MPI.ERR_PORT, "no open port", alone.Accept, "nonsense")
    fails(MPI.ERR_PORT, "no open port", MPI.Close_port, "nonsense")
    fails(MPI.ERR_NAME, "is not published", MPI.Lookup_name, "no such service")
    fails(MPI.ERR_SERVICE, "has not published", MPI.Unpublish_name, "no such service", "x")
    fails(MPI.ERR_ARG, "can't be used", MPI.Comm.Join, 987)
    with tempfile.TemporaryFile() as file:
        fails(MPI.ERR_ARG, "is no connected socket", MPI.Comm.Join, file.fileno())
    name = f"gormapy-twice-{os.getpid()}"
    MPI.Publish_name(name, "port")
    fails(MPI.ERR_SERVICE, "published already", MPI.Publish_name, name, "port")
    assert MPI.Lookup_name(name) == "port"
    MPI.Unpublish_name(name, "port")
    port = MPI.Open_port()
    MPI.Close_port(port)
    fails(MPI.ERR_PORT, "no open port", alone.Accept, port)
    for info in (elsewhere, nowhere):
        info.Free()


def error_of_the_root():
    """All ranks learn that the root could not spawn, and the communicator stays usable."""
    try:
        world.Spawn("no-such-command" if rank == 1 else None, root=1)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_SPAWN, error
    else:
        raise AssertionError("Spawn does not fail")
    assert world.allreduce(1) == size


def child_fails(how):
    """Operations with a job that has failed end with errors; others go on."""
    comm = spawn(how, 2)
    pids = comm.gather(None, root=MPI.ROOT if rank == 0 else MPI.PROC_NULL)
    if rank == 0:
        comm.send("go", 1)
        begun = time.perf_counter()
        for r in (0, 1):
            fails(MPI.ERR_PROC_FAILED, f"rank {r} of another job", comm.recv, source=r, tag=9)
        assert time.perf_counter() - begun < 20
        for pid in pids:
            gone(pid)
    assert world.allreduce(1) == size
    fails(MPI.ERR_PROC_FAILED, "", comm.Disconnect)
    assert spawn_and_greet() == 2


def spawn_and_greet():
    comm = spawn("greet", 2)
    seen = comm.gather(None, root=MPI.ROOT if rank == 0 else MPI.PROC_NULL)
    comm.Disconnect()
    return len(seen) if rank == 0 else 2


def gone(pid):
    def ended():
        try:
            return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True

    until(ended, lambda: f"{pid} is left", 30)


def parent_ends(how):
    """The parent ends while its children wait for it."""
    comm = spawn("wait", 2)
    pids = comm.gather(None, root=MPI.ROOT if rank == 0 else MPI.PROC_NULL)
    if rank == 0:
        print(*pids, flush=True)
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "raises":
            raise ValueError("the parent fails")
        if how == "aborts":
            world.Abort(5)
        if how == "status":
            sys.exit(6)
    if how in ("killed", "raises", "aborts"):
        time.sleep(20)


def interrupted():
    """Ctrl-C ends a wait for a connection, and leaves the port usable."""
    port = MPI.Open_port()

    def fire(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, fire)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        MPI.COMM_SELF.Accept(port)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("Accept ended")
    time.sleep(0.2)
    import threading

    made = []
    thread = threading.Thread(target=lambda: made.append(MPI.COMM_SELF.Accept(port)))
    thread.start()
    try:
        MPI.COMM_SELF.Connect(port)
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_COMM, error  # a process can't be in both groups
    else:
        raise AssertionError("a process has connected to itself")
    thread.join(0.2)
    MPI.Close_port(port)


def synchronous_send_to_one_that_computes(times):
    """What a call has left queued is sent although the program makes no more calls."""
    for k in range(times):
        sent = os.path.abspath(f"sent-{k}")
        comm = spawn("synchronous", 1, MPI.COMM_SELF, more=[sent])
        comm.Probe(0, 1)
        time.sleep(0.2)
        comm.Recv(np.zeros(4), 0, 1)
        end = time.monotonic() + 20
        while not os.path.exists(sent):
            assert time.monotonic() < end, "the sender waits while this process computes"
        comm.Disconnect()


def nothing_is_left(times):
    def state():
        return len(os.listdir("/proc/self/fd")), Path("/proc/self/maps").read_text().count("\n")

    for i in range(times):
        comm = spawn("leave", 2, MPI.COMM_SELF)
        comm.allgather(1)
        both = comm.Merge(False)
        window = MPI.Win.Allocate(64, 1, comm=both)
        window.Fence()
        window.Free()
        both.Free()
        comm.Disconnect()
        if i == times // 2:
            before = state()
    # A launcher may take a moment to end.
    until(lambda: state()[0] <= before[0] + 2, lambda: (before, state()))
    until(lambda: state()[1] <= before[1] + 20, lambda: (before, state()))
    until(lambda: not any(map(child_zombie, Path("/proc").glob("[0-9]*/stat"))), lambda: "a zombie is left")


def child_zombie(path):
    try:
        fields = path.read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return int(fields[1]) == os.getpid() and fields[0] == "Z"


def cannot_be_connected():
    for call in (lambda: world.Spawn("true"), lambda: world.Accept("x"), lambda: world.Connect("x"), MPI.Open_port):
        fails(MPI.ERR_UNSUPPORTED_OPERATION, "can't be connected to others", call)


def stays_of_the_dead(kind):
    """What is left of a process that has ended is not taken for what another one does that is spawned later."""
    comm = spawn("sends", 1, MPI.COMM_SELF)
    got = np.zeros(1 << 17)
    if kind == "matched":
        left = comm.Mprobe(0, 1)
    elif kind == "message":
        left = comm.Irecv(got, 0, 9)
    else:
        left = comm.Isendrecv(np.zeros(1), 0, 8, got, 0, 9)
    pid = comm.recv(source=0, tag=2)
    comm.send("go", 0)
    comm.Free()
    gone(pid)
    other = spawn("sends", 1, MPI.COMM_SELF)
    if kind == "matched":
        fails(MPI.ERR_PROC_FAILED, "has ended", left.Recv, got)
    else:
        fails(MPI.ERR_PROC_FAILED, "has ended", left.Wait)
    other.Recv(got, 0, 1)
    assert (got == 3).all()
    other.send("go", 0)
    other.Free()


def memory_of_the_dead():
    """Views of the memory of a process of another job show it after that process has ended and is forgotten."""
    own = MPI.Alloc_mem(100)
    before = arenas()
    comm = spawn("greet", 1, MPI.COMM_SELF)
    comm.gather(None, root=MPI.ROOT)
    others = segments()  # this job's, and one of a child that has ended
    comm.Disconnect()
    comm = spawn("shows", 1, MPI.COMM_SELF)
    both = comm.Merge(False)
    window = MPI.Win.Create(own, comm=both)
    window.Fence()
    theirs = window.Shared_query(1)[0]
    views = [np.frombuffer(theirs, "i4"), np.asarray(theirs[8:]).view("i4")]
    assert views[0].size == 300_000
    window.Fence()
    window.Free()
    both.Free()
    pid = comm.recv(source=0)
    comm.Disconnect()
    del theirs
    gone(pid)

    def forgotten():
        comm = spawn("greet", 1, MPI.COMM_SELF)  # this takes back the numbers of processes that have ended
        comm.gather(None, root=MPI.ROOT)
        comm.Disconnect()
        return segments() == others

    until(forgotten, lambda: (others, segments()))
    assert arenas() == before + 1
    while views:
        view = views.pop()
        assert np.isin(view, (7, 0)).all()  # 0: the process has freed its memory when it ended
        view[:] = 7
    del view
    assert arenas() == before, (before, arenas())


def arenas():
    """Return how many processes' arenas are mapped."""
    return mapped("arena")


def segments():
    """Return how many jobs' segments are mapped."""
    return mapped("job")


def mapped(what):
    lines = Path("/proc/self/maps").read_text().splitlines()
    return len({line.split()[4] for line in lines if f"gormapy-{what}" in line})


def failed_disconnects(times):
    """A communicator whose Disconnect fails, because the others have ended, leaves nothing behind."""

    def state():
        mapped = Path("/proc/self/maps").read_text().count("gormapy")
        return len(os.listdir("/proc/self/fd")), mapped

    for i in range(times):
        comm = spawn("vanishes", 2, MPI.COMM_SELF)
        comm.recv(source=0)
        fails(MPI.ERR_PROC_FAILED, "", comm.Disconnect if i % 2 else comm.Free)
        if i == 2:
            before = state()

    def few():
        after = state()
        return after[0] <= before[0] + 1 and after[1] <= before[1] + 3

    until(few, lambda: (before, state()))


def socket_after_join():
    """It is as it was: blocking, and without anything to read."""
    listener = socket.create_server(("127.0.0.1", 0)) if rank == 0 else None
    port = world.bcast(listener and listener.getsockname()[1])
    end = listener.accept()[0] if listener else socket.create_connection(("127.0.0.1", port))
    comm = MPI.Comm.Join(end.fileno())
    assert os.get_blocking(end.fileno())
    end.sendall(b"x")
    assert end.recv(1) == b"x"
    comm.Disconnect()


def wrong_port_at_the_root():
    for port in (5, "a\0b", "\udcff"):
        for call in (world.Accept, world.Connect):
            try:
                call(port if rank == 1 else None, root=1)
            except (TypeError, MPI.Exception) as error:
                assert rank == 1 or error.Get_error_class() == MPI.ERR_PORT, error
            else:
                raise AssertionError("it does not fail")
    assert world.allreduce(1) == size


def a_client_that_gave_up():
    port = MPI.Open_port()
    code = f"from gormapy import MPI; print('connecting', flush=True); MPI.COMM_SELF.Connect({port!r})"
    first = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    first.stdout.readline()
    time.sleep(0.5)
    first.kill()
    first.wait()
    second = subprocess.Popen([sys.executable, "-c", code + ".Disconnect()"], stdout=subprocess.PIPE)
    MPI.COMM_SELF.Accept(port).Disconnect()
    second.communicate()
    assert second.returncode == 0


def forks_and_dies():
    comm = spawn("wait", 2, MPI.COMM_SELF)
    pids = comm.gather(None, root=MPI.ROOT)
    child = os.fork()
    if child == 0:
        time.sleep(3)
        os._exit(0)
    print(*pids, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
