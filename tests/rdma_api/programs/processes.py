"""The programs of test_processes.py. All but the first one know nothing of MPI; what two say to each other goes by pipes."""

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time

import numpy as np
from program import command

from gormapy import rdma


def ranks_connect_by_their_communicator(backend):
    from gormapy import MPI

    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    context = rdma.Context(backend=backend)
    pd, cq, recv_cq = context.alloc_pd(), context.create_cq(), context.create_cq()
    window = np.zeros((size, 1000), np.int64)
    mr = pd.register(window)
    mine = pd.register(np.full(1000, rank + 1, np.int64))
    remote = comm.allgather(mr.remote)
    pairs = []
    for peer in range(size):  # of the two, the lower rank's number is the tag: many connections at once
        qp = pd.create_qp(cq, recv_cq)
        qp.connect(comm=comm, rank=peer, tag=min(rank, peer))
        qp.post_recv(wr_id=peer)
        pairs.append(qp)
    for peer in range(size):
        pairs[peer].post_write_imm(mine, remote[peer], rank, remote_offset=8000 * rank)
    assert len(cq.wait(60, size)) == size
    got = recv_cq.wait(60, size)
    assert sorted(w.imm_data for w in got) == list(range(size)), got
    assert all((window[peer] == peer + 1).all() for peer in range(size))
    comm.Barrier()
    print("fine", rank)


def hear(stream):
    return pickle.loads(bytes.fromhex(stream.readline()))


def say(stream, thing):
    stream.write(pickle.dumps(thing).hex() + "\n")
    stream.flush()


