"""mpi4pytools has decorators for what some ranks do, and for what is broadcast and gathered."""

from mpitools import eval_on_main, setup_mpi
from mpitools.comms import broadcast_from_main, gather_to_main

comm, rank, size = setup_mpi()


@broadcast_from_main()
def load():
    return {"steps": 10}


@gather_to_main()
def part():
    return rank + 1


@eval_on_main()
def only():
    return "main"


assert load() == {"steps": 10}
assert part() == (list(range(1, size + 1)) if rank == 0 else None)
assert only() == ("main" if rank == 0 else None)
print("checked")
