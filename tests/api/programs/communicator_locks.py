"""Locks of communicators: threads that gather objects at once, and contexts that mpi4py.util.pkl5 uses."""

import threading

from gormapy import MPI

world = MPI.COMM_WORLD


def threads_do_not_mix_their_collectives():
    comm = world.Dup()
    table = MPI._comm_lock_table(comm)
    assert "bcast" not in table
    wrong = []

    def work(k):
        for i in range(100):
            if k == 0:  # one thread broadcasts, another one gathers: their order is that of their own calls
                if comms[k].bcast("x" * (i * 100), root=0) != "x" * (i * 100):
                    wrong.append(i)
            elif comms[k].allgather(i) != [i] * comm.size:
                wrong.append(i)

    comms = [comm, world.Dup()]
    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong
    assert isinstance(table["bcast"], type(threading.Lock()))
    assert MPI._comm_lock(comm, "bcast") is table["bcast"] and not table["bcast"].locked()
    for c in comms:
        c.Free()


def an_error_leaves_no_lock():
    comm = world.Dup()
    for _ in range(2):
        try:
            comm.bcast(None, root=comm.size)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_ROOT
        else:
            raise AssertionError("there is no such root")
    assert comm.bcast(1, root=0) == 1
    comm.Free()
    try:
        MPI._comm_lock(comm, "bcast")
    except MPI.Exception as error:
        assert error.Get_error_class() == MPI.ERR_COMM
    else:
        raise AssertionError("COMM_NULL has a lock")


def contexts():
    comm = world.Dup()
    duplicate, tag = MPI._commctx_intra(comm)
    again, next_tag = MPI._commctx_intra(comm)
    assert duplicate == again and next_tag == tag + 1
    assert MPI.Comm.Compare(comm, duplicate) == MPI.CONGRUENT
    comm.Free()
    assert not duplicate, "it is freed with the communicator"
    if world.size > 1:
        side = world.rank % 2
        half = world.Split(side, world.rank)
        inter = half.Create_intercomm(0, world, 1 - side)
        duplicate, _, local, first = MPI._commctx_inter(inter)
        assert MPI.Comm.Compare(half, local) == MPI.CONGRUENT
        for wrong, call in ((inter, MPI._commctx_intra), (half, MPI._commctx_inter)):
            try:
                call(wrong)
            except TypeError as error:
                assert "expecting an int" in str(error), error
            else:
                raise AssertionError("a communicator of the other kind was taken")
        assert duplicate.Is_inter() and duplicate.remote_size == inter.remote_size
        assert world.allreduce(first) == half.allreduce(1) * first + inter.remote_size * (not first)
        inter.Free()
        half.Free()


# Collectives of objects that are several of the core, and what each gives on all ranks.
TWO_STEPS = {
    "allreduce": lambda comm: comm.allreduce(comm.rank + 1),
    "allgather": lambda comm: len(comm.allgather("long" * 200)[0]),
    "Create_dist_graph": lambda comm: comm.Create_dist_graph([comm.rank], [1], [0]).indegree > 0,
}


def threads_in_the_same_call(call):
    """Threads that make the same call on one communicator at a time get what they would get alone."""
    comm = world.Dup()
    wanted = TWO_STEPS[call](comm)
    seen = []

    def work():
        for _ in range(30):
            try:
                seen.append(TWO_STEPS[call](comm))
            except Exception as error:
                seen.append(str(error))
                return

    threads = [threading.Thread(target=work) for _ in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == [wanted] * 90, [x for x in seen if x != wanted][:3]
