"""The two ranks that most measurements are of."""


def pair_of(MPI, comm, name):
    """Return a communicator of ranks 0 and 1, and COMM_NULL on the others, which have nothing to do."""
    if comm.size < 2:
        raise SystemExit(f"{name}: it takes 2 ranks, and there is 1: use -n 2")
    return comm.Split(0 if comm.rank < 2 else MPI.UNDEFINED)
