"""Publish blocks of memory on one rank and read them on another.

    mpiexec -n 2 python -m gormapy.examples.object_store
    python -m gormapy.examples.object_store

Rank 0 publishes two blocks and sends their handles, which are small. Rank 1 reads the blocks themselves from rank 0's
memory, one-sided. A rank alone reads its own.
"""

import argparse

from gormapy import MPI, slots
from gormapy.examples._hicr import require


def alone(store):
    """Publish and read in one process."""
    for number, block in enumerate((b"R", b"S"), start=1):
        print(f"Block {number}: {store.get(store.publish(block)).decode()}")
    print(f"Copy of a Custom Block: {store.get(store.publish(b'Test', id=100)).decode()}")


def main(args=None):
    """Publish, send the handles, read, destroy."""
    argparse.ArgumentParser(prog="object_store", description=__doc__.split("\n")[0]).parse_args(args)
    comm = MPI.COMM_WORLD
    require(comm, comm.Get_size() <= 2, "1 or 2")
    with slots.Space(comm) as space:
        store = slots.ObjectStore(space)
        if space.size == 1:
            alone(store)
        elif space.rank == 0:
            handles = [store.publish(block) for block in (b"Test", b"This is another block")]
            comm.send([bytes(handle) for handle in handles], dest=1)
            store.fence()  # they have been read
            for handle in handles:
                store.destroy(handle)
        else:
            for number, data in enumerate(comm.recv(source=0), start=1):
                print(f"Reader: Received block {number}: {store.get(store.handle(data)).decode()}", flush=True)
            store.fence()


if __name__ == "__main__":
    main()
