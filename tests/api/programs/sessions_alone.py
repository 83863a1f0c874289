"""Sessions around the world model: the argument says which of the two begins and ends when."""

import atexit
import sys
import threading
import time

import gormapy

how = sys.argv[1]
gormapy.rc.initialize = how in ("outlives", "late")
from gormapy import MPI  # noqa: E402


def use(session, tag):
    group = session.Create_group("mpi://WORLD")
    comm = MPI.Intracomm.Create_from_group(group, tag)
    assert comm.allreduce(1) == group.size
    comm.Free()
    group.Free()


if how == "only":  # no world model at all, one session after the other
    for k in range(2):
        session = MPI.Session.Init()
        assert not MPI.Is_initialized() and not MPI.Is_finalized()
        use(session, f"only {k}")
        session.Finalize()
elif how == "before":  # the world model begins and ends within a session
    session = MPI.Session.Init()
    MPI.Init()
    assert MPI.Is_initialized()
    MPI.COMM_WORLD.Barrier()
    MPI.Finalize()
    assert MPI.Is_finalized()
    use(session, "before")
    session.Finalize()
elif how == "outlives":
    session = MPI.Session.Init()
    MPI.Finalize()
    use(session, "outlives")
    MPI.Session.Init().Finalize()
    session.Finalize()
elif how == "no world model":  # to finalize: the session is left alone
    session = MPI.Session.Init()
    try:
        MPI.Finalize()
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_OTHER and "MPI.Init was not called" in str(error), error
    else:
        raise AssertionError("the world model has ended without a beginning")
    use(session, "first")
    MPI.Init()
    MPI.Finalize()
    use(session, "second")
    session.Finalize()
elif how == "as the last one ends":
    session = MPI.Session.Init()
    MPI.Init()
    world = MPI.COMM_WORLD
    if world.rank == 0:
        unsent = world.Isend(bytearray(1 << 23), 1)  # the end waits for it
        MPI.Finalize()
        thread = threading.Thread(target=session.Finalize)
        thread.start()
        while session:
            time.sleep(0.001)
        time.sleep(0.1)
        try:
            late = MPI.Session.Init()
        except MPI.Exception as error:
            assert "can't be started again" in str(error), error
        else:
            thread.join()
            late.Create_group("mpi://WORLD").Free()
            raise AssertionError("a session has begun while the last one was ending")
        thread.join()
    else:
        time.sleep(1)
        if world.rank == 1:
            world.Recv(bytearray(1 << 23), 0)
        MPI.Finalize()
        session.Finalize()
elif how == "at exit":
    session = MPI.Session.Init()

    def begin():
        use(MPI.Session.Init(), "late")
        print("used", flush=True)

    atexit.register(begin)
else:  # too late
    MPI.Finalize()
    try:
        MPI.Session.Init()
    except MPI.Exception as error:
        assert "before MPI.Finalize" in str(error), error
    else:
        raise AssertionError("a session has begun after the end")
