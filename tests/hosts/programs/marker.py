"""Send a word to a rank on another host in all ways. Nothing else on the network has it."""

import numpy as np

from gormapy import MPI

WORD = b"".join([b"mel", b"lon-", b"on-the-way"])  # whole in no command and no file that a host reads

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
assert size == 2
win = MPI.Win.Create(np.zeros(1 << 16, np.uint8), comm=world)

for count in (1, 1000):
    data = np.frombuffer(WORD * count, np.uint8)
    if rank == 0:
        world.Send(data, 1)
        world.send({"pickled": WORD * count}, 1)
        win.Lock(1)
        win.Put(data, 1)
        win.Unlock(1)
    else:
        got = np.empty_like(data)
        world.Recv(got, 0)
        assert (got == data).all()
        assert world.recv(source=0) == {"pickled": WORD * count}
    world.Barrier()
win.Free()
if rank == 0:
    print("sent", flush=True)
