from gormapy import MPI

world = MPI.COMM_WORLD
win = MPI.Win.Allocate(32, 8, comm=world)
mine = MPI.Alloc_mem(32)
win.Lock_all()
if world.rank == 0:
    win.Put(mine, 1)
MPI.Free_mem(mine)
win.Unlock_all()
win.Free()
