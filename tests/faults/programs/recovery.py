"""The programs of test_recovery.py: ranks fail, and the others revoke, shrink and go on."""

import os
import random
import signal
import sys
import threading
import time

import numpy as np
from program import command
from rankside import MPI, rank, size, world

VICTIM = 1
LONG = 1 << 20  # bytes of a message that is not sent at once
FAILURES = (MPI.ERR_PROC_FAILED, MPI.ERR_PROC_FAILED_PENDING, MPI.ERR_REVOKED)


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def die_soon():
    threading.Timer(0.3, kill).start()


def error_of(call, *args):
    """Return the class of the error that a call raises, SUCCESS if it raises none."""
    try:
        call(*args)
    except MPI.Exception as error:
        return error.Get_error_class()
    return MPI.SUCCESS


def repeat(call):
    """Call again and again, until it raises."""
    while True:
        call()


def testing(call, *args):
    while not call(*args):
        time.sleep(0.001)


def window(make, epoch):
    def be(c):
        win = make(c)
        c.Barrier()
        epoch(win, c)

    return be


def created(c):
    return MPI.Win.Create(np.zeros(64), 8, comm=c)


def allocated(c):
    return MPI.Win.Allocate(512, 8, comm=c)


def fence(win, c):
    win.Fence()
    if c.rank == 0:
        win.Put(np.ones(1), VICTIM)
    repeat(win.Fence)


def passive(call):
    def epoch(win, c):
        win.Lock_all()
        while True:
            call(win)
            win.Flush_all()
            if world.Iprobe(VICTIM):
                pass

    return epoch


def locked(win, c):
    """Lock the victim's part until it has died; that it is in memory of the node, which lives on, is no error."""
    while not c.Get_failed().size:
        win.Lock(VICTIM)
        win.Unlock(VICTIM)


def post_wait(win, c):
    group = c.group.Incl([VICTIM])
    win.Post(group)
    win.Wait()


def start_complete(win, c):
    group = c.group.Incl([VICTIM])
    win.Start(group)
    win.Put(np.ones(1), VICTIM)
    win.Complete()


def across(call):
    """Be in a call in an intercommunicator of the even and the odd ranks."""

    def be(c):
        half = c.Split(c.rank % 2, c.rank)
        inter = half.Create_intercomm(0, c, 1 - c.rank % 2)
        c.Barrier()
        if c.rank == VICTIM:
            die_soon()
        try:
            call(inter)
        except MPI.Exception as error:
            assert error.Get_error_class() in FAILURES, error
            inter.Revoke()
            shrunk = inter.Shrink() if size > 2 else None
            if shrunk is not None:
                assert shrunk.size + shrunk.remote_size == size - 1
                assert shrunk.allreduce(1) == shrunk.remote_size
            raise

    return be


def persistent(c):
    requests = [c.Recv_init(np.zeros(1), VICTIM, 5), c.Send_init(np.zeros(LONG), VICTIM, 5)]
    while True:
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)


def partitioned(c):
    request = c.Precv_init(np.zeros(4), 4, VICTIM, 5)
    request.Start()
    request.Wait()


def free(c):
    d = c.Dup()
    c.Barrier()
    time.sleep(0.1)
    d.Free()


def disconnect(c):
    d = c.Dup()
    d.Irecv(np.zeros(1), VICTIM)
    c.Barrier()
    d.Disconnect()


def open_file(c):
    name = c.bcast(os.path.abspath("file"))  # in the folder of the test
    c.Barrier()
    try:
        MPI.File.Open(c, name, MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE)
    finally:
        if rank == 0 and os.path.exists(name):
            os.unlink(name)


def shrink(c):
    """Shrink again and again, which never fails, until a process is missing."""
    n = c.size
    while n == c.size:
        shrunk = c.Shrink()
        n = shrunk.size
        assert error_of(shrunk.Free) in (MPI.SUCCESS, MPI.ERR_PROC_FAILED)  # the ranks need not get the same


def requests_of(c):
    return [c.Irecv(np.zeros(1), VICTIM, tag) for tag in range(3)]


