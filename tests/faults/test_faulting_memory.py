"""Every buffer argument of every call on memory that faults at its n-th page: see programs/faulting_memory.py."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

PROGRAM = Path(__file__).parent / "programs" / "faulting_memory.py"


GROUPS = ["messages", "collectives", "onesided", "files", "passive"]


@pytest.mark.parametrize("n", [2, 4, 7])
def test_faulting_memory(mpirun, n):
    mpirun(n, PROGRAM, *GROUPS, timeout=100)


# Providers of libfabric that are software write to a window in C: gocore/fabric/ofi/doc.go.
@pytest.mark.shm("devices see to memory of windows that can't be accessed")
@pytest.mark.parametrize("n", [2, 4])
def test_windows_over_faulting_memory(mpirun, n):
    mpirun(n, PROGRAM, "targets", timeout=100)


@pytest.mark.shm("kernel copies are between ranks that share memory")
@pytest.mark.parametrize("n", [2, 4])
def test_without_copies_by_the_kernel(mpirun, n):
    mpirun(n, PROGRAM, env={"GORMAPY_ONE_COPY": "0"}, timeout=100)


@pytest.mark.parametrize("n", [2, 4])
def test_over_tcp(mpirun, n):
    mpirun(n, PROGRAM, env={"GORMAPY_FABRIC": "tcp"}, timeout=100)


AHEAD = """
    from badmemory import protected
    from rankside import *
    import numpy as np
    good, bad = np.zeros(512, "l"), protected()
    if rank == 0:
        # More collectives than a rank can be ahead of others by what it has posted.
        requests = [world.Ibcast(good if i < {n} - 1 else bad, root=0) for i in range({n})]
    else:
        requests = [world.Ibcast(good, root=0) for i in range({n})]
    errors = []
    for request in requests:
        try:
            request.Wait()
        except MPI.Exception as error:
            errors.append(error)
    assert len(errors) == 1, errors
    assert errors[0].Get_error_class() == (MPI.ERR_BUFFER if rank == 0 else MPI.ERR_OTHER), errors
    assert world.allreduce(1) == size
"""


@pytest.mark.parametrize("fabric", ["", "tcp"])
@pytest.mark.parametrize("n", [7, 12, 20])
def test_ranks_that_are_far_ahead_tell_of_it(mpirun, fabric, n):
    mpirun(3, AHEAD.format(n=n), env={"GORMAPY_FABRIC": fabric} if fabric else {})


@pytest.mark.parametrize("later", [7, 8, 9, 20])
def test_late_news_do_not_cover_newer_ones(mpirun, later):
    mpirun(
        2,
        f"""
        from badmemory import protected
        from rankside import *
        import numpy as np
        request = world.Ibcast(protected() if rank == 1 else np.zeros(512, "l"), root=0)
        for i in range({later}):
            small = np.full(1, i if rank == 1 else -1)
            world.Bcast(small, root=1)
            assert small[0] == i
        try:
            request.Wait()
        except MPI.Exception as error:
            assert rank == 1 or error.Get_error_class() == MPI.ERR_OTHER, error
        assert world.allreduce(1) == size
        """,
    )


@pytest.mark.parametrize("address", [8, 4000, 65_000])
def test_addresses_close_to_zero(mpirun, address):
    mpirun(
        2,
        f"""
        import numpy as np
        from rankside import *
        nothing = MPI.buffer.fromaddress({address}, 64)
        win = MPI.Win.Create(np.zeros(64, "u1"), 1, comm=world)
        win.Fence()
        for call in (
            lambda: world.Isend([nothing, MPI.BYTE], 1 - rank).Wait(),
            lambda: world.Irecv([nothing, MPI.BYTE], 1 - rank),
            lambda: world.Ibcast([nothing, MPI.BYTE], root=0),
            lambda: world.Allreduce([nothing, MPI.BYTE], [np.zeros(64, "u1"), MPI.BYTE]),
            lambda: win.Put([nothing, MPI.BYTE], 1 - rank),
            lambda: win.Get([nothing, MPI.BYTE], 1 - rank),
        ):
            with fails(MPI.ERR_BUFFER):
                call()
        win.Fence()
        win.Free()
        """,
    )


@pytest.mark.parametrize("call", ["Sendrecv", "Isendrecv"])
@pytest.mark.parametrize("pages", [1, 400])
def test_a_receive_does_not_wait_for_what_its_own_send_did_not_send(mpirun, call, pages):
    mpirun(
        1,
        f"""
        import numpy as np
        from badmemory import protected
        from rankside import *
        bad = protected({pages})
        with fails(MPI.ERR_BUFFER):
            request = world.{call}(bad, 0, recvbuf=np.zeros_like(bad))
            request.Wait()
        got = np.zeros(2)
        world.Sendrecv(np.ones(2), 0, recvbuf=got)
        assert got.all()
        """,
    )


def test_a_long_sendrecv_ends_with_the_send_that_a_peer_can_not_read(mpirun):
    """After the first slices of its wait, between which Python looks at signals."""
    mpirun(
        2,
        """
        import signal, time
        import numpy as np
        from badmemory import protected
        from rankside import *
        bad, got = protected(400), np.zeros(2)
        if rank == 0:
            seen = []
            signal.signal(signal.SIGALRM, lambda *_: seen.append(1))
            signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
            with fails(MPI.ERR_BUFFER):
                world.Sendrecv(bad, 1, recvbuf=np.zeros_like(bad), source=1, recvtag=5)
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert seen
        else:
            time.sleep(0.5)
            try:
                world.Recv(np.zeros_like(bad), 0)
            except MPI.Exception:
                pass
            else:
                raise AssertionError("memory that can't be read was received")
        world.Sendrecv(np.ones(2), 1 - rank, recvbuf=got)
        assert got.all()
        """,
    )