def start(function, *arguments):
    """Begin a process that calls a function."""
    return subprocess.Popen(
        command(function, *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def passive_side(backend):
    context = rdma.Context(backend=backend)
    pd, cq = context.alloc_pd(), context.create_cq()
    qp = pd.create_qp(cq)
    mr = pd.register(1 << 20)
    say(sys.stdout, (qp.info(), mr.remote))
    qp.connect(hear(sys.stdin))
    sys.stdin.readline()  # not one call of rdma until the peer has written and read
    assert mr.read() == b"z" * (1 << 20)
    print("passive side is fine", flush=True)


def programs_that_exchange_their_infos(backend):
    context = rdma.Context(backend=backend)
    pd, cq = context.alloc_pd(), context.create_cq()
    qp = pd.create_qp(cq)
    mr = pd.register(1 << 20)
    child = start(passive_side, backend)
    info, remote = hear(child.stdout)
    qp.connect(info)
    say(child.stdin, qp.info())
    mr.write(b"z" * (1 << 20))
    qp.post_write(mr, remote)
    cq.wait(60)
    mr.write(bytes(1 << 20))
    qp.post_read(mr, remote)
    cq.wait(60)
    assert mr.read() == b"z" * (1 << 20)
    child.stdin.write("look\n")
    child.stdin.flush()
    print(child.stdout.read(), end="")
    assert child.wait() == 0


def peer(backend, fork):
    """Be there until a line comes, or be killed; a forked child may stay longer."""
    context = rdma.Context(backend=backend)
    pd, cq, recv_cq = context.alloc_pd(), context.create_cq(), context.create_cq()
    qp = pd.create_qp(cq, recv_cq)
    mr = pd.register(8 << 20)
    say(sys.stdout, (qp.info(), mr.remote))
    qp.connect(hear(sys.stdin))
    if fork and os.fork() == 0:
        time.sleep(60)
    sys.stdin.readline()
    os._exit(0)


def a_peer_that_ends(backend, op, how):
    context = rdma.Context(backend=backend)
    pd, cq, recv_cq = context.alloc_pd(), context.create_cq(), context.create_cq()
    qp = pd.create_qp(cq, recv_cq)
    mr = pd.register(8 << 20)
    post = {"write": qp.post_write, "read": qp.post_read}[op]
    child = start(peer, backend, how == "fork")
    info, remote = hear(child.stdout)
    qp.connect(info)
    say(child.stdin, qp.info())
    post(mr, remote)
    cq.wait(60)
    qp.post_recv(mr, wr_id=9)
    for i in range(100):
        post(mr, remote, wr_id=i)
    if how == "fork":
        child.stdin.write("exit\n")
        child.stdin.flush()
        child.wait()
    else:
        child.kill()
    done = cq.wait(100, 100, check=False)
    names = [w.status_name for w in done]
    bad = [name for name in names if name != "IBV_WC_SUCCESS"]
    assert [w.wr_id for w in done] == list(range(100))
    if bad or how != "fork":
        assert bad[0] == "IBV_WC_RETRY_EXC_ERR" and set(bad[1:]) <= {"IBV_WC_WR_FLUSH_ERR"}, bad
        assert names[: 100 - len(bad)] == ["IBV_WC_SUCCESS"] * (100 - len(bad))
    try:
        post(mr, remote)
        cq.wait(60)
        raise SystemExit("posting to a dead peer went well")
    except rdma.Error as error:
        print(error.operation, error.status, error.sizes["length"])
    if how == "fork":
        os.killpg(child.pid, signal.SIGKILL)


def connected(backend):
    """Return a context, its domain, a completion queue, and two queue pairs that are connected with each other."""
    context = rdma.Context(backend=backend)
    pd, cq = context.alloc_pd(), context.create_cq()
    one, other = pd.create_qp(cq), pd.create_qp(cq)
    one.connect(other.info())
    other.connect(one.info())
    return context, pd, cq, one, other


def a_forked_child_is_told_and_does_no_harm(backend):
    context, pd, cq, one, other = connected(backend)
    mr = pd.register(64)
    child = os.fork()
    if child == 0:
        try:
            one.post_write(mr, mr.remote)
        except RuntimeError as error:
            print("child:", "forked" in str(error))
        del one, other, mr, cq, pd, context
        sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    one.post_write(mr, mr.remote)
    print("parent:", cq.wait(60)[0].ok)


def listening():
    """Return the address at which the core listens."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            it = socket.socket(fileno=int(name))
            try:
                if it.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    return it.getsockname()
            finally:
                it.detach()


def descriptors():
    """Return what each descriptor is."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # that of the listing
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    return found


def a_forked_child_keeps_what_is_the_programs(backend):
    context = rdma.Context(backend=backend)
    address = listening()
    pair = socket.socketpair()
    mine = [*pair, *os.pipe()]
    if backend == "tcp":  # sockets that have the port of one of the core's
        datagrams, stream = socket.socket(type=socket.SOCK_DGRAM), socket.socket()
        datagrams.bind(address)
        stream.bind(("127.0.0.9", address[1]))
        stream.listen()
        mine += [datagrams, stream, socket.create_connection(stream.getsockname())]
    numbers = {it if isinstance(it, int) else it.fileno() for it in mine}
    before = descriptors()
    child = os.fork()
    if child == 0:
        left = descriptors()
        of_core = [fd for fd in left if left[fd].startswith("socket:") and fd not in numbers]
        os._exit(bool(of_core or numbers - set(left) or set(left) - set(before)))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    context.close()


def connect(backend):
    """Make a connection and use it."""
    context, pd, cq, one, _other = connected(backend)
    mr = pd.register(64)
    one.post_write(mr, mr.remote)
    assert cq.wait(10)[0].ok
    context.close()


def connections_after_forks_that_signals_end(backend):
    """A signal whose handler raises comes at any time of a fork; hooks of the program run around it, too."""
    lock = threading.Lock()  # of the program, which holds it around a connection as well
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    sys.unraisablehook = lambda ignored: None
    me = os.getpid()
    for turn in range(40):
        signal.setitimer(signal.ITIMER_REAL, 50e-6 * (1 + turn))
        try:
            if os.fork() == 0:
                os._exit(0)
            time.sleep(0.05)
        except KeyboardInterrupt:
            if os.getpid() != me:
                os._exit(0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        if lock.locked():
            lock.release()
        if turn % 8 == 7:
            connect(backend)

    def connecting():
        for _ in range(5):
            with lock:
                connect(backend)

    thread = threading.Thread(target=connecting)
    thread.start()
    while thread.is_alive():
        if os.fork() == 0:
            os._exit(0)
        time.sleep(0.001)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)
    print("fine")


def a_program_may_end_with_everything_open(backend):
    global context, pd, cq, one, other, mr  # open when the interpreter ends
    context, pd, cq, one, other = connected(backend)
    mr = pd.register(1 << 20)
    one.post_recv(mr)
    for _ in range(50):
        one.post_write(mr, mr.remote)
        other.post_read(mr, mr.remote)
    print("end")