# What the ranks other than the victim are in when it is killed.
STATES = {
    "Recv": lambda c: c.Recv(np.zeros(1), VICTIM),
    "recv": lambda c: c.recv(source=VICTIM),
    "recv from any": lambda c: c.recv(),
    "Recv from any": lambda c: c.Recv(np.zeros(1), MPI.ANY_SOURCE),
    "Probe": lambda c: c.Probe(VICTIM),
    "Probe of any": lambda c: c.Probe(),
    "mprobe": lambda c: c.mprobe(VICTIM),
    "Iprobe": lambda c: testing(c.Iprobe, VICTIM),
    "Iprobe of any": lambda c: testing(c.Iprobe),
    "Send": lambda c: repeat(lambda: c.Send(np.zeros(LONG), VICTIM)),
    "Ssend": lambda c: c.Ssend(np.zeros(1), VICTIM),
    "Sendrecv": lambda c: c.Sendrecv(np.zeros(1), VICTIM, 0, np.zeros(1), VICTIM),
    "Wait": lambda c: c.Irecv(np.zeros(1), VICTIM).Wait(),
    "Test": lambda c: testing(c.Irecv(np.zeros(1), VICTIM).Test),
    "Waitall": lambda c: MPI.Request.Waitall(requests_of(c)),
    "Waitany": lambda c: MPI.Request.Waitany(requests_of(c)),
    "Waitsome": lambda c: MPI.Request.Waitsome(requests_of(c)),
    "Testall": lambda c: testing(MPI.Request.Testall, requests_of(c)),
    "Testsome": lambda c: testing(MPI.Request.Testsome, requests_of(c)),
    "Testany": lambda c: testing(lambda: MPI.Request.Testany(requests_of(c))[1]),
    "persistent": persistent,
    "partitioned": partitioned,
    "Barrier": lambda c: c.Barrier(),
    "Ibarrier": lambda c: c.Ibarrier().Wait(),
    "Bcast": lambda c: c.Bcast(np.zeros(4), VICTIM),
    "long Bcast": lambda c: c.Bcast(np.zeros(LONG), VICTIM),
    "Allreduce": lambda c: c.Allreduce(np.zeros(4), np.zeros(4)),
    "long Allreduce": lambda c: c.Allreduce(np.zeros(LONG), np.zeros(LONG)),
    "Iallreduce": lambda c: c.Iallreduce(np.zeros(4), np.zeros(4)).Wait(),
    "Alltoall": lambda c: c.Alltoall(np.zeros(c.size), np.zeros(c.size)),
    "Scan": lambda c: c.Scan(np.zeros(4), np.zeros(4)),
    "gather": lambda c: c.gather(rank, root=VICTIM),
    "allgather": lambda c: c.allgather({"rank": rank}),
    "Dup": lambda c: c.Dup(),
    "Split": lambda c: c.Split(0, rank),
    "Create_group": lambda c: c.Create_group(c.group),
    "Free": free,
    "Disconnect": disconnect,
    "Win.Allocate": allocated,
    "Win.Create": created,
    "Fence, allocated": window(allocated, fence),
    "Fence, created": window(created, fence),
    "Put": window(created, passive(lambda win: win.Put(np.ones(1), VICTIM))),
    "Get": window(created, passive(lambda win: win.Get(np.ones(1), VICTIM))),
    "Fetch_and_op": window(created, passive(lambda win: win.Fetch_and_op(np.ones(1), np.zeros(1), VICTIM))),
    "Lock": window(allocated, locked),
    "Wait of a window": window(allocated, post_wait),
    "Complete": window(allocated, start_complete),
    "File.Open": open_file,
    "Agree": lambda c: repeat(lambda: c.Agree(1)),
    "Shrink": shrink,
    "intercommunicator, Barrier": across(lambda c: c.Barrier()),
    "intercommunicator, recv": across(lambda c: c.recv()),
    "intercommunicator, Allreduce": across(lambda c: c.Allreduce(np.zeros(4), np.zeros(4))),
    "intercommunicator, Agree": across(lambda c: repeat(lambda: c.Agree(1))),
}
# In these the victim takes part until it dies.
TOGETHER = [s for s in STATES if s.startswith(("Fence", "intercomm"))] + [
    "Put",
    "Get",
    "Fetch_and_op",
    "Lock",
    "Wait of a window",
    "Complete",
    "Free",
    "Disconnect",
    "File.Open",
    "Agree",
    "Shrink",
]


