"""Sessions: process sets, groups and communicators from them, hints, errors; plain MPI."""

import numpy as np

try:
    from gormapy import MPI
except ImportError:
    from mpi4py import MPI

GORMAPY = MPI.__name__.startswith("gormapy")
world = MPI.COMM_WORLD


def raises(error_class, call, *args):
    try:
        call(*args)
    except MPI.Exception as error:
        assert error.Get_error_class() == error_class, error
        return str(error)
    raise AssertionError(f"{call} has not failed")


session, other = MPI.Session.Init(), MPI.Session.Init()
assert session and session != other and session == MPI.Session(session)
names = [session.Get_nth_pset(n) for n in range(session.Get_num_psets())]
assert {"mpi://WORLD", "mpi://SELF"} <= set(names), names

for name, like in ("mpi://WORLD", world), ("mpi://SELF", MPI.COMM_SELF):
    info = session.Get_pset_info(name)
    assert info.Get("mpi_size") == str(like.size)
    info.Free()
    group = session.Create_group(name)
    assert (group.size, group.rank) == (like.size, like.rank)
    assert MPI.Group.Compare(group, MPI.Group.Create_from_session_pset(session, name)) == MPI.IDENT
    comm = MPI.Intracomm.Create_from_group(group, f"org.gormapy.test.{name}")
    group.Free()
    assert (comm.size, comm.rank) == (like.size, like.rank)
    total = np.zeros(1)
    comm.Allreduce(np.full(1, comm.rank + 1.0), total)
    assert total[0] == like.size * (like.size + 1) / 2
    comm.Free()

# a part of the processes
group = session.Create_group("mpi://WORLD")
odd = group.Incl(range(1, group.size, 2))
if odd.rank != MPI.UNDEFINED:
    comm = MPI.Intracomm.Create_from_group(odd, "odd")
    assert comm.allgather(world.rank) == list(range(1, world.size, 2))
    comm.Free()
odd.Free()
group.Free()

info = session.Get_info()
if GORMAPY:
    assert info.Get("thread_level") == "MPI_THREAD_MULTIPLE"
    asked = MPI.Info.Create({"mpi_memory_alloc_kinds": "cuda,system,mpi:win_allocate"})
    third = MPI.Session.Init(asked)
    assert third.Get_info().Get("mpi_memory_alloc_kinds") == "system,mpi:win_allocate,mpi"
    third.Finalize()
    # errors say what there is
    assert "mpi://SELF" in raises(MPI.ERR_ARG, session.Create_group, "mpi://NOSUCH")
    assert "0 to 1" in raises(MPI.ERR_ARG, session.Get_nth_pset, 2)
    gone = MPI.Session(other)
    other.Finalize()
    assert not other and other == MPI.SESSION_NULL
    assert "finalized" in raises(MPI.ERR_SESSION, gone.Get_info)
    assert "SESSION_NULL" in raises(MPI.ERR_SESSION, other.Finalize)
    # error handlers of sessions
    met = []
    handler = MPI.Session.Create_errhandler(lambda s, code: met.append((s, code)))
    session.Set_errhandler(handler)
    raises(MPI.ERR_ARG, session.Get_pset_info, "mpi://NOSUCH")
    assert len(met) == 1 and met[0][0] == session, met
    fourth = MPI.Session.Init(errhandler=handler)
    fourth.Call_errhandler(MPI.ERR_OTHER)
    assert met[1] == (fourth, MPI.ERR_OTHER)
    fourth.Finalize()
else:
    other.Finalize()
session.Finalize()