def all_work(c):
    """Communicate in every way that a solver does."""
    n = c.size
    assert c.allreduce(1) == n
    assert c.allgather(c.rank) == list(range(n))
    right, left = (c.rank + 1) % n, (c.rank - 1) % n
    assert c.sendrecv(c.rank, right, source=left) == left
    total = np.empty(LONG // 8)
    c.Allreduce(np.ones(LONG // 8), total)
    assert (total == n).all()
    win = MPI.Win.Allocate(8, 1, comm=c)
    win.Fence()
    win.Put(np.array([c.rank], "q"), right)
    win.Fence()
    assert np.frombuffer(win, "q")[0] == left
    win.Free()
    half = c.Split(c.rank % 2, c.rank)
    assert half.allreduce(1) == half.size
    half.Free()
    c.Barrier()


def others_go_on(state):
    c = world.Dup()
    c.Barrier()
    if rank == VICTIM:
        if not state.startswith("intercomm"):  # there it is for the call, not for what is made before
            die_soon()
        if state in TOGETHER:
            error_of(lambda: (STATES[state](c), time.sleep(9)))
        time.sleep(9)
    try:
        STATES[state](c)
        repeat(c.Barrier)
    except MPI.Exception as error:
        assert error.Get_error_class() in FAILURES, error
    c.Revoke()
    assert c.Is_revoked()
    assert error_of(c.Barrier) == error_of(c.send, 1, rank) == error_of(c.Dup) == MPI.ERR_REVOKED
    shrunk = c.Shrink()
    assert shrunk.size == size - 1 and shrunk.rank == rank - (rank > VICTIM), (shrunk.rank, shrunk.size)
    failed = c.Get_failed()
    assert MPI.Group.Translate_ranks(failed, [0], c.group) == [VICTIM] and failed.size == 1
    assert c.Ack_failed() == 1
    assert c.Agree(0b111 & ~(1 << rank)) == (0b111 & ~sum(1 << r for r in range(size) if r != VICTIM))
    c.Free()
    all_work(shrunk)
    shrunk.Free()
    print("went on")


# Calls to which all ranks contribute.
OF_ALL = {
    "Barrier": lambda c, win: c.Barrier(),
    "Ibarrier": lambda c, win: c.Ibarrier().Wait(),
    "Iallreduce": lambda c, win: c.Iallreduce(np.zeros(4), np.zeros(4)).Wait(),
    "allgather": lambda c, win: c.allgather(rank),
    "Fence": lambda c, win: win.Fence(),
}


def one_has_given_up(call):
    c = world.Dup()
    win = allocated(c)
    win.Fence()
    if rank == VICTIM:
        kill()
    if rank == 3:
        for source in (0, 2):
            world.Recv(np.zeros(1), source)
    else:
        assert error_of(OF_ALL[call], c, win) == MPI.ERR_PROC_FAILED
        world.Send(np.zeros(1), 3)


def all_learn_of_the_end(in_flight):
    """Most ranks of a barrier await living ones, which get an error and send no more."""
    c = world.Dup()
    c.Barrier()
    if rank == VICTIM:
        kill()
    requests = [c.Ibarrier() if i % 2 else c.Iallreduce(np.zeros(4), np.zeros(4)) for i in range(in_flight)]
    assert [error_of(request.Wait) for request in requests] == [MPI.ERR_PROC_FAILED] * in_flight
    others = [r for r in range(size) if r not in (0, VICTIM)]
    for r in others if rank == 0 else [0]:
        world.Sendrecv(np.zeros(1), r, recvbuf=np.zeros(1), source=r)


def others_learn_in_other_calls():
    """Only some ranks of a barrier wait for its end. Most await living ones, which wait for a message."""
    c = world.Dup()
    c.Barrier()
    if rank == VICTIM:
        kill()
    request = c.Ibarrier()
    living = [r for r in range(size) if r != VICTIM]
    for r in living:  # one after the other finds the end, and then lets the next one look
        if r == rank:
            assert error_of(request.Wait) == MPI.ERR_PROC_FAILED
        pass_on(living, r)


def pass_on(living, root):
    """Send a message from one of the living ranks to the others."""
    for r in living:
        if rank == root and r != root:
            world.Send(np.zeros(1), r)
        elif rank == r and r != root:
            world.Recv(np.zeros(1), root)


# Calls of which a rank that runs ahead finds that another one has ended, and others await only that rank.
AHEAD = {
    "Bcast": lambda c: c.Bcast(np.zeros(4), size - 1),
    "bcast": lambda c: c.bcast(None, size - 1),
    "Scatter": lambda c: c.Scatter(np.zeros(4 * size), np.zeros(4), size - 1),
    "Scan": lambda c: c.Scan(np.zeros(4), np.zeros(4)),
}


def one_is_ahead(call):
    """A root ends a call when its peers do not leave earlier ones; those that have left them learn of it."""
    c = world.Dup()
    c.Barrier()
    if rank == VICTIM:
        kill()
    assert error_of(lambda: repeat(lambda: AHEAD[call](c))) == MPI.ERR_PROC_FAILED
    pass_on([r for r in range(size) if r != VICTIM], 0)
    pass_on([r for r in range(size) if r != VICTIM], size - 1)


# Calls in which a rank has done its part when it has sent to rank 0.
TO_ROOT = {
    "gather": lambda c: c.gather(bytes(c.rank)),
    "Gather": lambda c: c.Gather(np.zeros(4), np.zeros(4 * size) if rank == 0 else None),
    "Igather": lambda c: c.Igather(np.zeros(4), np.zeros(4 * size) if rank == 0 else None).Wait(),
    "Gatherv": lambda c: c.Gatherv(np.zeros(4), np.zeros(4 * size) if rank == 0 else None),
    "Ireduce": lambda c: c.Ireduce(np.zeros(4), np.zeros(4) if rank == 0 else None).Wait(),
}


def one_has_contributed(call):
    """Rank 1 sends what it has to and dies. The last rank is late."""
    c = world.Dup()
    c.Barrier()
    if rank == size - 1:
        while not c.Get_failed().size:
            time.sleep(0.01)
        time.sleep(0.3)
    TO_ROOT[call](c)
    if rank == VICTIM:
        kill()
    if rank == 0:
        world.Send(np.zeros(1), size - 1)  # what is sent to a rank that has ended can't be received
    elif rank == size - 1:
        world.Recv(np.zeros(1), 0)


def any_source_after_an_acknowledgement():
    c = world.Dup()
    c.Barrier()
    if rank == VICTIM:
        kill()
    if rank:
        world.recv(source=0)
        c.send(rank, 0)
        return
    got = np.zeros(1, "i")
    request = c.Irecv(got, MPI.ANY_SOURCE)
    late = c.irecv(source=MPI.ANY_SOURCE)
    for call in (request.Wait, late.wait):
        assert error_of(call) == MPI.ERR_PROC_FAILED_PENDING
    assert request and late
    assert error_of(MPI.Request.Waitall, [request, late]) in (MPI.ERR_PROC_FAILED_PENDING, MPI.ERR_IN_STATUS)
    assert error_of(MPI.Request.Waitany, [request]) == error_of(request.Test) == MPI.ERR_PROC_FAILED_PENDING
    assert error_of(c.recv) == error_of(c.Probe) == error_of(c.Iprobe) == MPI.ERR_PROC_FAILED
    assert request and late
    request.Cancel()
    request.Wait()
    assert c.Get_failed().size == c.Ack_failed(1) == 1
    assert c.Ack_failed(0) == 1
    for r in range(2, size):
        world.send(0, r)
    assert late.wait() == 2 or size > 3
    for _ in range(3, size):
        assert c.recv() > 1
    assert error_of(c.recv, None, VICTIM) == MPI.ERR_PROC_FAILED


def agreements_while_ranks_die(seed):
    """Agree and shrink again and again; what the ranks have got is compared at the end."""
    common, own = random.Random(int(seed)), random.Random(f"{seed} {rank}")
    c, history, rounds = world.Dup(), [], 0
    world.Barrier()
    deadline = time.monotonic() + 1.5
    dies_at = time.monotonic() + own.uniform(0, 1.2) if own.random() < 0.6 and rank != common.randrange(size) else None
    if dies_at is not None:
        threading.Timer(max(0, dies_at - time.monotonic()), kill).start()
    while True:
        rounds += 1
        time.sleep(own.choice((0, 0, 0, 0.001, 0.01)))
        try:
            got = c.Agree(-1 ^ (time.monotonic() > deadline))
            history.append((rounds, got))
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED, error
            history.append((rounds, "failed"))
            c.Ack_failed()
            got = -1
        if not got & 1:
            break
        if rounds % 3 == 0:
            shrunk = c.Shrink()
            history.append((rounds, tuple(shrunk.group.Translate_ranks(None, world.group))))
            if rounds % 2:
                c.Revoke()
            try:
                c.Free()
            except MPI.Exception as error:
                assert error.Get_error_class() in FAILURES, error
            c = shrunk
        if rounds % 5 == 0:
            flag = np.array([7], "i")
            requests = [c.Iagree(flag), c.Iagree(np.array([1], "i"))]
            for request in requests:
                error_of(request.Wait)
            assert flag[0] == 7
    while dies_at is not None:
        time.sleep(1)  # until it is killed: else it could be when some ranks have compared, and others have not
    while True:
        last = c.Shrink()
        try:
            all_of_them = last.allgather(history)
            break
        except MPI.Exception:
            last.Revoke()
            c = last
    assert all(h == history for h in all_of_them), all_of_them
    if last.rank == 0:
        print("agreed", rounds, last.size)


def survivors_use_the_window():
    for make in (allocated, created):
        c = world.Dup()
        win = make(c)
        win.Lock_all()
        win.Put(np.ones(1), VICTIM)
        win.Flush(VICTIM)
        c.Barrier()
        if rank == VICTIM and make is created:
            kill()
        if make is allocated:
            win.Unlock_all()
            win.Free()
            continue
        assert error_of(lambda: repeat(lambda: (win.Put(np.ones(1), VICTIM), win.Flush(VICTIM)))) == MPI.ERR_PROC_FAILED  # noqa: B023
        other = size - 1 if rank == 0 else 0
        got = np.zeros(1)
        win.Accumulate(np.ones(1), other, op=MPI.SUM)
        win.Flush(other)
        win.Get(got, other)
        win.Flush(other)
        assert got[0] >= 1
        assert error_of(win.Unlock_all) in (MPI.SUCCESS, MPI.ERR_PROC_FAILED)
        assert error_of(win.Fence) == MPI.ERR_PROC_FAILED
        shrunk = c.Shrink()
        shrunk.Barrier()
        assert error_of(win.Free) in (MPI.SUCCESS, MPI.ERR_PROC_FAILED)
        all_work(shrunk)


def revoked_early():
    """A rank that is slow to get its communicator learns that it has been revoked."""
    for round in range(30):
        c = world.Dup()
        if rank == round % size:
            c.Revoke()
        assert error_of(lambda: repeat(c.Barrier)) == MPI.ERR_REVOKED  # noqa: B023
        c.Free()
        world.Barrier()


def partitioned_when_revoked():
    """A partitioned request ends when the communicator is revoked, also one of which no partition is ready."""
    for side in ("send", "receive"):
        c = world.Dup()
        make = c.Psend_init if side == "send" else c.Precv_init
        request = make(np.zeros(4), 4, (rank + 1) % size, 5)
        request.Start()
        world.Barrier()
        if rank == 0:
            c.Revoke()
        assert error_of(request.Wait) == MPI.ERR_REVOKED
        c.Free()


def meeting_when_revoked():
    """The root of Accept or Connect, to which nobody comes, learns that the communicator is revoked."""
    for call in ("Accept", "Connect"):
        c = world.Dup()
        port = MPI.Open_port()
        timer = threading.Timer(0.1, c.Revoke)
        if rank == 0:
            timer.start()
        assert error_of(getattr(c, call), port) == MPI.ERR_REVOKED
        if rank == 0:
            timer.join()
        MPI.Close_port(port)
        c.Free()
        world.Barrier()


def agreements_when_freed():
    """Agreements that are under way when the communicator is freed complete."""
    for revoked in (False, True):
        c = world.Dup()
        world.Barrier()
        time.sleep(0.05 * rank)
        if revoked:
            c.Revoke()
        flag = np.array([6 + rank % 2], "i")
        agreement = c.Iagree(flag)
        shrunk, shrinking = c.Ishrink()
        c.Free()
        agreement.Wait()
        shrinking.Wait()
        assert flag[0] == 6
        all_work(shrunk)
        shrunk.Free()


def agreements_when_freed_and_ranks_die(seed):
    """The same, while ranks die: what the others get is the same."""
    common = random.Random(int(seed))
    communicators = [world.Dup() for _ in range(200)]
    world.Barrier()
    if rank in common.sample(range(size), size // 2):
        threading.Timer(random.Random(f"{seed} {rank}").uniform(0, 0.05), kill).start()
    history = []
    for c in communicators:
        flag = np.array([-1 ^ 1 << rank], "i")
        request = c.Iagree(flag)
        assert error_of(c.Free) in (MPI.SUCCESS, MPI.ERR_PROC_FAILED)
        history.append((error_of(request.Wait), int(flag[0])))
    last = world.Shrink()
    while True:
        try:
            all_of_them = last.allgather(history)
            break
        except MPI.Exception:
            last.Revoke()
            last = last.Shrink()
    assert all(h == history for h in all_of_them), all_of_them
    assert {code for code, _ in history} <= {MPI.SUCCESS, MPI.ERR_PROC_FAILED}, history


def spawned_go_on(who):
    """A rank of one job, or of both, dies, and the others go on together."""
    parent = MPI.Comm.Get_parent()
    if parent == MPI.COMM_NULL:
        python, *arguments = command(spawned_go_on, who)
        inter = world.Spawn(python, arguments, maxprocs=3)
    else:
        inter = parent
    everyone = inter.Merge(parent != MPI.COMM_NULL)
    everyone.Barrier()
    dying = {"parent": parent == MPI.COMM_NULL, "child": parent != MPI.COMM_NULL, "both": True}[who]
    if rank == VICTIM and dying:
        kill()
    assert error_of(lambda: repeat(everyone.Barrier)) in FAILURES
    everyone.Revoke()
    shrunk = everyone.Shrink()
    assert shrunk.size == everyone.size - (2 if who == "both" else 1), shrunk.size
    assert shrunk.allreduce(1) == shrunk.size
    halves = inter.Shrink()
    assert halves.size + halves.remote_size == shrunk.size
    assert halves.allreduce(1) == halves.remote_size
    for c in (everyone, shrunk, halves):
        c.Free()
    print("went on")
    assert error_of(inter.Disconnect) == MPI.ERR_PROC_FAILED


def failures_beyond_recovery(how):
    if rank == VICTIM:
        {"abort": lambda: world.Abort(5), "exit": lambda: sys.exit(3), "kill": kill}[how]()
    error_of(world.recv, None, VICTIM)
    if how == "kill all":
        kill()


def calls_that_do_not_match():
    c = world.Dup()
    call = c.Shrink if rank == 0 else lambda: c.Agree(1)
    assert error_of(call) == MPI.ERR_OTHER
    assert c.Agree(1) == 1
    c.Free()
